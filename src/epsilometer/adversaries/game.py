"""What every adversary provides: a threat model, and a game crafted for a training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer.adversaries.powers import ThreatModel
from epsilometer.claims import Floats, Relation
from epsilometer.data import Dataset
from epsilometer.evidence import PairedRuns
from epsilometer.training import Recipe, Watcher

OUT, IN = 0, 1


class ScoringWatcher(Watcher, ABC):
    """Watches one training and says afterwards how much it looks like world 1 (see evidence.py)."""

    @abstractmethod
    def score(self) -> float: ...


@dataclass(frozen=True, eq=False)
class Game:
    """Two worlds that differ in `group_size` records under `relation`, and who watches a trial of each.

    Games with the same `out_identity` have the same world 0, data and scores; empty: nobody knows.
    """

    out_data: Dataset
    in_data: Dataset
    relation: Relation
    group_size: int
    watch: Callable[[int], ScoringWatcher]
    out_identity: str = ""

    def data(self, world: int) -> Dataset:
        return self.in_data if world == IN else self.out_data


class CanaryWatcher(Watcher, ABC):
    """Watches one training and gives a score for each canary: the higher, the more it looks included."""

    @abstractmethod
    def scores(self) -> Floats: ...


@dataclass(frozen=True, eq=False)
class CanaryGame:
    """Many canaries, each included by a fair coin: the data for given coins, and who watches that training.

    The watcher may toss coins of its own, from the seed that it is given.
    """

    canaries: int
    relation: Relation
    data: Callable[[NDArray[np.bool_]], Dataset]
    watch: Callable[[NDArray[np.bool_], np.random.SeedSequence], CanaryWatcher]
    group_size: int = 1


class Adversary(ABC):
    """Crafts a game. Subclasses are frozen dataclasses whose fields are the adversary's settings."""

    name: ClassVar[str]
    summary: ClassVar[str]
    threat: ClassVar[ThreatModel]
    gives: ClassVar[type] = PairedRuns  # the kind of evidence that its games end in

    def describe(self) -> str:
        """Its name, and the settings that are not the usual ones."""
        settings = [
            f"{field.name} = {getattr(self, field.name)}"
            for field in fields(self)  # type: ignore[arg-type]
            if getattr(self, field.name) != field.default
        ]
        return ", ".join([self.name, *settings])

    def reads(self, data: Dataset) -> dict[str, Any]:
        """What of the data decides its game beside records and labels."""
        return {}

    @property
    def needs(self) -> ThreatModel:
        """The powers that it needs with these settings."""
        return self.threat

    @property
    def group_size(self) -> int:
        """In how many records the worlds of its games differ."""
        return 1

    @abstractmethod
    def craft(
        self, recipe: Recipe, data: Dataset, relation: Relation, seed: np.random.SeedSequence
    ) -> Game | CanaryGame:
        """Prepare the worlds and the scoring, knowing the recipe and the data but no trial."""
