"""Credible interval for ε from the outcomes of one test (Zanella-Béguelin et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.bounds.clopper_pearson import error_pairs, require_independent_trials
from epsilometer.bounds.rates import epsilon_from_rates
from epsilometer.bounds.result import ErrorPair, Kind, LowerBound
from epsilometer.bounds.thresholds import Split, ThresholdStrategy
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Counts, PairedRuns

# Probabilities that are dense in both tails: normal quantiles from −8 to 8, beyond which lies a mass of 1e-15.
_LEVELS: Floats = special.ndtr(np.linspace(-8.0, 8.0, 801))


@dataclass(frozen=True)
class CredibleInterval:
    """Where the ε that one test's true rates need lies a posteriori; what is left is shared equally by both sides."""

    threshold: float | None
    counts: Counts
    low: float
    high: float

    def __str__(self) -> str:
        at = "" if self.threshold is None else f", score > {self.threshold:.6g}"
        return f"ε of this test in [{self.low:.3f}, {self.high:.3f}] ({self.counts}{at})"

    def to_dict(self) -> dict[str, Any]:
        member_if = None if self.threshold is None else "score > threshold"
        counts, interval = self.counts.to_dict(), [self.low, self.high]
        return {"threshold": self.threshold, "member_if": member_if, "counts": counts, "interval": interval}


def bayesian(
    evidence: PairedRuns | Counts,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    thresholds: ThresholdStrategy | None = None,
) -> LowerBound:
    """The lower end of the equal-tailed credible interval for ε; the proof has both ends.

    A posteriori FPR ~ Beta(½ + FP, ½ + TN) and FNR ~ Beta(½ + FN, ½ + TP), independently (Jeffreys' prior), and
    ε is the least at which (ε, δ)-DP allows the two rates, by the test or by its opposite (Zanella-Béguelin et al.
    2023, "Bayesian estimation of differential privacy"). Each end leaves (1 − confidence)/2 outside, so the lower
    end alone holds with more than `confidence`. The upper end speaks of this test only: a better attack may need
    more. The posterior is integrated, not sampled: the same counts always give the same numbers. Scores need a
    threshold that was not chosen on the trials counted: `Fixed`, or `Split()` (the default).

    >>> found = bayesian(Counts(tp=1000, fp=0, fn=0, tn=1000), delta=1e-5, confidence=0.9)
    >>> print(found)
    ε ≥ 7.207 at δ = 1e-05 (add-remove), credible, 0.9 confidence, bayesian (counts)
    >>> print(found.proof)
    ε of this test in [7.207, 14.501] (TP 1000, FP 0, FN 0, TN 1000)
    """
    pair, source = one_test("bayesian", evidence, delta, confidence, thresholds)
    counts, size, tail = pair.counts, evidence.group_size, (1.0 - confidence) / 2
    fpr, fnr = _Rate(counts.fp, counts.tn), _Rate(counts.fn, counts.tp)
    tnr, tpr = _Rate(counts.tn, counts.fp), _Rate(counts.tp, counts.fn)

    def exceeds(epsilon: float) -> float:
        """P[ε of the rates > epsilon]: the two corners of the unit square that (epsilon, δ) forbids."""
        return _forbidden(fpr, fnr, epsilon, delta, size) + _forbidden(tnr, tpr, epsilon, delta, size)

    def quantile(mass_above: float) -> float:
        low, high = 0.0, 1.0
        if exceeds(low) <= mass_above:
            return low
        while exceeds(high) > mass_above and high < 512.0:  # e^512 is far beyond what any counts can show
            low, high = high, 2 * high
        while high - low > 1e-7 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if exceeds(middle) > mass_above else (low, middle)
        return low

    proof = CredibleInterval(pair.threshold, counts, quantile(1.0 - tail), quantile(tail))
    method = f"bayesian ({source})"
    return LowerBound(
        proof.low, delta, confidence, evidence.relation, method, Kind.CREDIBLE, proof, size, evidence.unit
    )


def one_test(
    method: str, evidence: PairedRuns | Counts, delta: float, confidence: float, thresholds: ThresholdStrategy | None
) -> tuple[ErrorPair, str]:
    """The test whose counts a method may take as they are, and where it comes from."""
    validate.delta(delta)
    require_independent_trials(method, evidence)
    strategy = Split() if thresholds is None and evidence.has_scores else thresholds
    if strategy is not None and not getattr(strategy, "one_test", False):
        remedy = f"{method} takes counts of one test, chosen without the trials that it counts"
        raise InvalidInput("thresholds", strategy, "Fixed(threshold) or Split()", remedy)

    def epsilons(fpr_high: Floats, fnr_high: Floats) -> Floats:
        return epsilon_from_rates(fpr_high, fnr_high, delta, evidence.group_size)

    [pair], _, _ = error_pairs(evidence, confidence, strategy, "higher", epsilons)
    return pair, "counts" if strategy is None else strategy.name


class _Rate:
    """A posterior law, its quantiles and what they lack to 1: a rate near 1 is known as well as one near 0."""

    def __init__(self, successes: int, others: int) -> None:
        self.a, self.b = 0.5 + successes, 0.5 + others
        self.quantiles: Floats = special.betaincinv(self.a, self.b, _LEVELS)
        self.rests: Floats = special.betaincinv(self.b, self.a, _LEVELS[::-1])

    def cdf(self, value: Floats, rest: Floats) -> Floats:
        upper = value > rest
        a, b = np.where(upper, self.b, self.a), np.where(upper, self.a, self.b)
        mass: Floats = special.betainc(a, b, np.minimum(value, rest))
        return np.where(upper, 1.0 - mass, mass)


def _forbidden(fpr: _Rate, fnr: _Rate, epsilon: float, delta: float, size: int) -> float:
    """P[FNR < trade-off function of (ε, δ) at FPR] = ∫ P[FNR < f(x)] dP[FPR ≤ x].

    One of the laws may be a thousand times narrower than the other, so the nodes are the quantiles of FPR and
    those of FNR, mapped by f (which is its own inverse): neither factor then jumps from one node to the next.
    The kinks of f are nodes too, because perfect tests have all their mass around one of them.
    """
    kinks = [(1.0 - delta) / (1.0 + np.exp(epsilon))]
    while len(kinks) < size:
        kinks.append(max(0.0, np.exp(-epsilon) * (kinks[-1] - delta)))
    mapped, mapped_rests = _trade_off(fnr.quantiles, fnr.rests, epsilon, delta, size)
    x = np.concatenate([fpr.quantiles, mapped, kinks])
    rests = np.concatenate([fpr.rests, mapped_rests, 1.0 - np.array(kinks)])
    order = np.lexsort((-rests, x))
    x, rests = x[order], rests[order]
    mass, height = fpr.cdf(x, rests), fnr.cdf(*_trade_off(x, rests, epsilon, delta, size))
    return float(np.sum(np.diff(mass) * (height[1:] + height[:-1])) / 2)


def _trade_off(fpr: Floats, rest: Floats, epsilon: float, delta: float, size: int) -> tuple[Floats, Floats]:
    """(f, 1 − f) at FPR for groups of `size`, as `Claim.max_tpr`, but without losing what is near 0 or 1."""
    tpr, fnr = fpr, rest
    for _ in range(size):
        direct, complement = np.exp(epsilon) * tpr + delta, np.exp(-epsilon) * (fnr - delta)
        fnr = np.clip(np.maximum(1.0 - direct, complement), 0.0, 1.0)
        tpr = np.clip(np.minimum(direct, 1.0 - complement), 0.0, 1.0)
    return fnr, tpr
