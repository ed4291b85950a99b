"""Certified test of a whole claim: does an error pair lie where the claim says that none can?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from epsilometer import checks
from epsilometer.bounds.clopper_pearson import error_pairs, limits
from epsilometer.bounds.result import ClaimTest
from epsilometer.bounds.thresholds import ThresholdStrategy
from epsilometer.claims import Claim, Floats, require_same_relation
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Counts, PairedRuns


def refute_curve(
    evidence: PairedRuns | Counts,
    claim: Claim,
    *,
    confidence: float = 0.95,
    thresholds: ThresholdStrategy | None = None,
    direction: str = "higher",
) -> ClaimTest:
    """Test a claim (a point or a whole curve) without any assumption beyond independent trials.

    A curve promises far more than one of its points, so it takes far fewer trials to refute.

    >>> from epsilometer.claims import GaussianClaim
    >>> test = refute_curve(Counts(tp=60, fp=5, fn=40, tn=95), GaussianClaim(0.5))
    >>> test.refuted
    True
    """
    require_same_relation("the claim", claim.relation, "the evidence", evidence.relation)
    pairs, kind, method = error_pairs(evidence, confidence, thresholds, direction, gaussian_strength)
    fpr_high, tpr_low = limits(pairs)
    allowed = claim.max_tpr(fpr_high, evidence.group_size)
    # The pair that goes furthest beyond the claim, or comes nearest to it, on a scale that is fair to the tails.
    with np.errstate(invalid="ignore"):
        ahead = gaussian_strength(fpr_high, tpr_low) - gaussian_strength(fpr_high, allowed)
    best = int(np.argmax(np.where(np.isnan(ahead), -np.inf, ahead)))
    return ClaimTest(
        refuted=bool(np.any(tpr_low > allowed)),
        claim=claim,
        confidence=confidence,
        method=method,
        kind=kind,
        pair=pairs[best],
        claimed_tpr=float(allowed[best]),
    )


def largest_noise_multiplier(
    evidence: PairedRuns | Counts,
    curve_of: Callable[[float], Claim],
    *,
    confidence: float = 0.95,
    thresholds: ThresholdStrategy | None = None,
    direction: str = "higher",
    least: float = 2.0**-7,
    most: float = 2.0**7,
    relative_tolerance: float = 1e-3,
) -> float:
    """The largest noise multiplier whose curve the evidence does not refute; infinite if it refutes none up to `most`.

    `curve_of` gives the claim of a training with a noise multiplier, for instance by an accountant; more
    noise must mean a stronger claim. The answer is an upper limit on the effective noise, with the stated
    confidence. The search stays between `least` and `most`.

    >>> from epsilometer.claims import GaussianClaim
    >>> counts = Counts(tp=60, fp=5, fn=40, tn=95)
    >>> round(largest_noise_multiplier(counts, lambda sigma: GaussianClaim(1 / sigma)), 2)
    0.83
    """
    checks.real("least", least, above=0)
    checks.real("most", most, above=least)
    pairs, _, _ = error_pairs(evidence, confidence, thresholds, direction, gaussian_strength)
    fpr_high, tpr_low = limits(pairs)

    def refuted(sigma: float) -> bool:
        claim = curve_of(sigma)
        require_same_relation("the claim", claim.relation, "the evidence", evidence.relation)
        return bool(np.any(tpr_low > claim.max_tpr(fpr_high, evidence.group_size)))

    low = high = float(np.sqrt(least * most))
    while not refuted(high):
        low, high = high, high * 2
        if high > most:
            return np.inf
    while refuted(low):
        low, high = low / 2, low
        if low < least:
            return high
    while high / low > 1.0 + relative_tolerance:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return high


def gaussian_strength(fpr_high: Floats, tpr_low: Floats) -> Floats:
    """Φ⁻¹(TPR) − Φ⁻¹(FPR): the μ of the Gaussian curve on which the limits lie.

    >>> gaussian_strength(np.array(0.05), np.array(0.26)).round(2).item()
    1.0
    """
    if np.any(~((fpr_high >= 0) & (fpr_high <= 1) & (tpr_low >= 0) & (tpr_low <= 1))):
        raise InvalidInput("rates", (fpr_high, tpr_low), "rates in [0, 1]")
    with np.errstate(invalid="ignore"):
        strength = special.ndtri(tpr_low) - special.ndtri(fpr_high)
    result: Floats = np.nan_to_num(strength, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return result
