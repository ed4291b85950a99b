"""Data of the user's own: arrays, a torch data set, or a file (.npz, .csv, .parquet)."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.data.dataset import Dataset
from epsilometer.data.unpacking import require_small_members
from epsilometer.data.untrusted_files import FAILURES
from epsilometer.errors import InvalidInput, one_line

LABELS = ("y", "label", "labels", "target", "targets", "class")  # names of what is to be predicted
FEATURES = ("x", "features", "data", "images")
SUFFIXES = (".npz", ".csv", ".parquet")


def own_data(given: Any, name: str = "") -> Dataset:
    """The records as a `Dataset`; labels of any kind become classes 0, 1, …, in sorted order.

    >>> own_data(([[0.0, 1.0], [2.0, 3.0]], ["no", "yes"])).class_names
    ('no', 'yes')
    """
    if isinstance(given, Dataset):
        return given
    if isinstance(given, str | Path):
        return _file(Path(given))
    if isinstance(given, Mapping):
        return _dataset(name or "own data", *_of_arrays(given, "data"))
    if hasattr(given, "__getitem__") and hasattr(given, "__len__") and not isinstance(given, tuple | list | np.ndarray):
        given = _items(given)  # a torch data set, or whatever looks like one
    if not (isinstance(given, tuple | list) and len(given) == 2):
        expected = "(x, y), a torch data set of such pairs, or a file (.npz, .csv, .parquet)"
        raise InvalidInput("data", type(given).__name__, expected)
    return _dataset(name or "own data", *given)


def _items(given: Any) -> tuple[Any, Any]:
    """A torch data set, item by item."""
    try:
        x, y = zip(*(given[i] for i in range(len(given))), strict=True)
        return np.stack([np.asarray(one) for one in x]), np.array([np.asarray(label).item() for label in y])
    except (TypeError, ValueError, KeyError, IndexError) as error:
        expected = f"a data set of (features, label) pairs ({one_line(str(error))})"
        raise InvalidInput("data", type(given).__name__, expected) from None


def _file(path: Path) -> Dataset:
    return _dataset(path.stem, *read_pairs(path))


def read_pairs(path: Path) -> tuple[Any, Any]:
    """Features and labels of a file, as they stand there."""
    if path.suffix not in SUFFIXES:
        raise InvalidInput("data", str(path), f"a file that ends in {', '.join(SUFFIXES)}")
    try:
        if path.suffix == ".npz":
            return _of_arrays(_npz(path), path.name)
        columns = _csv(path) if path.suffix == ".csv" else _parquet(path)
    except OSError as error:
        raise InvalidInput(
            "data", str(path), f"a readable file ({error.strerror or error})", "check the path"
        ) from None
    found = [name for name in columns if name.lower() in LABELS]
    if len(found) != 1:
        expected = f"one column named {', '.join(LABELS[:-1])} or {LABELS[-1]}"
        raise InvalidInput(path.name, f"columns {list(columns)[:8]}", expected, "rename the column to predict")
    labels = columns.pop(found[0])
    if not columns:
        raise InvalidInput(path.name, "one column", "features beside the label")
    try:
        x = np.column_stack([np.asarray(values, np.float64) for values in columns.values()])
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            path.name, one_line(str(error)), "numbers in every feature", "encode texts as numbers"
        ) from None
    return x, labels


def _npz(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:  # numpy leaves broken ones open
            require_small_members(path, [name for field in archive.files for name in (field, f"{field}.npy")])
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise
    except FAILURES as error:
        expected = f"arrays of numbers saved by numpy.savez ({one_line(str(error))})"
        raise InvalidInput("data", str(path), expected) from None


def _of_arrays(arrays: Mapping[str, Any], what: str) -> tuple[Any, Any]:
    lower = {key.lower(): value for key, value in arrays.items()}
    x = next((lower[key] for key in FEATURES if key in lower), None)
    y = next((lower[key] for key in LABELS if key in lower), None)
    if x is None or y is None:
        expected = f"arrays x and y (or {', '.join(FEATURES[1:])}; {', '.join(LABELS[1:])})"
        raise InvalidInput(what, f"arrays {list(arrays)[:8]}", expected, "numpy.savez('my.npz', x=x, y=y) writes them")
    return x, y


def _csv(path: Path) -> dict[str, Sequence[Any]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file, skipinitialspace=True) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput("data", str(path), f"a CSV file in UTF-8 ({one_line(str(error))})") from None
    header = [name.strip() for name in rows[0]] if rows else []
    if len(rows) < 2 or len(set(header)) != len(header):
        raise InvalidInput(path.name, header, "a header of different names, and rows below it")
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise InvalidInput(f"{path.name}, row {number}", row, f"{len(header)} values")
    # A column without a name is the row number that some programs write: no feature.
    return {name: [row[i].strip() for row in rows[1:]] for i, name in enumerate(header) if name}


def _parquet(path: Path) -> dict[str, Sequence[Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise InvalidInput(
            "data", str(path), "pyarrow to be installed", "pip install 'epsilometer[parquet]', or use .npz or .csv"
        ) from None
    try:
        table = parquet.read_table(path)
    except ArrowException as error:
        raise InvalidInput("data", str(path), f"a Parquet file ({one_line(str(error))})") from None
    return {name: table.column(name).to_pylist() for name in table.column_names}


def _dataset(name: str, x: Any, y: Any) -> Dataset:
    try:
        features = np.asarray(x, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput("x", one_line(str(error)), "numbers, one row a record") from None
    labels = np.asarray(y)
    if features.ndim < 2 or labels.shape != (len(features),):
        raise InvalidInput(
            "x, y", f"shapes {features.shape} and {labels.shape}", "a row of features and one label for each record"
        )
    if labels.dtype.kind == "f":
        if not np.isfinite(labels).all() or np.any(labels != np.round(labels)):
            expected = "classes: whole numbers or names"
            raise InvalidInput("y", "numbers with fractions", expected, "cut values to be predicted into classes")
        labels = labels.astype(np.int64)
    if labels.dtype.kind not in "iubUSO":
        raise InvalidInput("y", f"array of {labels.dtype}", "classes: whole numbers or names")
    shown = np.array([str(label) for label in labels]) if labels.dtype.kind in "SO" else labels
    kinds, classes = np.unique(shown, return_inverse=True)
    if len(kinds) < 2:
        raise InvalidInput("y", f"{len(kinds)} class", "at least two classes")
    shape = features.shape[1:] if features.ndim > 2 else ()
    flat = features.reshape(len(features), math.prod(features.shape[1:]))
    names = tuple(str(kind) for kind in kinds)
    return Dataset(name, flat, classes.astype(np.int64), len(kinds), names, shape)
