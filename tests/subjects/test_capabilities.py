"""Adversaries name what they need, and play against any subject that offers it: here one that we did not write them
for."""

import math

import numpy as np
import pytest
from federated import Clients, FederatedAveraging

from epsilometer.adversaries import (
    ADVERSARIES,
    Canaries,
    ClipBkd,
    Gradient,
    GradientSteps,
    HiddenState,
    Intermediate,
    MaliciousDataset,
    RidgeClipBkd,
)
from epsilometer.adversaries.game import Adversary
from epsilometer.auditing import Plan, run
from epsilometer.claims import PointClaim
from epsilometer.data import digits
from epsilometer.errors import InvalidInput
from epsilometer.subjects import DpSgdTraining, KnowsNetwork, KnowsRecipe, NoisySteps, Predicts
from epsilometer.training import Recipe

DELTA = 1e-5
CLIENTS = Clients(tuple(map(tuple, np.random.default_rng(0).normal(0.0, 0.3, (12, 400)).tolist())))
TRIALS = {Canaries: 3, GradientSteps: 2}
PLAYERS = [Gradient(), HiddenState(), GradientSteps(coordinates=100), Canaries(canaries=400)]


def audited(adversary: Adversary, noise_scale: float = 1.0, steps: int = 5, rate: float = 1.0):
    subject = FederatedAveraging(CLIENTS, sample_rate=rate, steps=steps, noise_scale=noise_scale)
    claim = subject.promise.curve()
    assert claim is not None
    return run(Plan(subject, claim, DELTA, adversary, TRIALS.get(type(adversary), 300)), noise_limit=False)


@pytest.mark.parametrize("adversary", PLAYERS, ids=lambda one: one.name)
def test_noisy_steps_of_clients_are_attacked_with_no_change(adversary: Adversary) -> None:
    result = audited(adversary)
    theory = result.upper_bound
    assert theory is not None
    assert result.verdict.outcome.value != "violated"
    assert 0.0 < result.lower_bound.epsilon < theory.epsilon


@pytest.mark.parametrize("adversary", PLAYERS[:3], ids=lambda one: one.name)
def test_half_of_the_noise_is_seen(adversary: Adversary) -> None:
    assert audited(adversary, noise_scale=0.5).verdict.outcome.value == "violated"


@pytest.mark.parametrize(("noise_scale", "verdict"), [(1.0, "inconclusive"), (0.5, "violated")])
def test_half_of_the_noise_is_seen_by_canaries_of_one_training(noise_scale: float, verdict: str) -> None:
    """Against the point that the promise has at δ: of one training, curves are not tested."""
    wide = Clients(tuple(map(tuple, np.random.default_rng(0).normal(0.0, 0.3, (4, 20_000)).tolist())))
    subject = FederatedAveraging(wide, noise_multiplier=3.0, steps=1, clip_norm=5.0, noise_scale=noise_scale)
    epsilon = subject.promise.epsilon_at(DELTA)
    assert epsilon is not None
    result = run(Plan(subject, PointClaim(epsilon, DELTA), DELTA, Canaries(20_000), 1), noise_limit=False)
    assert result.verdict.outcome.value == verdict
    assert (result.lower_bound.epsilon > epsilon) is (noise_scale < 1)


def test_sampled_clients_too() -> None:
    result = audited(Gradient(), steps=10, rate=0.3)
    assert result.upper_bound is not None
    assert 0.0 < result.lower_bound.epsilon < result.upper_bound.epsilon
    assert audited(Gradient(), 0.5, steps=10, rate=0.3).verdict.outcome.value == "violated"


@pytest.mark.parametrize(
    ("adversary", "needs"),
    [
        (ClipBkd(), Predicts.words),
        (Intermediate(), f"{Predicts.words} and {KnowsNetwork.words}"),
        (MaliciousDataset(), KnowsRecipe.words),
        (GradientSteps(4, malicious=True), KnowsRecipe.words),
        (Canaries(8, kind="records"), f"{Predicts.words} and {KnowsNetwork.words}"),
        (RidgeClipBkd(), "private ridge regression"),
    ],
    ids=lambda one: one.name if isinstance(one, Adversary) else "",
)
def test_who_needs_more_is_refused_before_anything_is_trained(adversary: Adversary, needs: str) -> None:
    subject = FederatedAveraging(CLIENTS, noise_scale=math.nan)
    with pytest.raises(InvalidInput) as refused:
        Plan(subject, PointClaim(1.0, DELTA), DELTA, adversary)
    assert f"it needs {needs}; these would work: gradient, gradient-steps, hidden-state, canaries" in str(refused.value)


def test_the_own_training_offers_all_that_its_adversaries_need() -> None:
    data = digits()
    subject = DpSgdTraining(Recipe(records=len(data), steps=2), data)
    assert not [name for name, kind in ADVERSARIES.items() if kind().lacks(subject)]
    steps = subject.offers(NoisySteps)
    assert steps is not None
    assert (steps.width, steps.steps, steps.by_coins) == (subject.network.parameters, 2, True)
    with pytest.raises(InvalidInput, match="offers enough to; it needs private ridge regression"):
        RidgeClipBkd().prepare(subject, PointClaim(1.0).relation, np.random.SeedSequence(0))
