"""The embedded default: 1797 handwritten digits of 8 × 8 pixels (UCI, shipped with scikit-learn)."""

from __future__ import annotations

import numpy as np

from epsilometer.data.dataset import Dataset


def digits() -> Dataset:
    """Ten classes, 64 pixels scaled to [0, 1].

    >>> len(digits()), digits().x.shape[1]
    (1797, 64)
    """
    from sklearn.datasets import load_digits  # takes a quarter of a second: only for those who train

    bunch = load_digits()
    x, y = (bunch.data / 16.0).astype(np.float32), bunch.target.astype(np.int64)
    return Dataset("digits", x, y, classes=10, class_names=tuple("0123456789"), shape=(8, 8))
