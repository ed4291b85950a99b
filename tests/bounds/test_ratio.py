"""Ratio estimates do what TensorFlow Privacy's do, never fail, and do not deserve to be called bounds."""

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from epsilometer import PairedRuns, PointClaim
from epsilometer.bounds import Fixed, Kind, Split, UnionBound
from epsilometer.bounds.ratio import bailey, bailey_limit, katz_log, katz_log_limit
from epsilometer.errors import EvidenceMismatch, InvalidInput
from epsilometer.evidence import Counts, OneRun
from epsilometer.json_values import json_values
from mechanisms import least_favourable

METHODS = {"katz-log": (katz_log, katz_log_limit), "bailey": (bailey, bailey_limit)}
ALPHA = 0.05


def oracle(method: str, x: int, m: int, y: int, n: int, alpha: float) -> float:
    """The ratio at which the approximate test of p₁/p₂ = ratio has the one-sided p-value alpha."""
    p, q, z = x / m, y / n, stats.norm.isf(alpha)
    if method == "katz-log":
        return math.exp(math.log(p / q) - z * math.sqrt((1 - p) / x + (1 - q) / y))

    def statistic(ratio: float) -> float:
        w = (ratio * q / p) ** (1 / 3)
        return 3 * (1 - w) / math.sqrt((1 - p) / x + w**2 * (1 - q) / y) - z

    return optimize.brentq(statistic, 1e-12, p / q)


@given(st.integers(10, 99), st.integers(1, 79), st.sampled_from([0.2, 0.05, 0.01, 1e-4]))
def test_limits_are_the_textbook_ones(x: int, y: int, alpha: float) -> None:
    for method, (_, limit) in METHODS.items():
        assert float(limit(x, 100, y, 80, alpha)) == pytest.approx(oracle(method, x, 100, y, 80, alpha), rel=1e-6)


@given(*[st.integers(0, 50)] * 4, st.sampled_from([1e-9, 0.5, 0.95, 1 - 1e-12]), st.integers(1, 3))
def test_any_counts_give_a_finite_estimate(tp: int, fp: int, fn: int, tn: int, confidence: float, size: int) -> None:
    if tp + fn == 0 or fp + tn == 0:
        return
    for estimate, _ in METHODS.values():
        found = estimate(Counts(tp, fp, fn, tn, group_size=size), confidence=confidence)
        assert 0 <= found.epsilon < 20
        assert json.loads(json.dumps(json_values(found.to_dict())))["ratio_low"] == found.proof.ratio


@pytest.mark.parametrize("method", METHODS)
def test_limit_rises_with_successes_and_never_beyond_the_observed_ratio(method: str) -> None:
    """TensorFlow Privacy's form of Bailey's limit has a pole between these levels; there is nothing special there."""
    limit = METHODS[method][1]
    for alpha in np.geomspace(1e-6, 0.4, 30):
        limits = limit(np.arange(101), 100, 0, 100, alpha)
        assert np.all(np.isfinite(limits))
        assert np.all(np.diff(limits) >= 0)
        assert np.all(limits[1:] <= np.arange(1, 101) / 0.5)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_to_see(method: str) -> None:
    estimate = METHODS[method][0]
    for counts in (Counts(0, 0, 5, 5), Counts(5, 5, 0, 0), Counts(1, 0, 0, 1), Counts(0, 1, 1, 0), Counts(1, 1, 0, 0)):
        assert estimate(counts).epsilon == 0
    assert estimate(PairedRuns([1.0] * 9, [1.0] * 9)).epsilon == 0


@pytest.mark.parametrize("method", METHODS)
def test_groups_share_the_ratio(method: str) -> None:
    estimate = METHODS[method][0]
    one, four = (estimate(Counts(97, 2, 3, 98, group_size=size)) for size in (1, 4))
    assert four.epsilon == pytest.approx(one.epsilon / 4)


def violation_rate(limit: Callable, epsilon: float, fpr: float, ins: int, outs: int) -> float:
    """No simulation: the probability that the estimate exceeds the truth, summed over all outcomes."""
    tpr = PointClaim(epsilon).max_tpr(fpr).item()
    tp, fp = np.arange(ins + 1)[:, None], np.arange(outs + 1)[None, :]
    top, bottom = stats.binom.pmf(tp, ins, tpr), stats.binom.pmf(fp, outs, fpr)
    tp, fp = tp[top > 1e-10][:, None], fp[bottom > 1e-10][None, :]
    higher = limit(tp, ins, fp, outs, ALPHA / 2)
    lower = limit(outs - fp, outs, ins - tp, ins, ALPHA / 2)
    violated = np.maximum(higher, lower) > np.exp(epsilon) * (1 + 1e-9)
    return float(top[top > 1e-10] @ violated @ bottom[bottom > 1e-10])


@pytest.mark.parametrize(
    ("method", "epsilon", "fpr", "rate"),
    [
        ("katz-log", 0.0, 0.9994, 0.970),
        ("katz-log", 1.0, 0.0008, 0.089),
        ("bailey", 0.0, 0.934, 0.148),
        ("bailey", 2.0, 0.115, 0.060),
    ],
)
def test_coverage_breaks_at_least_favourable_pairs(method: str, epsilon: float, fpr: float, rate: float) -> None:
    """With 50 members and 20,000 others they are wrong more often than α allows: hence estimates, not bounds."""
    found = violation_rate(METHODS[method][1], epsilon, fpr, 50, 20_000)
    assert found == pytest.approx(rate, abs=2e-3)
    assert found > ALPHA


@pytest.mark.parametrize(("method", "epsilon", "fpr"), [("katz-log", 1.0, 0.0008), ("bailey", 0.0, 0.934)])
def test_coverage_breaks_in_simulated_audits(method: str, epsilon: float, fpr: float) -> None:
    rng, repetitions, wrong = np.random.default_rng(5), 800, 0
    mechanism = least_favourable(epsilon, 0.0)
    for _ in range(repetitions):
        out, member = mechanism.draw(rng, 20_000)
        found = METHODS[method][0](PairedRuns(out, member[:50]), thresholds=Fixed(-fpr))
        wrong += found.epsilon > epsilon + 1e-9
    assert stats.binomtest(wrong, repetitions, ALPHA, alternative="greater").pvalue < 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_results_are_labelled_estimates(method: str) -> None:
    rng = np.random.default_rng(0)
    runs = PairedRuns(rng.normal(size=200), rng.normal(3.0, size=200))
    found = METHODS[method][0](runs)
    assert found.kind is Kind.ESTIMATE
    assert found.method == f"{method}, asymptotic (split)"
    assert "an estimate, not a bound" in str(found)
    assert found == METHODS[method][0](runs, thresholds=Split())
    assert found.proof.rates in str(found.proof)


@pytest.mark.parametrize("method", METHODS)
def test_misuse_is_refused(method: str) -> None:
    estimate = METHODS[method][0]
    counts = Counts(tp=9, fp=1, fn=1, tn=9)
    for wrong in ({"delta": 1e-5}, {"delta": 1.0}, {"confidence": 0.0}, {"thresholds": Fixed(0.0)}):
        with pytest.raises(InvalidInput):
            estimate(counts, **wrong)
    with pytest.raises(InvalidInput, match="Split"):
        estimate(PairedRuns([0.0, 1.0], [1.0, 2.0]), thresholds=UnionBound())
    with pytest.raises(EvidenceMismatch):
        estimate(OneRun([0.1, 0.2], [0, 1]))
