"""Transposed copies in compiled code are what numpy makes of the same matrices."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from epsilometer.training import transpose


@numba.njit(error_model="numpy")
def turn(source, at, stride, rows, columns, target, to, step, add):
    transpose.turn(source.reshape(-1), at, stride, rows, columns, target.reshape(-1), to, step, add)


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_a_part_of_a_matrix_is_turned_into_a_part_of_another(kind: str, add: bool) -> None:
    """Bit for bit, with and without whole blocks of eight, and nothing around it is touched."""
    rng = np.random.default_rng(0)
    for rows, columns in ((0, 3), (1, 1), (7, 9), (8, 8), (16, 3), (3, 16), (33, 26)):
        source = rng.normal(size=(rows + 3, columns + 5)).astype(kind)
        target = rng.normal(size=(columns + 2, rows + 7)).astype(kind)
        expected = target.copy()
        part = source[1 : 1 + rows, 2 : 2 + columns].T
        expected[1 : 1 + columns, 4 : 4 + rows] = part + expected[1 : 1 + columns, 4 : 4 + rows] if add else part
        (_, stride), (_, step) = source.shape, target.shape
        turn(source, stride + 2, stride, rows, columns, target, step + 4, step, add)
        np.testing.assert_array_equal(target, expected, err_msg=f"{rows} × {columns}")
