"""Rényi moments of one step of DP-SGD, by numerical integration."""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy import special

from epsilometer.claims import Relation

MOST_POINTS = 2e4  # orders for which the grid would have over a hundred times as many points are left out

# Means of the Gaussians that a record contributes in each of two worlds; None where it contributes nothing.
# Under `replace` the worst pair of gradients is opposite (as in dp-accounting's REPLACE_ONE).
_SHIFTS = {
    Relation.ADD_REMOVE: (1.0, 0.0),
    Relation.ZERO_OUT: (1.0, 0.0),
    Relation.REPLACE: (1.0, -1.0),
}


@functools.lru_cache(maxsize=4096)
def log_moment(order: float, sample_rate: float, noise_multiplier: float, relation: Relation) -> float:
    """ln max(E_Q (P/Q)^order, E_P (Q/P)^order): (order − 1) times the Rényi divergence of one step.

    P and Q are the mixtures (1−q)·N(0, σ²) + q·N(±1 or 0, σ²). The trapezoidal rule is exponentially
    accurate for such smooth, fast-falling integrands; its end points lie far beyond every peak (2·order + 1).
    """
    if noise_multiplier < order / MOST_POINTS:  # no noise to speak of, and no room for the integral
        return math.inf
    shifts = _SHIFTS[relation]
    reach = 2.0 * order + 1.0 + 14.0 * noise_multiplier
    width = noise_multiplier / 32.0
    x = np.arange(-math.ceil(reach / width), math.ceil(reach / width) + 1) * width
    log_p, log_q = (log_mixture(x, shift, sample_rate, noise_multiplier) for shift in shifts)
    there = special.logsumexp(order * log_p + (1.0 - order) * log_q)
    back = special.logsumexp(order * log_q + (1.0 - order) * log_p)
    return max(0.0, float(max(there, back)) + math.log(width))


def log_mixture(x: np.ndarray, shift: float, q: float, sigma: float) -> np.ndarray:
    """ln of the density of (1−q)·N(0, σ²) + q·N(shift, σ²)."""
    norm = -math.log(sigma * math.sqrt(2.0 * math.pi))
    absent = -0.5 * (x / sigma) ** 2 + norm
    present = -0.5 * ((x - shift) / sigma) ** 2 + norm
    with np.errstate(divide="ignore"):
        mixture: np.ndarray = np.logaddexp(np.log1p(-q) + absent, np.log(q) + present)
    return mixture
