"""Records and labels, frozen."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsilometer import validate
from epsilometer.data.selection import class_labels, select
from epsilometer.errors import InvalidInput

if TYPE_CHECKING:
    from epsilometer.data.features import Extractor


@dataclass(frozen=True, eq=False)
class Dataset:
    """`x`: one row of features a record (float32); `y`: its class, 0 to `classes` − 1.

    `shape` is a record's before it was flattened, channels first; empty for plain vectors. `held_out` are records of
    the same kind that no training sees: an adversary's own, for shadow models and for probes. Neighbours and subsets
    have none.
    """

    name: str
    x: NDArray[np.float32]
    y: NDArray[np.int64]
    classes: int
    class_names: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    held_out: Dataset | None = None

    def __post_init__(self) -> None:
        validate.whole("classes", self.classes, least=2)
        try:
            x, y = np.array(self.x, dtype=np.float32), np.array(self.y)
        except (TypeError, ValueError):
            raise InvalidInput("x, y", self.name, "a matrix of numbers and a label for each row") from None
        if x.ndim != 2 or y.shape != (len(x),):
            shapes = f"shapes {x.shape} and {y.shape}"
            raise InvalidInput("x, y", shapes, "a matrix of records and as many labels")
        _finite(x)
        if self.class_names and len(set(self.class_names)) != self.classes:
            raise InvalidInput("class_names", self.class_names, f"{self.classes} different names, or none")
        if self.shape and math.prod(self.shape) != x.shape[1]:
            raise InvalidInput("shape", self.shape, f"one of {x.shape[1]} features")
        others = self.held_out
        if others is not None and (others.x.shape[1], others.classes) != (x.shape[1], self.classes):
            expected = f"records of {x.shape[1]} features and {self.classes} classes, as the data are"
            raise InvalidInput("held_out", others, expected)
        for name, values in (("x", x), ("y", class_labels(y, self.classes))):
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    def __repr__(self) -> str:
        kind, features = type(self).__name__, self.x.shape[1]
        return f"{kind}({self.name}: {len(self)} records, {features} features, {self.classes} classes)"

    def __len__(self) -> int:
        return len(self.x)

    def plus(self, x: ArrayLike, y: int, copies: int = 1) -> Dataset:
        """The neighbour with `copies` copies of one more record, at the end."""
        validate.whole("copies", copies, least=1)
        row = np.asarray(x, dtype=np.float32)
        if row.shape != self.x.shape[1:]:
            raise InvalidInput("x", f"shape {row.shape}", f"a record of shape {self.x.shape[1:]}")
        if np.ndim(y) != 0:
            raise InvalidInput("y", y, "the class of one record")
        rows = np.repeat(_finite(row)[None], copies, axis=0)
        labels = np.repeat(class_labels(np.array([y]), self.classes), copies)
        return self._with(np.concatenate([self.x, rows]), np.concatenate([self.y, labels]))

    def without(self, row: int) -> Dataset:
        """The neighbour that lacks one record; the others keep their order."""
        validate.whole("row", row, least=0, most=len(self) - 1)
        return self._with(np.delete(self.x, row, axis=0), np.delete(self.y, row))

    def with_rows(self, rows: ArrayLike, x: ArrayLike, y: ArrayLike) -> Dataset:
        """The data with record(s) `x` of class(es) `y` in place of the records at `rows`, which are distinct."""
        places = np.atleast_1d(np.asarray(rows))
        whole = places.ndim == 1 and places.dtype.kind in "iu"
        if not (whole and places.size and places.min() >= 0 and places.max() < len(self)):
            raise InvalidInput("rows", rows, f"row numbers from 0 to {len(self) - 1}")
        if len(np.unique(places)) < len(places):
            raise InvalidInput("rows", rows, "each row once")
        records, labels = np.asarray(x, dtype=np.float32), np.asarray(y)
        count, features = len(places), self.x.shape[1]
        if records.shape not in ((features,), (count, features)) or labels.shape not in ((), (count,)):
            shapes = f"shapes {records.shape} and {labels.shape}"
            raise InvalidInput("x, y", shapes, f"1 or {count} records of {features} features, and 1 or {count} labels")
        new_x, new_y = self.x.copy(), self.y.copy()
        new_x[places], new_y[places] = _finite(records), class_labels(np.atleast_1d(labels), self.classes)
        return self._with(new_x, new_y)

    def subset(self, classes: Sequence[str | int] | None = None, per_class: int | None = None) -> Dataset:
        """Only these classes, relabelled in the order given, and of each only the first `per_class` records."""
        chosen = select(self.y, self.classes, self.class_names, classes, per_class)
        return Dataset(
            self.name, self.x[chosen.rows], chosen.labels, chosen.classes, chosen.class_names, self.shape
        )  # fmt: skip

    def taken(self, rows: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Dataset:
        """Only the records at these rows, in this order; or those for which it says true."""
        places = np.arange(len(self))[rows] if isinstance(rows, slice) else np.asarray(rows)
        if places.ndim != 1:
            raise InvalidInput("rows", f"shape {places.shape}", "row numbers, or true and false for each record")
        return self._with(self.x[places], self.y[places])

    def holding_out(self, per_class: int) -> Dataset:
        """The data without the last `per_class` records of each class, which are `held_out`."""
        validate.whole("data.held_out", per_class, least=1)
        counts = np.bincount(self.y, minlength=self.classes)
        if per_class >= counts.min():
            expected = f"fewer than the {counts.min()} records of class {counts.argmin()} of {self.name}"
            raise InvalidInput("data.held_out", per_class, expected)
        kept_back = np.concatenate([np.flatnonzero(self.y == label)[-per_class:] for label in range(self.classes)])
        others = np.setdiff1d(np.arange(len(self)), kept_back)
        return replace(self.taken(others), held_out=self.taken(np.sort(kept_back)))

    def _with(self, x: NDArray[np.float32], y: NDArray[np.int64]) -> Dataset:
        """Other records under the same names: plain data, whatever the data are now.

        They are new arrays of what was checked: a game that draws its neighbours makes two for every trial, and would
        pay for copies and checks of all records more than for the training.
        """
        made = object.__new__(Dataset)
        fields: dict[str, object] = {"x": x, "y": y, "held_out": None}
        for name in ("name", "classes", "class_names", "shape"):
            fields[name] = getattr(self, name)
        x.flags.writeable = y.flags.writeable = False
        for name, value in fields.items():
            object.__setattr__(made, name, value)
        return made

    @property
    def as_they_were(self) -> Dataset:
        """The records before something frozen made features of them, if something did."""
        return self

    @property
    def features_by(self) -> Extractor | None:
        """What made features of the records, if something did."""
        return None

    def origin(self) -> dict[str, str]:
        """What else may decide what an adversary does with the data; nothing, for plain records."""
        return {}

    def fingerprint(self) -> str:
        """SHA-256 of the records, their labels and their order."""
        digest = hashlib.sha256(f"{self.x.shape}{self.classes}".encode())
        digest.update(np.ascontiguousarray(self.x, "<f4").tobytes())
        digest.update(np.ascontiguousarray(self.y, "<i8").tobytes())
        return digest.hexdigest()


def _finite(x: NDArray[np.float32]) -> NDArray[np.float32]:
    if not np.isfinite(x).all():
        raise InvalidInput("x", "NaN or infinity", "finite features")
    return x
