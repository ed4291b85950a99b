"""What adversaries share who see nothing but the final model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from epsilometer.adversaries.game import ScoringWatcher
from epsilometer.claims import Floats
from epsilometer.data import Dataset
from epsilometer.training import Array, ModuleNetwork, Network


class FinalOutputs(ScoringWatcher):
    """A score from the final model's outputs at points that were chosen beforehand."""

    def __init__(self, network: Network | ModuleNetwork, points: Array, scored: Callable[[Array], float]) -> None:
        self._network, self._points, self._scored = network, points, scored
        self._score = float("nan")

    def finish(self, parameters: Array, projections: Floats) -> None:
        outputs = self._network.logits(parameters, self._points.astype(parameters.dtype))
        self._score = float(self._scored(outputs))

    def score(self) -> float:
        return self._score


def identity(data: Dataset, *points: object) -> str:
    """A hash of a world's data and of what its scores are made from."""
    digest = hashlib.sha256(data.fingerprint().encode())
    for point in points:
        digest.update(point.tobytes() if isinstance(point, np.ndarray) else repr(point).encode())
    return digest.hexdigest()
