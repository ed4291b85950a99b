"""Certified bounds come close to the best that the trials allow, and lie above every peer's on the same scores.

The whole table, over 400 seeds, is `python benchmarks/bounds.py`; docs/measurements.md has its results.
"""

import numpy as np
import pytest
from jax_privacy import auditing
from scipy import stats

from epsilometer import PairedRuns
from epsilometer.bounds import (
    EProcess,
    ExactRank,
    Fixed,
    Simultaneous,
    Split,
    UnionBound,
    clopper_pearson,
    trials_to_refute,
)
from epsilometer.claims import GaussianClaim
from epsilometer.evidence import Counts

N, DELTA, SEEDS = 1000, 1e-5, 24
ORACLE = {0.5: 0.491, 1.0: 1.449, 2.0: 3.202, 4.0: 5.100}  # REFERENCE: best threshold known, Clopper–Pearson, 400 seeds
LEAST = {0.5: 1.31, 1.0: 1.12, 2.0: 1.03, 4.0: 1.00}  # of the default bound, as a share of it


def oracle_threshold(mu: float) -> float:
    """The threshold with the largest expected bound, from the true rates: nobody can know it."""
    grid = np.linspace(-1, 5, 241)
    counts = [(round(N * stats.norm.sf(t)), round(N * stats.norm.sf(t - mu))) for t in grid]
    bounds = [clopper_pearson(Counts(tp, fp, N - tp, N - fp), delta=DELTA).epsilon for fp, tp in counts]
    return float(grid[int(np.argmax(bounds))])


@pytest.mark.parametrize("mu", [*(pytest.param(mu, marks=pytest.mark.full) for mu in (0.5, 1.0, 4.0)), 2.0])
def test_side_by_side_with_jax_privacy(mu: float) -> None:
    found: dict[str, list[float]] = {}

    def note(name: str, epsilon: float) -> None:
        found.setdefault(name, []).append(max(0.0, float(epsilon)))

    strategies = {"union": UnionBound(), "simultaneous": Simultaneous(), "oracle": Fixed(oracle_threshold(mu))}
    peers = {"Bonferroni": auditing.Bonferroni(), "Split": auditing.Split(seed=0), "Multi": auditing.MultiSplit(seed=0)}
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        runs = PairedRuns(rng.normal(size=N), rng.normal(mu, size=N))
        note("exact rank", ExactRank().bound(runs, delta=DELTA).epsilon)
        note("eprocess", EProcess(in_order=True).bound(runs, delta=DELTA).epsilon)
        note("split", clopper_pearson(runs, delta=DELTA, thresholds=Split(seed=seed)).epsilon)
        for name, strategy in strategies.items():
            note(name, clopper_pearson(runs, delta=DELTA, thresholds=strategy).epsilon)
        auditor = auditing.CanaryScoreAuditor(runs.in_scores, runs.out_scores)
        for name, peer in peers.items():
            note(f"jax {name}", auditor.epsilon_clopper_pearson(0.05, DELTA, threshold_strategy=peer))
    mean = {name: np.mean(values) for name, values in found.items()}
    # The oracle on the same seeds takes out most of the luck of having few of them.
    assert mean["exact rank"] >= LEAST[mu] * mean["oracle"]
    assert mean["exact rank"] >= 0.97 * LEAST[mu] * ORACLE[mu]
    assert mean["eprocess"] >= 0.85 * mean["oracle"]  # .95 over 400 seeds; few seeds vary by a tenth
    assert mean["exact rank"] > max(value for name, value in mean.items() if name != "exact rank")
    assert mean["simultaneous"] >= 0.85 * mean["oracle"] or mu < 1


@pytest.mark.parametrize("mu", [pytest.param(0.5, marks=pytest.mark.full), 1.0])
def test_early_stopping_saves_trials(mu: float) -> None:
    """An attack twice as strong as claimed: the median stop is at most .85 of what a grid of ranks needs (95 % power).

    Rank sums, the default for curves, need fewer trials of a fixed size: about as many as the median stop.
    """
    claim = GaussianClaim(mu)
    fixed = trials_to_refute(claim, GaussianClaim(2 * mu), method=ExactRank(calibrated=False))
    assert fixed is not None
    method = EProcess(in_order=True)

    def stop(seed: int) -> int:
        rng = np.random.default_rng(seed)
        outs, ins = rng.normal(size=2 * fixed), rng.normal(2 * mu, size=2 * fixed)
        low, high = 8, 2 * fixed  # refuted once, refuted ever after: the test looks at the largest wealth so far
        if not method.test(PairedRuns(outs, ins), claim).refuted:
            return 2 * fixed
        while high - low > 1:
            middle = (low + high) // 2
            refuted = method.test(PairedRuns(outs[:middle], ins[:middle]), claim).refuted
            low, high = (low, middle) if refuted else (middle, high)
        return high

    assert np.median([stop(seed) for seed in range(60)]) <= 0.85 * fixed
