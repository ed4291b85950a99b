"""What adversaries share who see nothing but the final model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.data import Dataset, RegressionData
from epsilometer.subjects import Model, Observer
from epsilometer.training import Array


class FinalOutputs(Observer):
    """A score, or one for each canary, from the final model's outputs at points that were chosen beforehand."""

    def __init__(self, points: Array, scored: Callable[[Array], float | Floats]) -> None:
        self._points, self._scored = points, scored
        self._score: float | Floats = float("nan")

    def finish(self, model: Model) -> None:
        self._score = self._scored(model.logits(self._points))

    def score(self) -> float | Floats:
        return self._score


def identity(data: Dataset | RegressionData, *points: object) -> str:
    """A hash of a world's data and of what its scores are made from."""
    digest = hashlib.sha256(data.fingerprint().encode())
    for point in points:
        digest.update(point.tobytes() if isinstance(point, np.ndarray) else repr(point).encode())
    return digest.hexdigest()
