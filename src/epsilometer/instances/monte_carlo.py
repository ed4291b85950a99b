"""Means that were estimated: an upper confidence limit that assumes nothing but a cap."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats

_BISECTIONS = 60


def log_mean_limit(log_values: ArrayLike, log_cap: ArrayLike, confidence: float) -> Floats:
    """ln of an upper confidence limit on the mean of positive values of which none can exceed the cap.

    Values are given by their logarithms, draws along the first axis; each column has the stated confidence by itself.
    By Hoeffding (1963, Theorem 1): a mean of n independent values in [0, 1] with expectation u falls to a or below
    with probability at most exp(−n·kl(a, u)).

    >>> round(float(log_mean_limit(np.zeros(100), 0.0, 0.95)), 6)  # all at the cap
    0.0
    >>> round(float(np.exp(log_mean_limit(np.full(100, -np.inf), 0.0, 0.95))), 4)  # all 0: 1 − 0.05^(1/100)
    0.0295
    """
    values, cap = np.asarray(log_values, np.float64), np.asarray(log_cap, np.float64)
    validate.confidence(confidence)
    draws = len(values)
    mean = np.minimum(np.exp(special.logsumexp(values, axis=0) - math.log(draws) - cap), 1.0)
    allowed = -math.log1p(-confidence) / draws
    low, high = mean, np.ones_like(mean)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        beyond = _divergence(mean, middle) > allowed
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    limit: Floats = np.log(high) + cap
    return limit


def _divergence(a: Floats, u: Floats) -> Floats:
    """kl(a, u) of two coins."""
    divergence: Floats = special.rel_entr(a, u) + special.rel_entr(1.0 - a, 1.0 - u)
    return divergence
