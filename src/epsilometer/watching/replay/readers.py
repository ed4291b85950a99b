"""A record changed where the script reads it: this also reaches what is computed before a training is made private."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

READERS = {
    "numpy": ("load", "loadtxt", "genfromtxt"),
    "pandas": ("read_csv", "read_table", "read_parquet", "read_feather", "read_json", "read_excel"),
    "sklearn.datasets": (
        "load_breast_cancer", "load_diabetes", "load_digits", "load_iris", "load_wine", "fetch_california_housing",
        "fetch_covtype", "fetch_openml", "make_blobs", "make_circles", "make_classification", "make_moons",
        "make_regression",
    ),
}  # fmt: skip
_LEAST = 20  # records: a smaller table is no data set
CHANGED: list[str] = []  # what was changed, in words


class _Reading:
    """Readers call others; the outermost one's table is what the script gets, and the first large one is changed."""

    depth = 0


def attach(module: Any, _: Any) -> None:
    """Readers of a module that was imported: one record is changed in what the first of them returns."""
    _attach(module, changes=True)


def follow(module: Any, _: Any) -> None:
    """The same in runs in which they return what they read."""
    _attach(module, changes=False)


def _attach(module: Any, *, changes: bool) -> None:
    for name in READERS[module.__name__]:
        if hasattr(module, name):
            setattr(module, name, _around(getattr(module, name), f"{module.__name__}.{name}", changes=changes))


def _around(read: Callable[..., Any], name: str, *, changes: bool) -> Callable[..., Any]:
    @functools.wraps(read)
    def call(*arguments: Any, **named: Any) -> Any:
        _Reading.depth += 1
        try:
            with innocent():
                found = read(*arguments, **named)
        finally:
            _Reading.depth -= 1
        if CHANGED or _Reading.depth or not changes:
            return found
        table, size = changed_table(found)
        if size:
            CHANGED.append(f"in what {name} returns, {size} records, one replaced by another")
        return table

    return call


def innocent() -> AbstractContextManager[None]:
    """What a reader draws makes up data or chooses some: no noise."""
    before = sys.modules.get("epsilometer.watching.replay.before")  # it is there once torch is
    return before.BEFORE[0].apart() if before is not None and before.BEFORE else nullcontext()


def changed_table(found: Any) -> tuple[Any, int]:
    """The same with one record replaced by another, features and label together, and how many records it has; as it
    is, and 0, if it is no table."""
    if isinstance(found, np.ndarray):
        (changed,), size = _replaced([found])
        return changed, size
    if isinstance(found, tuple) and found and all(isinstance(one, np.ndarray) for one in found):
        arrays, size = _replaced(list(found))
        return tuple(arrays), size
    if isinstance(found, Mapping) and isinstance(found.get("data"), np.ndarray):  # of scikit-learn
        names = [name for name, one in found.items() if isinstance(one, np.ndarray) and len(one) == len(found["data"])]
        arrays, size = _replaced([found[name] for name in names])
        for name, array in zip(names, arrays, strict=True):
            found[name] = array  # type: ignore[index]
        return found, size
    if hasattr(found, "iloc") and getattr(found, "ndim", 0) == 2 and len(found) >= _LEAST:
        row, other = _rows(len(found))
        order = np.arange(len(found))
        order[row] = other
        changed = found.iloc[order]
        changed.index = found.index
        return changed, len(found)
    return found, 0


def _replaced(arrays: list[Any]) -> tuple[list[Any], int]:
    sizes = {len(one) if one.ndim else 0 for one in arrays}
    size = sizes.pop()
    if sizes or size < _LEAST:
        return arrays, 0
    row, other = _rows(size)
    changed = [np.array(one) for one in arrays]
    for one in changed:
        one[row] = one[other]
    return changed, size


def _rows(size: int) -> tuple[int, int]:
    """Early ones: most splits keep them for training."""
    return size // 5, size // 2
