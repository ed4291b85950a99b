"""API access (Nasr et al. 2021, adversary 1): a natural record, and its loss at the final model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer import checks
from epsilometer.adversaries.game import Adversary, Game
from epsilometer.adversaries.powers import Sees, ThreatModel
from epsilometer.adversaries.target import final_loss, natural_target
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.training import Recipe, network_for


@dataclass(frozen=True)
class Api(Adversary):
    """A record of the data is there or not; the score is minus its loss at the final model.

    `record` is its row; a random one, if nothing is said. Under `replace` world 0 has it with another label.
    """

    record: int | None = None
    name: ClassVar[str] = "api"
    summary: ClassVar[str] = "a natural record, by its final loss (Nasr et al. 2021, adversary 1)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.FINAL_MODEL, ())

    def __post_init__(self) -> None:
        if self.record is not None:
            checks.whole("record", self.record, least=0)

    def craft(self, recipe: Recipe, data: Dataset, relation: Relation, seed: np.random.SeedSequence) -> Game:
        target = natural_target(data, self.record, seed)
        network = network_for(recipe, data)
        return Game(*target.worlds(data, relation), relation, 1, lambda _: final_loss(network, recipe.loss, target))
