"""A learned score sees leaks that are not in the mean, and accuses nobody of nothing."""

import numpy as np
import pytest
from scipy import stats

from epsilometer.adversaries import LearnedScore
from epsilometer.auditing import Outcome, Plan
from epsilometer.claims import PointClaim
from epsilometer.data import own_data
from epsilometer.subjects import CallableTraining

DATA = own_data((np.eye(40, 5), np.arange(40) % 2))
CLAIM = PointClaim(1.0, 1e-5)


def released(leak: float):
    """Fifty numbers; with all 40 records their noise is larger, and their mean as ever."""

    def train(data, seed):
        scale = leak if len(data.y) == 40 else 1.0
        return scale * np.random.default_rng(seed).normal(size=50)

    return train


def verdict(leak: float, seed: int, examples: int, trials: int) -> Outcome:
    """As `run` has it, without the checks of foreign code, which are the same each time."""
    from epsilometer.auditing import judge

    adversary = LearnedScore(examples=examples)
    plan = Plan(CallableTraining(released(leak), DATA), CLAIM, 1e-5, adversary, trials=trials, seed=seed)
    trials_ = [(world, index) for index in range(trials) for world in plan.worlds]
    results = dict(zip(trials_, plan.play(plan.prepare(), trials_), strict=True))
    return judge(plan, plan.evidence(results, trials)).verdict.outcome


@pytest.mark.parametrize("audits", [15, pytest.param(40, marks=pytest.mark.full)])
def test_a_leak_in_the_scale_is_seen(audits: int) -> None:
    found = [verdict(1.4, seed, 100, 200) for seed in range(audits)]
    assert found.count(Outcome.VIOLATED) >= 0.95 * audits


def test_losses_do_not_see_it() -> None:
    """What a fixed projection shows: one number whose mean is the same in both worlds."""
    rng = np.random.default_rng(0)
    outs, ins = rng.normal(size=(200, 50)).mean(axis=1), 1.4 * rng.normal(size=(200, 50)).mean(axis=1)
    assert stats.mannwhitneyu(outs, ins).pvalue > 0.01


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 400), marks=pytest.mark.full)], ids=str)
def test_without_a_leak_nobody_is_accused(seeds) -> None:
    """ε = 1 is claimed, and 0 is true: never in 400 seeded audits; at ε = 0 see the contract of adversaries."""
    assert [verdict(1.0, seed, 50, 60) for seed in seeds].count(Outcome.VIOLATED) == 0
