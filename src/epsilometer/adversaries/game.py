"""What every adversary provides: a threat model, and a game crafted for a training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.training import Recipe, Watcher

OUT, IN = 0, 1


class ScoringWatcher(Watcher, ABC):
    """Watches one training and says afterwards how much it looks like world 1 (see evidence.py)."""

    @abstractmethod
    def score(self) -> float: ...


@dataclass(frozen=True, eq=False)
class Game:
    """Two worlds that differ in `group_size` records under `relation`, and who watches a trial of each."""

    out_data: Dataset
    in_data: Dataset
    relation: Relation
    group_size: int
    watch: Callable[[int], ScoringWatcher]

    def data(self, world: int) -> Dataset:
        return self.in_data if world == IN else self.out_data


@dataclass(frozen=True)
class ThreatModel:
    """What an adversary sees, controls and knows, in plain words."""

    sees: str
    controls: str
    knows: str


class Adversary(ABC):
    """Crafts a game. Subclasses are frozen dataclasses whose fields are the adversary's settings."""

    name: ClassVar[str]
    summary: ClassVar[str]
    threat: ClassVar[ThreatModel]

    @abstractmethod
    def craft(self, recipe: Recipe, data: Dataset, relation: Relation, seed: np.random.SeedSequence) -> Game:
        """Prepare the worlds and the scoring, knowing the recipe and the data but no trial."""
