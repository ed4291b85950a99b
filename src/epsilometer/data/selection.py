"""Which records are asked for: some classes, and the first few records of each."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.errors import InvalidInput, unknown_name


@dataclass(frozen=True, eq=False)
class Selection:
    """Rows in their original order, their new labels, and the names of the classes kept."""

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    classes: int
    class_names: tuple[str, ...]


def class_labels(values: NDArray[np.generic], classes: int) -> NDArray[np.int64]:
    """The labels, once it is sure that they are whole numbers from 0 to `classes` − 1."""
    if values.dtype.kind not in "iub":
        raise InvalidInput("y", f"labels of type {values.dtype}", f"labels from 0 to {classes - 1}")
    if len(values) and not (values.min() >= 0 and values.max() < classes):
        raise InvalidInput("y", f"{values.min()}…{values.max()}", f"labels from 0 to {classes - 1}")
    return values.astype(np.int64)


def class_numbers(classes: Sequence[str | int] | None, total: int, names: tuple[str, ...]) -> list[int]:
    """The classes asked for, as numbers; None asks for all of them."""
    if classes is None:
        return list(range(total))
    if isinstance(classes, str) or not isinstance(classes, Sequence):
        raise InvalidInput("data.classes", classes, "a list of class names or numbers")
    asked = [_number(one, total, names) for one in classes]
    if len(asked) < 2:
        raise InvalidInput("data.classes", list(classes), "at least 2 classes")
    if len(set(asked)) < len(asked):
        raise InvalidInput("data.classes", list(classes), "each class once")
    return asked


def select(
    labels: NDArray[np.generic],
    total: int,
    names: tuple[str, ...] = (),
    classes: Sequence[str | int] | None = None,
    per_class: int | None = None,
) -> Selection:
    """The first `per_class` records of each of `classes`, relabelled in the order in which the classes are named.

    >>> select(np.array([2, 0, 2, 1, 0]), 3, ("a", "b", "c"), classes=["c", "a"], per_class=1)
    Selection(rows=array([0, 1]), labels=array([0, 1]), classes=2, class_names=('c', 'a'))
    """
    y = class_labels(labels, total)
    kept = class_numbers(classes, total, names)
    if per_class is not None:
        validate.whole("data.per_class", per_class, least=1)
    new = np.full(len(y), -1, dtype=np.int64)
    for number, old in enumerate(kept):
        rows = np.flatnonzero(y == old)
        if per_class is not None and per_class > len(rows):
            which = repr(names[old]) if names else old
            raise InvalidInput(
                "data.per_class", per_class, f"at most {len(rows)}", f"class {which} has {len(rows)} records"
            )
        new[rows[:per_class]] = number
    chosen = np.flatnonzero(new >= 0)
    return Selection(chosen, new[chosen], len(kept), tuple(names[old] for old in kept) if names else ())


def _number(asked: object, total: int, names: tuple[str, ...]) -> int:
    if isinstance(asked, str) and names:
        if asked not in names:
            raise unknown_name("data.classes", asked, names)
        return names.index(asked)
    if not isinstance(asked, bool) and isinstance(asked, numbers.Integral) and 0 <= int(asked) < total:
        return int(asked)
    known = f", or one of {', '.join(names)}" if names else ""
    raise InvalidInput("data.classes", asked, f"class numbers from 0 to {total - 1}{known}")
