"""What every adversary provides: a threat model, and a game against a subject."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from epsilometer.claims import Relation
from epsilometer.deprecated import renamed_attributes
from epsilometer.evidence import Evidence, PairedRuns
from epsilometer.subjects import Capability, Insertion, Observer, Subject, ThreatModel

Prepared = Mapping[str, NDArray[Any]]  # what an adversary has made before the first trial


@dataclass(frozen=True, eq=False)
class Game:
    """What is put into a trial of each side, and who looks.

    A side is what the adversary's kind of evidence has trials of: a world (0 or 1), or coins, one a canary. An
    insertion may draw from the seed that it is given; the observer is told neither side nor seed. Sides differ in
    `group_size` units under `relation`: in rows of the subject's data, unless `unit` says in what else. A trial ends in
    `scores` numbers. Games with the same `out_identity` have the same world 0, data and scores; empty: nobody knows.

    A game may be drawn anew for every trial (`drawn`, see `drawn_games`): by somebody who is told neither side nor
    index, so that all sides play games of one law, and whoever looks may know which game it is.
    """

    relation: Relation
    insert: Callable[[Any, np.random.SeedSequence], Insertion]
    observe: Callable[[], Observer]
    group_size: int = 1
    scores: int = 1
    out_identity: str = ""
    drawn: Callable[[np.random.SeedSequence], Game] | None = None
    unit: str | None = None

    def parties(
        self,
        sides: Iterable[Any],
        inserting: Sequence[np.random.SeedSequence],
        drawing: Sequence[np.random.SeedSequence],
    ) -> list[tuple[Insertion, Observer]]:
        """Who puts something in and who looks, for each side; no seed is made for those who do not look at it."""
        if self.drawn is not None:
            games = [self.drawn(seed) for seed in drawing]
            return [
                (game.insert(side, seed), game.observe())
                for game, side, seed in zip(games, sides, inserting, strict=True)
            ]
        if (worlds := getattr(self.insert, "worlds", None)) is not None:  # `TwoWorlds`
            return [(worlds[side], self.observe()) for side in sides]
        return [(self.insert(side, seed), self.observe()) for side, seed in zip(sides, inserting, strict=True)]


@dataclass(frozen=True, eq=False)
class TwoWorlds:
    """What is put into worlds 0 and 1, where nothing of it is drawn."""

    worlds: tuple[Insertion, Insertion]

    def __call__(self, world: int, seed: np.random.SeedSequence) -> Insertion:
        return self.worlds[world]


def two_worlds(out_data: Any, in_data: Any) -> TwoWorlds:
    """Worlds that differ in their records, and in nothing else."""
    return TwoWorlds((Insertion(out_data), Insertion(in_data)))


def drawn_games(relation: Relation, draw: Callable[[np.random.SeedSequence], Game]) -> Game:
    """A game that is another one in every trial: `draw` makes it from a seed and is not told the side.

    If every game of `draw` is between neighbours, a mechanism that keeps (ε, δ)-DP, or a curve, keeps it here too,
    also towards those who are told which game was drawn: what they see has the hockey-stick divergence that the games
    have on average. The trials of a side are independent and of one law, as they are of one game.
    """

    def insert(side: Any, seed: np.random.SeedSequence) -> Insertion:
        return draw(seed).insert(side, seed)

    def observe() -> Observer:
        raise TypeError("a game that is drawn has an observer in a trial only: see Game.parties")

    return Game(relation, insert, observe, drawn=draw)


class Adversary(ABC):
    """Makes a game. Subclasses are frozen dataclasses whose fields are the adversary's settings."""

    name: ClassVar[str]
    summary: ClassVar[str]
    threat: ClassVar[ThreatModel]
    capabilities: ClassVar[tuple[type[Capability], ...]] = ()  # of a subject, without which it cannot play
    evidence_type: ClassVar[type[Evidence]] = PairedRuns  # the kind of evidence that its games end in
    zeroes: ClassVar[bool] = False  # under zero-out world 0 has a record without a gradient, and batches stay
    least_settings: ClassVar[Mapping[str, Any]] = {}  # with which it needs the least powers, where not the usual ones
    sized_by: ClassVar[str] = ""  # the setting that says how many of the data's records have a coin
    fields_since: ClassVar[tuple[str, ...]] = ()  # settings that are newer than stored plans: in a plan only where used

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        renamed_attributes(cls, {"gives": "evidence_type", "later": "fields_since", "modest": "least_privileged"})

    def describe(self) -> str:
        """Its name, and the settings that are not the usual ones."""
        settings = [
            f"{field.name} = {getattr(self, field.name)}"
            for field in fields(self)  # type: ignore[arg-type]
            if getattr(self, field.name) != field.default
        ]
        return ", ".join([self.name, *settings])

    def reads(self, data: Any) -> dict[str, Any]:
        """What of the data decides its game beside records and labels."""
        return {}

    @classmethod
    def least_privileged(cls) -> Self:
        """With the settings that need the least powers."""
        return cls(**cls.least_settings)

    def fitted(self, records: int, said: Iterable[str] = ()) -> Self:
        """With coins for half of so many records at most, unless somebody has said for how many."""
        if not self.sized_by or self.sized_by in said:
            return self
        return replace(self, **{self.sized_by: min(getattr(self, self.sized_by), records // 2)})  # type: ignore[type-var]

    @property
    def needs(self) -> ThreatModel:
        """The powers that it needs with these settings."""
        return self.threat

    @property
    def requires(self) -> tuple[type[Capability], ...]:
        """The capabilities that a subject must offer to it, with these settings."""
        return self.capabilities

    def lacks(self, subject: Subject) -> list[type[Capability]]:
        """Those of them that a subject does not offer."""
        return [one for one in self.requires if subject.offers(one) is None]

    @property
    def group_size(self) -> int:
        """In how many units (records, users) the worlds of its games differ."""
        return 1

    def scores_a_trial(self, subject: Subject) -> int | None:
        """How many scores a trial gives, if that is known without preparing anything."""
        return self.evidence_type.scores_a_trial

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        """All that is drawn or dear, made once and kept with the run: arrays, from which `craft` makes the game."""
        return {}

    def arranged(self, subject: Subject, evidence: Any, trials: int) -> Any:
        """The evidence of so many trials, with what only the adversary knows of how its scores are arranged."""
        return evidence

    def pictured(self, subject: Subject, prepared: Prepared) -> Sequence[tuple[str, NDArray[Any]]]:
        """Records that it puts in, with a name each: for a picture, where records are such."""
        return ()

    @abstractmethod
    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        """The game, knowing the subject and what was prepared, but no trial; quick, and nothing in it is random."""

    def game(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Game:
        """Both in one."""
        return self.craft(subject, relation, self.prepare(subject, relation, seed))
