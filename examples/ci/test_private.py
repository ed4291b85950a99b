"""One test that passes, one that fails, one that shows nothing. Run: pytest examples/ci --junitxml report.xml"""

import numpy as np
import pytest
from mechanism import train

from epsilometer import DpSgd

PROMISE = DpSgd(sample_rate=1.0, noise_multiplier=1.0, steps=1)  # ε = 4.4 at δ = 1e-5, and all of that curve


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(100, 5)), np.arange(100) % 2


def test_the_mechanism_keeps_its_promise(assert_private, data):
    assert_private(train, data=data, claim=PROMISE, trials=1000, budget_seconds=60)


def test_half_of_the_noise_is_caught(assert_private, data):
    assert_private(train, data=data, claim=PROMISE, trials=200, arguments={"noise_multiplier": 0.5})


def test_too_few_trials_show_nothing(assert_private, data):
    assert_private(train, data=data, epsilon=4.4, delta=1e-5, trials=30)
