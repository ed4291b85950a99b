"""The first layer where records are almost all zeros (baskets, words), without the products with zeros.

Records are rows of a compressed matrix: record i has `cells[starts[i]:starts[i + 1]]` in those `columns`. A cell
meets all units of the first layer at once, so weights and gradients are turned: units lie side by side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

from epsilometer.training.kernels import inline
from epsilometer.training.models import Array
from epsilometer.training.transpose import turn

DENSE_ABOVE = 0.05  # share of all data's cells that are not 0; there a sum takes .5 to .7 of its dense time
TILE = 16  # records that are turned at once: rows of a batch lie so far apart that they share cache lines

Compressed = tuple[NDArray[np.int64], NDArray[np.int32], Array]  # starts, columns, cells


def compress(x: Array) -> Compressed:
    """The cells that are not 0, row by row; nothing at all where there are too many of them."""
    if np.count_nonzero(x) > DENSE_ABOVE * x.size:
        return nothing(x.dtype)
    records, columns = np.nonzero(x)
    starts = np.zeros(len(x) + 1, np.int64)
    np.cumsum(np.bincount(records, minlength=len(x)), out=starts[1:])
    return starts, columns.astype(np.int32), x[records, columns]


def nothing(kind: DTypeLike) -> Compressed:
    """What stands for records that are not compressed."""
    return np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, kind)


@inline
def turn_weights(theta, turned):
    """turned[i, j] gets the weight of input i for unit j of the first layer."""
    inputs, outputs = turned.shape
    turn(theta, 0, inputs, outputs, inputs, turned.reshape(-1), 0, outputs, False)


@inline
def outputs_of(compressed, rows, start, size, weights, tile, here):
    """here[j, r] gets the sum over cells of record r of cell times weights[column, j]."""
    starts, columns, cells = compressed
    outputs = weights.shape[1]
    for begin in range(0, size, TILE):
        end = min(begin + TILE, size)
        for r in range(begin, end):
            out, row = tile[r - begin], rows[start + r]
            for j in range(outputs):
                out[j] = 0
            for cell in range(starts[row], starts[row + 1]):
                value, weight = cells[cell], weights[columns[cell]]
                for j in range(outputs):
                    out[j] += value * weight[j]
        turn(tile.reshape(-1), 0, outputs, end - begin, outputs, here.reshape(-1), begin, here.shape[1], False)


@inline
def add_gradients(compressed, rows, start, size, errors, tile, turned, beta, total):
    """total[j·inputs + i] gets β times itself and the sum over records r of cell i times errors[j, r]."""
    starts, columns, cells = compressed
    inputs, outputs = turned.shape
    for i in range(inputs):
        for j in range(outputs):
            turned[i, j] = 0
    for begin in range(0, size, TILE):
        end = min(begin + TILE, size)
        turn(errors.reshape(-1), begin, errors.shape[1], outputs, end - begin, tile.reshape(-1), 0, outputs, False)
        for r in range(begin, end):
            error, row = tile[r - begin], rows[start + r]
            for cell in range(starts[row], starts[row + 1]):
                value, sums = cells[cell], turned[columns[cell]]
                for j in range(outputs):
                    sums[j] += value * error[j]
    turn(turned.reshape(-1), 0, outputs, inputs, outputs, total, 0, inputs, beta != 0.0)
