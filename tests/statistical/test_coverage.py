"""A certified bound exceeds the truth in at most α of the audits: the product's first promise.

Seeds are fixed, so these tests are never flaky: each states what was seen with that seed, and fails if that
many violations would be a surprise (p < 0.001, exact binomial test) for a rate of α.
"""

from __future__ import annotations

import functools
import zlib

import numpy as np
import pytest
from mechanisms import MECHANISMS, Mechanism, least_favourable
from scipy import stats

from epsilometer import (
    BestOnSame,
    Counts,
    Fixed,
    GaussianClaim,
    PairedRuns,
    PointClaim,
    Split,
    UnionBound,
    clopper_pearson,
    refute_curve,
)

ALPHA = 0.05
STRATEGIES = {
    "union-bound": UnionBound(),
    "union-bound, 3 candidates": UnionBound(3),
    "union-bound, given thresholds": UnionBound(thresholds=(-0.8, -0.5, -0.2, -0.05)),
    "split": Split(),
    "fixed": Fixed(-0.3),
}


def violations(mechanism: Mechanism, strategy, n: int, repetitions: int, direction: str = "higher") -> int:
    """In how many of the audits the bound exceeds the truth."""
    rng = np.random.default_rng([n, zlib.crc32(mechanism.name.encode())])
    count = 0
    for _ in range(repetitions):
        out, member = mechanism.draw(rng, n)
        runs = PairedRuns(out, member, group_size=mechanism.group_size)
        found = clopper_pearson(
            runs, delta=mechanism.delta, confidence=1 - ALPHA, thresholds=strategy, direction=direction
        )
        count += found.epsilon > mechanism.epsilon + 1e-9
    return count


def surprising(count: int, repetitions: int, rate: float = ALPHA) -> bool:
    return stats.binomtest(count, repetitions, rate, alternative="greater").pvalue < 1e-3


@pytest.mark.parametrize("n", [20, 300])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_certified_bounds_cover(mechanism: Mechanism, strategy: str, n: int) -> None:
    assert not surprising(violations(mechanism, STRATEGIES[strategy], n, 250), 250)


@pytest.mark.full
@pytest.mark.parametrize("n", [5, 20, 100, 1000, 20_000])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_certified_bounds_cover_at_length(mechanism: Mechanism, strategy: str, n: int) -> None:
    assert not surprising(violations(mechanism, STRATEGIES[strategy], n, 1000), 1000)


@pytest.mark.parametrize("strategy", ["union-bound", "split"])
def test_trying_both_directions_is_paid_for(strategy: str) -> None:
    for mechanism in (least_favourable(0.0, 0.0), least_favourable(2.0, 0.0)):
        assert not surprising(violations(mechanism, STRATEGIES[strategy], 200, 400, "either"), 400)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.0, 4.0])
def test_the_naive_rule_breaks_it(epsilon: float) -> None:
    """The test above has teeth: the best threshold on the same scores fails it."""
    count = violations(least_favourable(epsilon, 0.0), BestOnSame(), 1000, 600)
    assert surprising(count, 600)


@functools.cache
def exact_epsilons(n: int, delta: float, k: int) -> np.ndarray:
    """The bound for every (fp, tp) of n trials a world."""
    found = [
        [clopper_pearson(Counts(tp, fp, n - tp, n - fp, group_size=k), delta=delta).epsilon for tp in range(n + 1)]
        for fp in range(n + 1)
    ]
    return np.array(found)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_counts_cover_exactly(epsilon: float, delta: float, k: int) -> None:
    """No simulation: the probability of a violation, summed over all outcomes, at every point of the frontier."""
    n = 30
    violated = exact_epsilons(n, delta, k) > epsilon + 1e-9
    claim = PointClaim(epsilon, delta)
    outcomes = np.arange(n + 1)
    for fpr in np.r_[0.0, np.geomspace(1e-4, 0.5, 25), 1 - np.geomspace(1e-4, 0.5, 25)]:
        tpr = claim.max_tpr(fpr, k).item()
        probability = stats.binom.pmf(outcomes, n, fpr) @ violated @ stats.binom.pmf(outcomes, n, tpr)
        assert probability <= ALPHA + 1e-12


@pytest.mark.parametrize("strategy", ["union-bound", "split"])
@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_true_curves_are_not_refuted(mu: float, strategy: str) -> None:
    """Gaussian scores have exactly the Gaussian curve as their ROC: its least-favourable pair."""
    rng = np.random.default_rng(11)
    claim = GaussianClaim(mu)
    for n in (20, 200):
        refuted = sum(
            refute_curve(
                PairedRuns(rng.normal(size=n), rng.normal(mu, size=n)), claim, thresholds=STRATEGIES[strategy]
            ).refuted
            for _ in range(400)
        )
        assert not surprising(refuted, 400)


def test_the_naive_rule_refutes_true_curves() -> None:
    rng = np.random.default_rng(12)
    mu, n = 0.3, 1000
    refuted = sum(
        refute_curve(
            PairedRuns(rng.normal(size=n), rng.normal(mu, size=n)), GaussianClaim(mu), thresholds=BestOnSame()
        ).refuted
        for _ in range(400)
    )
    assert surprising(refuted, 400)
