"""Differencing: two sums that differ in one record give it away; with noise, up to the noise of both."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput


def noisy_sum(records: ArrayLike, noise_std: float, rng: np.random.Generator) -> Floats:
    """The sum of all records (a row each), with normal noise of that deviation in every coordinate.

    The Gaussian mechanism, if no record's norm exceeds some C and `noise_std` is a noise multiplier times C.
    """
    rows = np.asarray(records, np.float64)
    if rows.ndim != 2:
        raise InvalidInput("records", f"shape {rows.shape}", "a matrix with a row a record")
    validate.real("noise_std", noise_std, above=0, below=math.inf, closed="[", remedy="0 means exact sums")
    total: Floats = rows.sum(axis=0) + noise_std * rng.standard_normal(rows.shape[1])
    return total


def difference(larger: ArrayLike, smaller: ArrayLike) -> Floats:
    """The record that the first sum has and the second has not; unbiased, whatever the others are.

    Of sums that were released several times (a row each) the means are compared: m releases of each leave 2s²/m of
    mean squared error in every coordinate where one has noise of deviation s, so noise that nobody counts protects
    nobody.

    >>> records = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> difference(records.sum(axis=0), records[:2].sum(axis=0)).tolist()
    [5.0, 6.0]
    """
    one, other = (np.atleast_2d(np.asarray(sums, np.float64)) for sums in (larger, smaller))
    if one.ndim != 2 or other.ndim != 2 or one.shape[1] != other.shape[1]:
        expected = "sums of records of one kind"
        raise InvalidInput("larger, smaller", f"shapes {one.shape} and {other.shape}", expected)
    found: Floats = one.mean(axis=0) - other.mean(axis=0)
    return found
