"""Membership inference by loss (Yeom et al. 2018; Jayaraman & Evans 2019), played as a game that certifies an ε."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer import validate
from epsilometer.adversaries.final_model import FinalOutputs
from epsilometer.adversaries.game import Adversary, Game, Prepared
from epsilometer.arrays import Floats
from epsilometer.claims import Relation
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Coins, OneRun
from epsilometer.subjects import Insertion, Predicts, Sees, Subject, ThreatModel
from epsilometer.training import Array, record_losses


@dataclass(frozen=True)
class MembershipAttack(Adversary):
    """Natural records, each in the training by a fair coin; "member" means a loss below the mean training loss.

    The score is the mean loss of the records that are in anyway less the record's own, so that Yeom's threshold is
    0. His attacker is told the mean over *all* members; that number has seen the coins without any noise, and an ε
    that rests on it would not be the training's. With the others' mean, nothing but the model has seen them.

    `records` may be all but one of the data. With `threshold = 0` in the audit every record is guessed, and the
    bound is one on the attack's accuracy; without it, the surest guesses count.
    """

    records: int = 1000
    name: ClassVar[str] = "membership"
    summary: ClassVar[str] = "natural records, guessed by their loss (Yeom et al. 2018)"
    evidence_type = OneRun
    sized_by: ClassVar[str] = "records"
    threat: ClassVar[ThreatModel] = ThreatModel(
        Sees.PREDICTIONS, (), knows="the records, and which of the others are in"
    )
    capabilities = (Predicts,)

    def __post_init__(self) -> None:
        validate.whole("records", self.records, least=1)

    def scores_a_trial(self, subject: Subject) -> int:
        return self.records

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        if relation is Relation.REPLACE:
            raise InvalidInput("relation", relation.value, "add-remove or zero-out: a coin puts a record in or not")
        if self.records >= len(subject.data):
            expected = f"fewer than the {len(subject.data)} records of {subject.data.name}"
            raise InvalidInput("records", self.records, expected)
        return {"order": np.random.default_rng(seed).permutation(len(subject.data))}

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        data, order = subject.data, prepared["order"]
        tossed, others = order[: self.records], np.sort(order[self.records :])

        def insert(coins: Coins, _: np.random.SeedSequence) -> Insertion:
            kept = np.sort(np.concatenate([others, tossed[coins]]))
            return Insertion(data, rows=kept)

        def below_mean(outputs: Array) -> Floats:
            losses = record_losses(outputs, data.y, subject.loss)
            scores: Floats = losses[others].mean() - losses[tossed]
            return scores

        return Game(relation, insert, lambda: FinalOutputs(data.x, below_mean), scores=self.records)
