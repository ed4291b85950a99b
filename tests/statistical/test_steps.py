"""A verdict from one training: right steps are refuted in at most α of trainings, wrong ones within a few steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from epsilometer import DpSgdTraining, Plan, Recipe, claim_curve, run
from epsilometer.adversaries import GradientSteps
from epsilometer.auditing import noise_for
from epsilometer.bounds import StepWealth, StrengthLimit, bet_on_steps, refute_one_run
from epsilometer.bounds.step_bets import RightCounts, right_so_far
from epsilometer.bounds.step_process import log_wealth
from epsilometer.claims import GaussianClaim, PointClaim, StepClaim
from epsilometer.data import digits
from epsilometer.evidence import IN, OneRun, PerStep
from epsilometer.subjects import Faults

SIGMA, STEPS, ALPHA = 1.386, 100, 0.05
NEVER = 10**6
# Median steps to refutation of the prototype (REFERENCE.md §9) by canaries and noise factor; ours must not be later.
PROTOTYPE = {
    20: {0.5: 11, 0.7: 51, 0.8: 89},
    200: {0.5: 4, 0.7: 8, 0.8: 15, 0.9: 46},
    1000: {0.5: 3, 0.7: 5, 0.8: 9, 0.9: 21, 0.95: 52},
}


def refuted_at(counts: RightCounts, stated: float = 1 / SIGMA) -> NDArray[np.int64]:
    """At which step each training (first axis) is refuted; `NEVER` for the others."""
    wealth = log_wealth(counts, stated)
    over = wealth >= -np.log(ALPHA)
    return np.where(over.any(axis=1), over.argmax(axis=1) + 1, NEVER)


def gaussian_steps(rng: np.random.Generator, trainings: int, canaries: int, noise: float) -> RightCounts:
    coins = rng.random((trainings, STEPS, canaries)) < 0.5
    scores = coins + SIGMA * noise * rng.standard_normal(coins.shape)
    return right_so_far(scores, coins, np.full(coins.shape[:2], 0.5))


def equally_clear(rng: np.random.Generator, trainings: int, canaries: int, mu: float) -> RightCounts:
    """Every canary is exactly μ-Gaussian DP, and all canaries of a step are as clear as each other: where one guess is
    sure, all are. So steps come in which nearly all guesses are right."""
    ratios = rng.normal(mu**2 / 2, mu, (trainings, STEPS, 1))
    right = rng.random((trainings, STEPS, canaries)) < special.expit(np.abs(ratios))
    counts = np.zeros((trainings, STEPS, canaries + 1), dtype=np.uint16)
    np.cumsum(right, axis=-1, out=counts[..., 1:])
    return counts


@pytest.mark.parametrize(
    ("canaries", "trainings"), [(20, 4000), (200, 500), pytest.param(200, 10_000, marks=pytest.mark.full)]
)
def test_right_steps_are_refuted_in_at_most_alpha_of_trainings(canaries: int, trainings: int) -> None:
    rng, false, clear = np.random.default_rng(0), 0, 0
    for _ in range(0, trainings, 500):
        false += int(np.count_nonzero(refuted_at(gaussian_steps(rng, 500, canaries, 1.0)) < NEVER))
        clear += int(np.count_nonzero(refuted_at(equally_clear(rng, 500, canaries, 1 / SIGMA)) < NEVER))
    for found in (false, clear):
        assert stats.binomtest(found, trainings, ALPHA, alternative="greater").pvalue > 0.01
    # That canaries were independent is what a careless test would assume: it accuses the second kind far too often.
    counts = equally_clear(rng, 200, canaries, 1 / SIGMA)
    most = stats.binom.ppf(1 - ALPHA / STEPS, canaries, special.ndtr(0.5 / SIGMA))
    assert np.mean((counts[..., -1] > most).any(axis=1)) > 0.25


@pytest.mark.parametrize("canaries", PROTOTYPE)
def test_wrong_steps_are_refuted_at_least_as_early_as_by_the_prototype(canaries: int) -> None:
    rng = np.random.default_rng(canaries)
    trainings = {20: 200, 200: 60, 1000: 20}[canaries]
    for noise, steps in PROTOTYPE[canaries].items():
        assert np.median(refuted_at(gaussian_steps(rng, trainings, canaries, noise))) <= steps, noise


# ------------------------------------------------------------------------------------------------- the own engine
def default_plan(seed: int, noise: float = 1.0, trials: int | None = None) -> Plan:
    data = digits()
    recipe = Recipe(records=len(data), noise_multiplier=noise_for(4.0, 1e-5, 0.1, 100))
    subject = DpSgdTraining(recipe, data, Faults(noise_scale=noise))
    return Plan(subject, claim_curve(recipe), 1e-5, GradientSteps(), seed=seed, trials=trials)


def test_right_trainings_are_refuted_in_at_most_alpha_of_400() -> None:
    """Small ones, all steps and seeds 0 to 399, with canaries on real coordinates among natural gradients."""
    small = digits().subset(classes=(0, 1), per_class=30)
    recipe = Recipe(records=60, sample_rate=0.2, steps=10, noise_multiplier=1.0, learning_rate=1.0)
    plan = Plan(DpSgdTraining(recipe, small), claim_curve(recipe), 1e-5, GradientSteps(30), trials=1)
    found = {0.0: 0, 0.4: 0}
    for seed in range(400):
        own = replace(plan, seed=seed)
        steps = own.evidence({(IN, 0): own.play(own.prepare(), [(IN, 0)])[0]}, 1)
        assert isinstance(steps, PerStep)
        for stronger in found:  # what the same trainings say of a promise that they do not keep
            found[stronger] += bet_on_steps(steps, StepClaim(1.0 - stronger)).refuted_at is not None
    assert stats.binomtest(found[0.0], 400, ALPHA, alternative="greater").pvalue > 0.01
    assert stats.binomtest(found[0.4], 400, ALPHA, alternative="greater").pvalue < 1e-9


@pytest.mark.parametrize(("noise", "within"), [(0.5, 6), (0.8, 25)])
def test_missing_noise_of_the_default_training_is_violated_within_a_few_steps(noise: float, within: int) -> None:
    when = []
    for seed in range(20):
        result = run(default_plan(seed, noise))
        assert result.judged == 1  # it stops as soon as it knows
        assert isinstance(result.test.proof, StepWealth)
        assert result.verdict.outcome.value == "violated"
        assert result.verdict.refuted == "what it states of its steps"
        when.append(result.test.proof.refuted_at)
    assert np.median(when) <= within


def test_two_right_trainings_certify_most_of_the_strength_of_their_steps() -> None:
    for seed in range(3):
        result = run(default_plan(seed))
        assert result.verdict.outcome.value == "consistent"
        limit, truth = result.lower_bound.proof, 1.0 / result.plan.promise.noise_multiplier  # type: ignore[union-attr]
        assert isinstance(limit, StrengthLimit)
        assert 0.9 * truth <= limit.mu <= truth


def test_the_recursion_for_one_run_agrees_on_the_same_evidence() -> None:
    """All canaries of all steps are one run, each with the curve of a step: weaker, refuted only where steps are."""

    def refuted(noise: float) -> tuple[bool, bool]:
        result = run(default_plan(0, noise, trials=1))
        steps = result.evidence
        assert isinstance(steps, PerStep)
        whole = OneRun(steps.scores, steps.member, in_order=True)
        assert result.plan.promise.noise_multiplier is not None
        claim = GaussianClaim(1.0 / result.plan.promise.noise_multiplier)
        return result.test.refuted, refute_one_run(whole, claim).refuted

    assert refuted(0.3) == (True, True)
    assert refuted(1.0) == (False, False)


def test_a_bare_point_is_not_refuted_by_steps() -> None:
    """It says nothing of a mechanism: half of the noise is no violation of an ε that is large enough anyhow."""
    plan = replace(default_plan(0, 0.5), claim=PointClaim(50.0, 1e-5))
    result = run(plan)
    assert result.verdict.outcome.value == "inconclusive"
    assert not result.test.refuted
