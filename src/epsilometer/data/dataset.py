"""Records and labels, frozen."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsilometer import checks
from epsilometer.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Dataset:
    """`x`: one row of features a record (float32); `y`: its class, 0 to `classes` − 1."""

    name: str
    x: NDArray[np.float32]
    y: NDArray[np.int64]
    classes: int

    def __post_init__(self) -> None:
        checks.whole("classes", self.classes, least=2)
        try:
            x, y = np.array(self.x, dtype=np.float32), np.array(self.y)
        except (TypeError, ValueError):
            raise InvalidInput("x, y", self.name, "a matrix of numbers and a label for each row") from None
        if x.ndim != 2 or y.shape != (len(x),):
            shapes = f"shapes {x.shape} and {y.shape}"
            raise InvalidInput("x, y", shapes, "a matrix of records and as many labels")
        if not np.isfinite(x).all():
            raise InvalidInput("x", "NaN or infinity", "finite features")
        if len(y) and not (y.dtype.kind in "iub" and y.min() >= 0 and y.max() < self.classes):
            labels = f"{y.min()}…{y.max()} ({y.dtype})"
            raise InvalidInput("y", labels, f"labels from 0 to {self.classes - 1}")
        y = y.astype(np.int64)
        for name, values in (("x", x), ("y", y)):
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    def __repr__(self) -> str:
        return f"Dataset({self.name}: {len(self)} records, {self.x.shape[1]} features, {self.classes} classes)"

    def __len__(self) -> int:
        return len(self.x)

    def plus(self, x: ArrayLike, y: int, copies: int = 1) -> Dataset:
        """The neighbour with `copies` copies of one more record, at the end."""
        checks.whole("copies", copies, least=1)
        row = np.asarray(x, dtype=np.float32)
        if row.shape != self.x.shape[1:]:
            raise InvalidInput("x", f"shape {row.shape}", f"a record of shape {self.x.shape[1:]}")
        rows = np.repeat(row[None], copies, axis=0)
        labels = np.full(copies, y, dtype=np.int64)
        return Dataset(self.name, np.concatenate([self.x, rows]), np.concatenate([self.y, labels]), self.classes)

    def fingerprint(self) -> str:
        """SHA-256 of the records, their labels and their order."""
        digest = hashlib.sha256(f"{self.x.shape}{self.classes}".encode())
        digest.update(np.ascontiguousarray(self.x, "<f4").tobytes())
        digest.update(np.ascontiguousarray(self.y, "<i8").tobytes())
        return digest.hexdigest()
