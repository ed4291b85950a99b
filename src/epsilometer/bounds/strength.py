"""How strong an attack was, in one number. For planning: nothing here certifies anything."""

from __future__ import annotations

import math

from scipy import special

from epsilometer.claims import GaussianClaim, PointClaim
from epsilometer.evidence import PairedRuns
from epsilometer.metrics import area, area_limit
from epsilometer.neighbours import AnyNeighbours, Relation

# What a power assumes that is computed for both of `attacks_of_strength`, as said of a figure and without one.
EITHER = "if scores are Gaussian or those of randomized response"
SHAPES = "the lower of the figures for Gaussian and for randomized-response scores"


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


def attacks_of_strength(
    mu: float, times: float = 1.0, relation: AnyNeighbours = Relation.ADD_REMOVE
) -> tuple[GaussianClaim, PointClaim]:
    """What two attacks attain that are `times` as strong as one whose area under the curve is that of μ.

    The first has Gaussian scores, N(0, 1) and N(μ, 1): μ is multiplied. The second is randomized response, which
    answers yes or no: the area is e^ε/(1 + e^ε), and ε is multiplied.

    >>> gaussian, response = attacks_of_strength(0.485, times=2.0)
    >>> round(gaussian.mu, 2), round(response.epsilon, 2)
    (0.97, 1.1)
    """
    place = mu / math.sqrt(2.0)  # of the area, Φ(μ/√2); so ε is its logit
    epsilon = float(special.log_ndtr(place) - special.log_ndtr(-place))
    gaussian = GaussianClaim(times * mu, relation)  # type: ignore[arg-type]
    return gaussian, PointClaim(times * epsilon, 0.0, relation)  # type: ignore[arg-type]


def area_under_curve(evidence: PairedRuns) -> float:
    """How often a score of the in-world exceeds one of the out-world; equal ones count half.

    >>> area_under_curve(PairedRuns([0.0, 1.0], [1.0, 2.0]))
    0.875
    """
    return area(evidence.out_scores, evidence.in_scores).value
