"""Asymptotic estimates of ε from the ratio of two rates, as TensorFlow Privacy makes them: Katz-log and Bailey.

(ε, 0)-DP allows no test whose TPR/FPR or TNR/FNR exceeds e^ε. Both methods put an approximate limit on such a
ratio, for which there is no guarantee: with 50 trials of one world and 20,000 of the other, the truth of a
least-favourable pair is exceeded in up to 97 % (Katz-log) and 15 % (Bailey) of audits at a nominal 5 % (see the
tests). What they give is an estimate and cannot refute a claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from epsilometer.arrays import Floats
from epsilometer.bounds.bayesian import one_test
from epsilometer.bounds.result import Kind, LowerBound
from epsilometer.bounds.thresholds import ThresholdStrategy
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Counts, PairedRuns

Limit = Callable[[ArrayLike, int, ArrayLike, int, float], Floats]


@dataclass(frozen=True)
class RatioLimit:
    """An approximate lower limit on the ratio of two rates of one test."""

    threshold: float | None
    counts: Counts
    rates: str
    ratio: float

    def __str__(self) -> str:
        at = "" if self.threshold is None else f", score > {self.threshold:.6g}"
        return f"{self.rates} ≳ {self.ratio:.4g} ({self.counts}{at})"

    def to_dict(self) -> dict[str, Any]:
        member_if = None if self.threshold is None else "score > threshold"
        test = {"threshold": self.threshold, "member_if": member_if, "counts": self.counts.to_dict()}
        return {**test, "rates": self.rates, "ratio_low": self.ratio}


def katz_log(
    evidence: PairedRuns | Counts,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    thresholds: ThresholdStrategy | None = None,
) -> LowerBound:
    """An estimate of ε: ln of Katz's limit on TPR/FPR or TNR/FNR (Katz et al. 1978; Lu et al. 2022 for audits).

    Each ratio gets half of α (TensorFlow Privacy gives all of it to both), and scores need a threshold that was not
    chosen on the trials counted: `Fixed`, or `Split()` (the default). Ratios know no δ but 0.

    >>> print(katz_log(Counts(tp=970, fp=20, fn=30, tn=980)))
    ε ≈ 3.448 at δ = 0 (add-remove): an estimate, not a bound; katz-log, asymptotic (counts)
    """
    return _estimate("katz-log", katz_log_limit, evidence, delta, confidence, thresholds)


def bailey(
    evidence: PairedRuns | Counts,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    thresholds: ThresholdStrategy | None = None,
) -> LowerBound:
    """An estimate of ε: ln of Bailey's limit on TPR/FPR or TNR/FNR (Bailey 1987); else as `katz_log`.

    >>> print(bailey(Counts(tp=970, fp=20, fn=30, tn=980)))
    ε ≈ 3.476 at δ = 0 (add-remove): an estimate, not a bound; bailey, asymptotic (counts)
    """
    return _estimate("bailey", bailey_limit, evidence, delta, confidence, thresholds)


def katz_log_limit(first: ArrayLike, trials: int, second: ArrayLike, others: int, alpha: float) -> Floats:
    """About the (1 − α)-lower limit on p₁/p₂, from `first` of `trials` and `second` of `others` successes.

    The logarithm of the observed ratio is taken as normal. No success counts as half of one below the line.

    >>> katz_log_limit([100, 90], 110, [10, 5], 80, alpha=0.05).round(4).tolist()
    [4.4596, 6.3971]
    """
    x, y = np.broadcast_arrays(np.asarray(first, np.float64), np.asarray(second, np.float64))
    full = (x == trials) & (y == others)  # the variance would be 0
    x, y = np.where(full, trials - 0.5, x), np.where(full, others - 0.5, np.maximum(y, 0.5))
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(1.0 / x - 1.0 / trials + 1.0 / y - 1.0 / others)
        limit = (x / trials) / (y / others) * np.exp(special.ndtri(alpha) * spread)
    return np.where(x > 0, limit, 0.0)


def bailey_limit(first: ArrayLike, trials: int, second: ArrayLike, others: int, alpha: float) -> Floats:
    """About the (1 − α)-lower limit on p₁/p₂: as `katz_log_limit`, but the cube roots are taken as normal.

    With r the observed ratio, w = (p₁/(p₂·r))^⅓ and relative variances a and b it is the least w that solves
    (1 − w)² = (z/3)²·(a + b·w²). Written as below it has no pole where (z/3)²·b = 1, unlike the usual form.

    >>> bailey_limit([100, 90], 110, [10, 5], 80, alpha=0.05).round(4).tolist()
    [4.6195, 6.8765]
    """
    x, y = np.broadcast_arrays(np.asarray(first, np.float64), np.asarray(second, np.float64))
    x, y = np.minimum(x, trials - 0.5), np.clip(y, 0.5, others - 0.5)
    third = -special.ndtri(alpha) / 3.0
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = 1.0 / x - 1.0 / trials, 1.0 / y - 1.0 / others
        rest = np.maximum(1.0 - third**2 * a, 0.0)  # 0: too few successes for a limit
        root = rest / (1.0 + third * np.sqrt(a + b * rest))
    return np.where(x > 0, (x / trials) / (y / others) * root**3, 0.0)


def _estimate(
    name: str,
    limit: Limit,
    evidence: PairedRuns | Counts,
    delta: float,
    confidence: float,
    thresholds: ThresholdStrategy | None,
) -> LowerBound:
    pair, source = one_test(name, evidence, delta, confidence, thresholds)
    if delta != 0:
        raise InvalidInput("delta", delta, "0 with a ratio of rates", "use bayesian or a certified bound for δ > 0")
    c, alpha = pair.counts, (1.0 - confidence) / 2
    ratios = {
        "TPR/FPR": float(limit(c.tp, c.in_trials, c.fp, c.out_trials, alpha)),
        "TNR/FNR": float(limit(c.tn, c.out_trials, c.fn, c.in_trials, alpha)),
    }
    rates = max(ratios, key=lambda key: ratios[key])
    size, proof = evidence.group_size, RatioLimit(pair.threshold, c, rates, ratios[rates])
    epsilon = math.log(max(1.0, proof.ratio)) / size  # worlds that differ in k records have ratios up to e^{kε}
    method = f"{name}, asymptotic ({source})"
    return LowerBound(epsilon, delta, confidence, evidence.relation, method, Kind.ESTIMATE, proof, size, evidence.unit)
