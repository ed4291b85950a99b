"""Access to intermediate models (Nasr et al. 2021, adversary 3): the static poison, seen at every checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epsilometer import validate
from epsilometer.adversaries.game import Adversary, Game, Prepared
from epsilometer.adversaries.held_out import require_source
from epsilometer.adversaries.static_poison import read_by_shadows, static_poison
from epsilometer.adversaries.target import STATISTICS, Checkpoints, Target
from epsilometer.claims import Relation
from epsilometer.errors import unknown_name
from epsilometer.subjects import Capability, Controls, KnowsNetwork, Predicts, Sees, Subject, ThreatModel
from epsilometer.training import Array


@dataclass(frozen=True)
class Intermediate(Adversary):
    """The poison of `static-poison`; the score is minus its mean (or largest, or last) loss over all models.

    The paper found `max` better for ε ≤ 2 and `mean` above. To let a pilot decide, and pay for it, give a list.
    """

    statistic: str = "mean"
    shadows: int = 8
    shadow_data: str = "same"
    name: ClassVar[str] = "intermediate"
    summary: ClassVar[str] = "the static poison, seen at all checkpoints (Nasr et al. 2021, adversary 3)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.EVERY_MODEL, (Controls.RECORDS,))
    capabilities: ClassVar[tuple[type[Capability], ...]] = (Predicts, KnowsNetwork)
    fields_since: ClassVar[tuple[str, ...]] = ("shadow_data",)

    def __post_init__(self) -> None:
        validate.whole("shadows", self.shadows, least=2, most=10_000)
        if self.statistic not in STATISTICS:
            raise unknown_name("statistic", self.statistic, STATISTICS)
        require_source("shadow_data", self.shadow_data)

    def reads(self, data: Any) -> dict[str, Any]:
        return read_by_shadows(data, self.shadow_data)

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        return static_poison(subject, relation, self.shadows, self.shadow_data, seed).prepared()

    def pictured(self, subject: Subject, prepared: Prepared) -> list[tuple[str, Array]]:
        return [("poison", prepared["x"])]

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        target, network = Target.of(prepared), subject.require(KnowsNetwork, self.name)

        def observe() -> Checkpoints:
            return Checkpoints(network, subject.loss, target, self.statistic)

        return Game(relation, target.inserted(subject.data, relation), observe)
