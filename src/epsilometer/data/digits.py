"""The embedded default: 1797 handwritten digits of 8 × 8 pixels (UCI, shipped with scikit-learn)."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path

import numpy as np

from epsilometer.data.dataset import Dataset
from epsilometer.errors import InvalidInput


def digits() -> Dataset:
    """Ten classes, 64 pixels scaled to [0, 1].

    >>> len(digits()), digits().x.shape[1]
    (1797, 64)
    """
    with gzip.open(_file(), "rt") as rows:
        table = np.loadtxt(rows, delimiter=",", dtype=np.int64)
    x, y = (table[:, :-1] / 16.0).astype(np.float32), table[:, -1]
    return Dataset("digits", x, y, classes=10, class_names=tuple("0123456789"), shape=(8, 8))


def _file() -> Path:
    """As `sklearn.datasets.load_digits` has it, found without importing scikit-learn: that takes a second."""
    package = importlib.util.find_spec("sklearn")
    for folder in (package.submodule_search_locations if package else None) or ():
        if (path := Path(folder) / "datasets" / "data" / "digits.csv.gz").is_file():
            return path
    raise InvalidInput("data.name", "digits", "scikit-learn with its data files", "pip install scikit-learn")
