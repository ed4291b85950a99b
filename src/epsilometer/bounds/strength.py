"""How strong an attack was, in one number. For planning: nothing here certifies anything."""

from __future__ import annotations

import math

from scipy import special

from epsilometer.attacks import area, area_limit
from epsilometer.evidence import PairedRuns


def attack_strength(evidence: PairedRuns, confidence: float = 0.95) -> float:
    """A lower limit on the attack's μ, had its scores the area under the curve of N(0, 1) against N(μ, 1).

    μ = √2·Φ⁻¹(AUC). The AUC's limit is a normal approximation on the logit scale with the larger of two variances
    (DeLong et al. 1988, Hanley & McNeil 1982); 0 where the attack is not better than guessing.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> round(attack_strength(PairedRuns(rng.normal(size=5000), rng.normal(1.0, size=5000))), 2)
    0.99
    """
    low = area_limit(evidence.out_scores, evidence.in_scores, confidence)
    return max(0.0, math.sqrt(2.0) * float(special.ndtri(low)))


def area_under_curve(evidence: PairedRuns) -> float:
    """How often a score of the in-world exceeds one of the out-world; equal ones count half.

    >>> area_under_curve(PairedRuns([0.0, 1.0], [1.0, 2.0]))
    0.875
    """
    return area(evidence.out_scores, evidence.in_scores).value
