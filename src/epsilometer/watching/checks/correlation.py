"""Exact tests of whether two pieces of noise are independent."""

from __future__ import annotations

import numpy as np
from scipy import special

from epsilometer.arrays import Floats


def chance_of(cosine: Floats, coordinates: Floats | int) -> Floats:
    """The probability of such a cosine, or a larger one of either sign, between independent directions.

    One of them may be anything; the other is uniform on the sphere, as noise of one scale is: cos² is Beta(½, (n−1)/2).

    >>> chance_of(np.array([0.0, 1.0]), 10)
    array([1., 0.])
    """
    rest = np.clip(1 - np.asarray(cosine, dtype=np.float64) ** 2, 0, 1)
    n = np.maximum(np.asarray(coordinates, dtype=np.float64), 1.5)  # one coordinate has no direction
    chance: Floats = np.where(np.asarray(coordinates) < 2, 1.0, special.betainc((n - 1) / 2, 0.5, rest))
    return chance


def chance_of_sum(total: Floats, variance: Floats, typical: Floats) -> Floats:
    """A limit on the probability of a sum of Gaussian terms whose variance, given the past, is known step by step.

    By the mixture martingale √(r/(v + r))·exp(s²/(2(v + r))) with r = `typical`, whose mean is 1 at any step.

    >>> float(chance_of_sum(np.array(50.0), np.array(100.0), np.array(100.0)).round(5))
    0.00273
    """
    rest = variance + typical
    chance: Floats = np.minimum(1.0, np.sqrt(rest / typical) * np.exp(-(total**2) / (2 * rest)))
    return chance
