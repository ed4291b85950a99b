"""A crafted gradient seen through the final model only (GC-R of Cebere et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer.adversaries.game import IN, Adversary, Game, ScoringWatcher
from epsilometer.adversaries.gradient import absence
from epsilometer.adversaries.powers import Controls, Sees, ThreatModel
from epsilometer.claims import Floats, Relation
from epsilometer.data import Dataset
from epsilometer.training import Array, Recipe, network_for


@dataclass(frozen=True)
class HiddenState(Adversary):
    """Inserts a gradient of norm C on one random parameter with probability q at each step; models stay hidden.

    The score is how far that parameter of the final model has moved against it. What the steps in between would
    have told is lost unless every one of them has the canary, which is so without subsampling.
    """

    name: ClassVar[str] = "hidden-state"
    summary: ClassVar[str] = "crafted gradient on a random parameter, sees the final model (Cebere et al. 2025, GC-R)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.FINAL_MODEL, (Controls.GRADIENTS,))

    def craft(self, recipe: Recipe, data: Dataset, relation: Relation, seed: np.random.SeedSequence) -> Game:
        direction = np.zeros(network_for(recipe, data).parameters)
        direction[np.random.default_rng(seed).integers(len(direction))] = recipe.clip_norm
        absent = absence(relation)
        return Game(data, data, relation, 1, lambda world: _Moved(direction, 1.0 if world == IN else absent))


class _Moved(ScoringWatcher):
    def __init__(self, direction: Floats, times: float) -> None:
        self._place = int(np.argmax(direction))
        self._score = float("nan")
        if times:
            self.inserted = times * direction

    def finish(self, parameters: Array, projections: Floats) -> None:
        self._score = -float(parameters[self._place])

    def score(self) -> float:
        return self._score
