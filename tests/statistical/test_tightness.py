"""Certified bounds come close to the best that the trials allow, and to peers' on the same scores."""

import numpy as np
import pytest
from jax_privacy import auditing
from scipy import stats

from epsilometer import Counts, Fixed, PairedRuns, Split, UnionBound, clopper_pearson

N, DELTA, SEEDS = 1000, 1e-5, 100


def oracle_threshold(mu: float) -> float:
    """The threshold with the largest expected bound, from the true rates: nobody can know it."""
    grid = np.linspace(-1, 5, 241)
    counts = [(round(N * stats.norm.sf(t)), round(N * stats.norm.sf(t - mu))) for t in grid]
    bounds = [clopper_pearson(Counts(tp, fp, N - tp, N - fp), delta=DELTA).epsilon for fp, tp in counts]
    return float(grid[int(np.argmax(bounds))])


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0, 4.0])
def test_side_by_side_with_jax_privacy(mu: float) -> None:
    ours: dict[str, list[float]] = {"union": [], "split": [], "oracle": []}
    theirs: dict[str, list[float]] = {"bonferroni": [], "split": []}
    fixed = Fixed(oracle_threshold(mu))
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        runs = PairedRuns(rng.normal(size=N), rng.normal(mu, size=N))
        for name, strategy in (("union", UnionBound()), ("split", Split(seed=seed)), ("oracle", fixed)):
            ours[name].append(clopper_pearson(runs, delta=DELTA, thresholds=strategy).epsilon)
        auditor = auditing.CanaryScoreAuditor(runs.in_scores, runs.out_scores)
        peers = (("bonferroni", auditing.Bonferroni()), ("split", auditing.Split(seed=seed)))
        for name, strategy in peers:
            bound = auditor.epsilon_clopper_pearson(0.05, DELTA, threshold_strategy=strategy)
            theirs[name].append(max(0.0, float(bound)))
    mean = {f"our {k}": np.mean(v) for k, v in ours.items()} | {f"their {k}": np.mean(v) for k, v in theirs.items()}
    assert mean["our union"] >= 0.93 * mean["their bonferroni"]
    assert mean["our split"] >= 0.95 * mean["their split"]
    assert mean["our union"] >= mean["our split"]
    assert 0.85 * mean["our oracle"] <= mean["our union"] <= mean["our oracle"] + 0.05
