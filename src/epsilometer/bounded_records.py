"""Records of a regression, in the domain for which sensitivities are proved: ‖x‖ ≤ 1 and |y| ≤ 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput

ROUNDING = 1e-9  # a row that was divided by its norm has norm 1 up to this


def bounded_records(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """The records as arrays, or an error that says which one is out of the domain."""
    rows, labels = _numbers("x", x), _numbers("y", y)
    if rows.ndim != 2 or 0 in rows.shape:
        raise InvalidInput("x", f"array of shape {rows.shape}", "a table: at least one row and one column")
    if labels.shape != (len(rows),):
        raise InvalidInput("y", f"array of shape {labels.shape}", f"one number for each of {len(rows)} rows of x")
    norms = np.linalg.norm(rows, axis=1)
    _require_at_most_one("x", "rows of norm", norms)
    _require_at_most_one("y", "numbers of size", np.abs(labels))
    return rows, labels


def example_records(records: int, features: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Rows that are uniform in the unit ball, and noisy values of a linear function of them.

    >>> x, y = example_records(records=100, features=5)
    >>> x.shape, bool(abs(y).max() <= 1)
    ((100, 5), True)
    """
    shape = validate.whole("records", records, least=1), validate.whole("features", features, least=1)
    rng = np.random.default_rng(validate.whole("seed", seed, least=0))
    x = rng.standard_normal(shape)
    x *= (rng.random(records) ** (1.0 / features) / np.linalg.norm(x, axis=1))[:, None]
    slope = rng.standard_normal(features)
    y = x @ (slope / np.linalg.norm(slope)) + 0.1 * rng.standard_normal(records)
    return x, np.clip(y, -1.0, 1.0)


def _numbers(argument: str, values: ArrayLike) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(argument, values, "numbers") from None
    if not np.isfinite(numbers).all():
        raise InvalidInput(argument, "NaN or infinity", "finite numbers", "a sensitivity needs bounded records")
    return numbers


def _require_at_most_one(argument: str, what: str, sizes: Floats) -> None:
    largest = int(np.argmax(sizes))
    if sizes[largest] > 1.0 + ROUNDING:
        found = f"{sizes[largest]:.6g} in record {largest}"
        remedy = f"clip each to 1, or divide {argument} by a bound that does not depend on the data"
        raise InvalidInput(argument, found, f"{what} at most 1", remedy)
