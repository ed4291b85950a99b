"""How much of a task is in features: the test accuracy of a linear classifier on them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.errors import InvalidInput
from epsilometer.training.losses import accuracy
from epsilometer.training.models import Array


def linear_probe(
    x: Array, y: NDArray[np.int64], test_x: Array, test_y: NDArray[np.int64], ridge: float = 1e-3
) -> float:
    """By least squares on one-hot labels, with features of mean 0 and variance 1: no search, the same every time.

    >>> x = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> linear_probe(x, np.array([0, 0, 1, 1]), np.array([[2.0], [9.0]]), np.array([0, 1]))
    1.0
    """
    validate.real("ridge", ridge, above=0)
    if x.shape[1:] != test_x.shape[1:] or not len(x) or not len(test_x):
        shapes = f"shapes {x.shape} and {test_x.shape}"
        raise InvalidInput("x, test_x", shapes, "records of one kind, some to learn from and some to judge by")
    centre, spread = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
    spread[spread == 0] = 1.0
    known, asked = ((values - centre) / spread for values in (x, test_x))
    wanted = np.eye(int(max(y.max(), test_y.max())) + 1)[y]
    gram = known.T @ known / len(known) + ridge * np.eye(known.shape[1])
    weights = np.linalg.solve(gram, known.T @ (wanted - wanted.mean(axis=0)) / len(known))
    return accuracy(asked @ weights + wanted.mean(axis=0), test_y)
