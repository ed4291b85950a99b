"""eˣ in compiled code, against double precision."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from epsilometer.training.exponential import exponential


@numba.njit(error_model="numpy")
def fill(x, out):
    for i in range(len(x)):
        out[i] = exponential(x[i])


def exponentials(values: np.ndarray) -> np.ndarray:
    out = np.empty_like(values)
    fill(values, out)
    return out


def in_last_places(found: np.ndarray, x: np.ndarray) -> float:
    """The largest error, in units of the last place."""
    exact = np.exp(x.astype(np.float64))
    return float(np.max(np.abs(found - exact) / np.spacing(exact.astype(np.float32))))


def test_it_is_within_two_units_of_the_last_place() -> None:
    rng = np.random.default_rng(0)
    small = rng.choice([-1, 1], 200_000) * 10.0 ** rng.uniform(-30, 1.9, 200_000)
    x = np.concatenate([rng.uniform(-87.336, 88.7228, 400_000), small]).astype(np.float32)
    x = x[x > np.float32(-87.336)]
    assert in_last_places(exponentials(x), x) < 2
    # Less precise arithmetic is seen: a product with ln 2 that is rounded, or a term of the polynomial too few.
    n = np.rint(x * np.float32(1 / math.log(2)))
    r = x - n * np.float32(math.log(2))
    assert in_last_places(np.ldexp(np.exp(r), n.astype(int)), x) > 10
    assert in_last_places(np.exp(x) * (1 - r**6 / 720), x) > 10


def test_neighbours_of_every_power_of_two_stay_in_order() -> None:
    """Where 2ⁿ changes, the smaller number still has the smaller power, up to rounding."""
    edges = (np.arange(-125, 127)[:, None] + 0.5) * math.log(2) + np.linspace(-1e-4, 1e-4, 41)
    x = np.sort(edges.astype(np.float32).ravel())
    found = exponentials(x)
    assert (np.diff(found) >= -2 * np.spacing(found[1:])).all()


@pytest.mark.parametrize(
    ("x", "expected"),
    [(0.0, 1.0), (-0.0, 1.0), (1e-45, 1.0), (-87.4, 0.0), (-1e30, 0.0), (-math.inf, 0.0), (88.73, math.inf),
     (1e30, math.inf), (math.inf, math.inf)],
)  # fmt: skip
def test_extremes(x: float, expected: float) -> None:
    assert exponentials(np.array([x], np.float32)).tolist() == [expected]


def test_not_a_number_stays_none() -> None:
    """Whatever its other bits are: a training that diverges must be seen."""
    some = np.array([0x7FC00000, 0x7F800001, 0xFFC12345, 0x7FFFFFFF], np.uint32).view(np.float32)
    assert np.isnan(exponentials(some)).all()


def test_double_precision_is_the_librarys() -> None:
    x = np.linspace(-700, 700, 1001)
    np.testing.assert_allclose(exponentials(x), np.exp(x), rtol=1e-15)
