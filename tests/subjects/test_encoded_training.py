"""DP-SGD on encoded gradients: codes against gradients that are formed, clipping, what leaves the data, its promise."""

from __future__ import annotations

import numpy as np
import pytest

from epsilometer.adversaries import ClipBkd
from epsilometer.auditing import Outcome, Plan, run
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.membership import LossAttack, MembershipPlan, run_membership
from epsilometer.runs.executors import Inline
from epsilometer.subjects import EncodedRecipe, EncodedTraining, Faults
from epsilometer.subjects.encoded_training import Encoding, shortened
from epsilometer.training import Network

NETWORK = Network((6, 5, 3), "tanh")


def made(code: int) -> tuple[Encoding, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    encoding = Encoding.of(EncodedRecipe(records=9, hidden=(5,), code=code), NETWORK)
    return encoding, NETWORK.initial(rng, 1.0), rng.standard_normal((9, 6)), np.arange(9) % 3


def test_what_keeps_everything_is_the_gradient() -> None:
    encoding, flat, x, y = made(code=7)
    assert encoding.entries == NETWORK.parameters
    total = encoding.decoded(NETWORK, encoding.clipped_sum(NETWORK, flat, x, y, 0.5))
    assert total == pytest.approx(NETWORK.clipped_gradient_sum(flat, x, y, 0.5))


@pytest.mark.parametrize("code", [2, 4])
def test_codes_are_projections_of_gradients_and_never_longer_than_the_clip_norm(code: int) -> None:
    encoding, flat, x, y = made(code)
    assert encoding.entries < NETWORK.parameters
    for i in range(len(x)):
        gradient = NETWORK.clipped_gradient_sum(flat, x[i : i + 1], y[i : i + 1], 1e9)
        whole = encoding.clipped_sum(NETWORK, flat, x[i : i + 1], y[i : i + 1], 1e9)
        decoded = encoding.decoded(NETWORK, whole)
        # A projection: what is left of the gradient is at right angles to what was kept.
        assert decoded @ (gradient - decoded) == pytest.approx(0.0, abs=1e-6 * gradient @ gradient)
        assert np.linalg.norm(decoded) == pytest.approx(np.linalg.norm(whole), rel=1e-5)
        clipped = encoding.clipped_sum(NETWORK, flat, x[i : i + 1], y[i : i + 1], 0.1)
        assert np.linalg.norm(clipped) == pytest.approx(min(0.1, np.linalg.norm(whole)), rel=1e-5)
    mechanism = encoding.mechanism(EncodedRecipe(records=9, clip_norm=0.1, noise_multiplier=3.0))
    assert (mechanism.entries, mechanism.sensitivity.amount) == (encoding.entries, 0.1)
    assert mechanism.scale == pytest.approx(0.3)


def test_long_releases_are_shortened_and_others_are_not() -> None:
    assert shortened(np.array([3.0, 4.0]), 1.0) == pytest.approx([0.6, 0.8])
    assert shortened(np.array([0.3, 0.4]), 1.0) == pytest.approx([0.3, 0.4])


def blobs(records: int, seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    y = np.arange(records) % 2
    return Dataset("blobs", (rng.standard_normal((records, 20)) + 0.8 * y[:, None]).astype(np.float32), y, 2)


def test_a_training_learns_promises_and_keeps_its_promise() -> None:
    data, other = blobs(800, 0), blobs(400, 1)
    recipe = EncodedRecipe(
        records=400, hidden=(16,), sample_rate=0.1, steps=60, noise_multiplier=1.0, learning_rate=1.0, code=8
    )
    training = EncodedTraining(recipe, data)
    assert "codes of 80 entries" in training.describe()  # 21 × 16 and 17 × 2 become 8 × 8 and 2 × 8
    first, again, third = training.rehearse(data, [np.random.SeedSequence(seed) for seed in (0, 0, 1)])
    assert np.array_equal(first.parameters, again.parameters)  # it follows from its seed
    assert not np.array_equal(first.parameters, third.parameters)
    right = [float(np.mean(model.logits(other.x).argmax(axis=1) == other.y)) for model in (first, third)]
    assert min(right) > 0.8
    found = run_membership(MembershipPlan(training, other, references=0), [LossAttack()])
    assert found.theory is not None
    assert found.theory.epsilon == pytest.approx(recipe.mechanism.epsilon(1e-5), rel=1e-2)
    assert found.bound is not None
    assert found.bound.epsilon <= found.theory.epsilon


@pytest.mark.parametrize(("noise", "outcome"), [(1.0, None), (0.1, Outcome.VIOLATED)])
def test_an_audit_with_poisoned_records_sees_whether_the_noise_is_there(noise: float, outcome: Outcome | None) -> None:
    recipe = EncodedRecipe(
        records=60, hidden=(), sample_rate=1.0, steps=2, noise_multiplier=4.0, learning_rate=60.0, code=15
    )
    training = EncodedTraining(recipe, blobs(60, 0), Faults(noise))
    found = run(Plan(training, training.promise.curve(), 1e-5, ClipBkd(norm=20.0), trials=150), executor=Inline())
    assert found.upper_bound is not None
    assert found.upper_bound.epsilon == pytest.approx(recipe.mechanism.epsilon(1e-5), rel=1e-2)
    assert (found.verdict.outcome is Outcome.VIOLATED) == (outcome is Outcome.VIOLATED)
    assert bool(training.injected()) == (noise != 1)


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidInput, match="code = 0"):
        EncodedRecipe(records=10, code=0)
    with pytest.raises(InvalidInput, match="activation = 'sine': expected relu or tanh"):
        EncodedRecipe(records=10, activation="sine")
