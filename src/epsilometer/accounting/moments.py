"""The moments accountant of Abadi et al. (2016), as published."""

from __future__ import annotations

import math

from epsilometer.accounting.mechanism import DpSgd
from epsilometer.accounting.renyi import log_moment
from epsilometer.claims import Relation

LARGEST_LAMBDA = 32


def epsilon(mechanism: DpSgd, delta: float, relation: Relation) -> float:
    """min over whole λ ≤ 32 of (T·α(λ) + ln 1/δ)/λ.

    >>> round(epsilon(DpSgd(0.01, 4.0, 10_000), 1e-5, Relation.ADD_REMOVE), 4)
    1.2586
    """
    if delta == 0:
        return math.inf
    q, sigma = mechanism.sample_rate, mechanism.noise_multiplier
    return min(
        (mechanism.steps * log_moment(lam + 1.0, q, sigma, relation) + math.log(1.0 / delta)) / lam
        for lam in range(1, LARGEST_LAMBDA + 1)
    )
