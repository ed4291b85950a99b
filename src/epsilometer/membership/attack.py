"""What every membership attack has: its name, what it needs, and scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from epsilometer.arrays import Floats
from epsilometer.evidence import Coins
from epsilometer.membership.signals import Signals
from epsilometer.training import Labels


@dataclass(frozen=True, eq=False)
class Seen:
    """All that an attacker is shown. Who was in the target is no part of it, so no score can know.

    `references` have a first axis, one a model, and `member` says who was in each of them. `population` has records
    that are in no model: the target's signals of them, and `reference_population` the references'.
    """

    y: Labels
    classes: int
    target: Signals
    population: Signals
    population_y: Labels
    references: Signals
    reference_population: Signals
    member: Coins  # models × records


class Attack(ABC):
    """Scores records by what is seen; higher means member. A frozen dataclass, whose fields are its settings."""

    name: ClassVar[str]
    summary: ClassVar[str]
    least_references: ClassVar[int] = 0
    least_population: ClassVar[int] = 0
    reads: ClassVar[tuple[str, ...]] = ()  # signals, one of which at least there must be (see `signals.py`)
    asks: ClassVar[bool] = False  # for the labels of noisy copies
    white_box: ClassVar[bool] = False

    @abstractmethod
    def scores(self, seen: Seen) -> Floats:
        """One for each record of the target."""
