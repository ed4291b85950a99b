"""The tests of one verdict share α, and need hardly more steps than each would with all of it."""

import numpy as np
import pytest

from epsilometer.bounds import NoiseLaw
from epsilometer.bounds.step_bets import right_so_far
from epsilometer.bounds.step_process import log_wealth
from epsilometer.errors import InvalidInput
from epsilometer.noise_sample import NoiseSample
from epsilometer.watching.checks.catalogue import CHECKS
from epsilometer.watching.judging import Judging
from epsilometer.watching.levels import RANDOM_CHECKS, Levels

SIGMA = 1.386
LEVELS = Levels.of(0.95)


def test_levels_add_up() -> None:
    assert LEVELS.checks + LEVELS.coins + LEVELS.noise == pytest.approx(0.05, abs=1e-12)
    assert len(CHECKS) < RANDOM_CHECKS


def test_a_confidence_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"confidence = 0\.99998: expected below 0\.99995") as refused:
        Judging(0.99998)
    assert "\n" not in str(refused.value)
    Judging(0.9999)


@pytest.mark.parametrize(("noise", "steps", "most"), [(0.5, 12, 3), (0.7, 30, 7), (0.8, 50, 12), (0.9, 120, 39)])
def test_bets_on_coins_need_no_more_steps_than_with_all_of_it(noise: float, steps: int, most: int) -> None:
    rng = np.random.default_rng(1)
    coins = rng.random((400, steps, 200)) < 0.5
    scores = coins + SIGMA * noise * rng.standard_normal(coins.shape)
    wealth = log_wealth(right_so_far(scores, coins, np.full(steps, 0.5)), 1 / SIGMA)
    medians = []
    for level in (0.05, LEVELS.coins):
        over = wealth >= -np.log(level)
        medians.append(np.median(np.where(over.any(axis=1), over.argmax(axis=1) + 1.0, np.inf)))
    assert medians[1] <= most
    assert medians[1] - medians[0] <= 0.5


@pytest.mark.parametrize(("scale", "most"), [(0.5, 1), (0.8, 1), (0.9, 1), (0.95, 2), (0.98, 8)])
def test_the_law_needs_few_steps_with_all_coordinates_of_a_small_network(scale: float, most: int) -> None:
    at = []
    for seed in range(21):
        rng, law = np.random.default_rng(seed), NoiseLaw(1.0 - LEVELS.noise)
        while law.refuted_at is None and law.steps < 40:
            sizes = {"0.weight": 2048, "0.bias": 32, "2.weight": 320, "2.bias": 10}
            law.add(NoiseSample.of({name: rng.normal(0, scale, size) for name, size in sizes.items()}))
        at.append(law.refuted_at or np.inf)
    assert np.median(at) <= most
