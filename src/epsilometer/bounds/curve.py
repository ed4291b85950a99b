"""Certified test of a whole claim: does an error pair lie where the claim says that none can?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from epsilometer import checks
from epsilometer.bounds.clopper_pearson import error_pairs, limits, require_independent_trials
from epsilometer.bounds.result import ClaimTest, NoiseLimit
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
    require_independent_trials("refute_curve", evidence)
    if not isinstance(claim, Claim):
        raise InvalidInput("claim", claim, "a claim such as PointClaim(epsilon, delta)")
    require_same_relation("the claim", claim.relation, "the evidence", evidence.relation)
    pairs, kind, method = error_pairs(evidence, confidence, thresholds, direction, gaussian_strength)
    fpr_high, fnr_high = limits(pairs)
    allowed = claim.max_tpr(fpr_high, evidence.group_size)
    # The pair that goes furthest beyond the claim, or comes nearest to it, on a scale that is fair to the tails.
    with np.errstate(invalid="ignore"):
        ahead = gaussian_strength(fpr_high, fnr_high) - gaussian_strength(fpr_high, 1.0 - allowed)
    best = int(np.argmax(np.where(np.isnan(ahead), -np.inf, ahead)))
    return ClaimTest(
        refuted=bool(np.any(1.0 - fnr_high > allowed)),
        claim=claim,
        confidence=confidence,
        method=method,
        kind=kind,
        proof=pairs[best],
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
) -> NoiseLimit:
    """The largest noise multiplier whose curve the evidence does not refute; infinite if it refutes none up to `most`.

    `curve_of` gives the claim of a training with a noise multiplier, for instance by an accountant; more
    noise must mean a stronger claim. The answer is an upper limit on the effective noise, with the stated
    confidence. The search stays between `least` and `most`.

    >>> from epsilometer.claims import GaussianClaim
    >>> counts = Counts(tp=60, fp=5, fn=40, tn=95)
    >>> largest_noise_multiplier(counts, lambda sigma: GaussianClaim(1 / sigma))
    NoiseLimit(noise multiplier ≤ 0.831, certified, 0.95 confidence, clopper-pearson (counts))
    """
    checks.real("least", least, above=0)
    checks.real("most", most, above=least)
    require_independent_trials("largest_noise_multiplier", evidence)
    pairs, kind, method = error_pairs(evidence, confidence, thresholds, direction, gaussian_strength)
    fpr_high, fnr_high = limits(pairs)

    def refuted(sigma: float) -> bool:
        claim = curve_of(sigma)
        require_same_relation("the claim", claim.relation, "the evidence", evidence.relation)
        return bool(np.any(1.0 - fnr_high > claim.max_tpr(fpr_high, evidence.group_size)))

    low = high = float(np.sqrt(least * most))
    while not refuted(high):
        low, high = high, high * 2
        if high > most:
            return NoiseLimit(np.inf, confidence, method, kind)
    while refuted(low):
        low, high = low / 2, low
        if low < least:
            break
    while low >= least and high / low > 1.0 + relative_tolerance:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return NoiseLimit(high, confidence, method, kind)


def gaussian_strength(fpr: Floats, fnr: Floats) -> Floats:
    """−Φ⁻¹(FNR) − Φ⁻¹(FPR): the μ of the Gaussian curve on which the rates lie.

    >>> gaussian_strength(np.array(0.05), np.array(0.74)).round(2).item()
    1.0
    """
    with np.errstate(invalid="ignore"):
        strength = -special.ndtri(fnr) - special.ndtri(fpr)
    result: Floats = np.nan_to_num(strength, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return result
