"""API access (Nasr et al. 2021, adversary 1): a natural record, and its loss at the final model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer import checks
from epsilometer.adversaries.game import Adversary, Game, Prepared
from epsilometer.adversaries.target import Target, final_loss, natural_target
from epsilometer.claims import Relation
from epsilometer.subjects import Sees, Subject, ThreatModel


@dataclass(frozen=True)
class Api(Adversary):
    """A record of the data is there or not; the score is minus its loss at the final model.

    `record` is its row; a random one, if nothing is said. Under `replace` world 0 has it with another label.
    """

    record: int | None = None
    name: ClassVar[str] = "api"
    summary: ClassVar[str] = "a natural record, by its final loss (Nasr et al. 2021, adversary 1)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.PREDICTIONS, ())

    def __post_init__(self) -> None:
        if self.record is not None:
            checks.whole("record", self.record, least=0)

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        return natural_target(subject.data, self.record, seed).prepared()

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        target = Target.of(prepared)
        return Game(relation, target.inserted(subject.data, relation), lambda: final_loss(subject.loss, target))
