"""Records with a number each in place of a class, frozen."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epsilometer.arrays import Floats
from epsilometer.bounded_records import bounded_records


@dataclass(frozen=True, eq=False)
class RegressionData:
    """`x`: a row of features a record, of norm at most 1; `y`: its number, from −1 to 1. Both in double precision: what
    is known in closed form is compared with what is measured.

    >>> data = RegressionData("two records", [[1.0, 0.0], [0.0, 0.5]], [1.0, -0.5])
    >>> data, len(data.plus([0.0, 1.0], 0.25))
    (RegressionData(two records: 2 records, 2 features), 3)
    """

    name: str
    x: Floats
    y: Floats

    def __init__(self, name: str, x: ArrayLike, y: ArrayLike) -> None:
        object.__setattr__(self, "name", name)
        for argument, given in zip(("x", "y"), bounded_records(x, y), strict=True):
            values = given.copy()
            values.flags.writeable = False
            object.__setattr__(self, argument, values)

    def __repr__(self) -> str:
        return f"RegressionData({self.name}: {len(self)} records, {self.x.shape[1]} features)"

    def __len__(self) -> int:
        return len(self.x)

    def plus(self, x: ArrayLike, y: float) -> RegressionData:
        """The neighbour with one more record, at the end."""
        return RegressionData(self.name, np.vstack([self.x, x]), np.append(self.y, y))

    def without(self, row: int) -> RegressionData:
        """The neighbour that lacks one record; the others keep their order."""
        return RegressionData(self.name, np.delete(self.x, row, axis=0), np.delete(self.y, row))

    def replaced(self, row: int, x: ArrayLike, y: float) -> RegressionData:
        """The neighbour in which one record has another value.

        >>> RegressionData("two records", [[1.0], [0.5]], [1.0, -1.0]).replaced(0, [0.0], 0.5).y.tolist()
        [0.5, -1.0]
        """
        rows, numbers = self.x.copy(), self.y.copy()
        rows[row], numbers[row] = x, y
        return RegressionData(self.name, rows, numbers)

    def fingerprint(self) -> str:
        """SHA-256 of the records and their order."""
        digest = hashlib.sha256(str(self.x.shape).encode())
        for values in (self.x, self.y):
            digest.update(np.ascontiguousarray(values, "<f8").tobytes())
        return digest.hexdigest()
