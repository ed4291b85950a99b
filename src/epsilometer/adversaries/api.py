"""API access (Nasr et al. 2021, adversary 1): a natural record, and its loss at the final model."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epsilometer import validate
from epsilometer.adversaries.game import Adversary, Game, Prepared, drawn_games
from epsilometer.adversaries.target import Target, chosen_target, final_loss, natural_row, natural_target
from epsilometer.claims import Relation
from epsilometer.data import OwnRecord
from epsilometer.subjects import Controls, Insertion, Predicts, Sees, Subject, ThreatModel
from epsilometer.training import Array

RANDOM = "random"  # a record of its own for every trial


@dataclass(frozen=True)
class Api(Adversary):
    """A record is there or not; the score is minus its loss at the final model.

    `record` is its row in the data, or a file of the user's own with one record (.npz, .csv, .parquet), which comes to
    the data; a random row, if nothing is said, the same for all trials. With "random" every trial has a random row of
    its own (the average case, as in the paper), and whoever looks at the loss is told which. Under `replace` world 0
    has it with another label.
    """

    record: int | str | None = None
    name: ClassVar[str] = "api"
    summary: ClassVar[str] = "a natural record, by its final loss (Nasr et al. 2021, adversary 1)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.PREDICTIONS, ())
    capabilities = (Predicts,)

    def __post_init__(self) -> None:
        if self._own is None and self.record not in (None, RANDOM):
            validate.whole("record", self.record, least=0)

    @functools.cached_property
    def _own(self) -> OwnRecord | None:
        """Read once: the record travels to other processes, its file need not."""
        return OwnRecord.read(self.record) if isinstance(self.record, str) and self.record != RANDOM else None

    @property
    def needs(self) -> ThreatModel:
        return self.threat if self._own is None else ThreatModel(Sees.PREDICTIONS, (Controls.RECORDS,))

    def reads(self, data: Any) -> dict[str, Any]:
        if self.record == RANDOM:
            return {"member": "in its place"}  # it came last, once: other records were sampled then
        return {} if self._own is None else {"record_sha256": self._own.fingerprint()}

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        if self.record == RANDOM:
            natural_row(subject.data, None, seed)  # whether there are enough
            return {}
        record = self.record if isinstance(self.record, int) else self._own
        return chosen_target(subject.data, record, relation, seed).prepared()

    def pictured(self, subject: Subject, prepared: Prepared) -> list[tuple[str, Array]]:
        return [("the record", prepared["x"])] if prepared else []

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        data = subject.data

        def between(insert: Callable[[int, np.random.SeedSequence], Insertion], target: Target) -> Game:
            return Game(relation, insert, lambda: final_loss(subject.loss, target))

        def drawn(seed: np.random.SeedSequence) -> Game:
            """World 1 is the data as they are; world 0 lacks another record in every trial."""
            target = natural_target(data, None, seed)
            if relation is Relation.REPLACE:
                return between(target.inserted(data, relation), target)
            others = np.delete(np.arange(len(data)), target.row)
            return between(lambda world, _: Insertion(data, rows=None if world else others), target)

        if self.record == RANDOM:
            return drawn_games(relation, drawn)
        target = Target.of(prepared)
        return between(target.inserted(data, relation), target)
