"""Worst-case initial weights for black-box audits (Annamalai & De Cristofaro 2024)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from epsilometer import checks
from epsilometer.adversaries.final_model import FinalOutputs
from epsilometer.adversaries.game import Adversary, Game
from epsilometer.adversaries.poisoning import Poison
from epsilometer.adversaries.powers import Controls, Sees, ThreatModel
from epsilometer.adversaries.target import natural_target
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.training import Array, Recipe, network_for, train


@dataclass(frozen=True)
class WorstCaseInit(Adversary):
    """Starts the training from weights that were trained on the data before, without privacy; adds a blank record.

    There natural gradients are small, while the blank record has its least likely label. The score is the margin of
    that label over the likely one at the blank record. `pretraining` is the number of full-batch steps (Adam) that lead
    to these weights; with 0 the training starts where the recipe says, the average case.
    """

    pretraining: int = 500
    name: ClassVar[str] = "worst-case-init"
    summary: ClassVar[str] = "a blank record, and weights where others have learned (Annamalai & De Cristofaro 2024)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.FINAL_MODEL, (Controls.RECORDS, Controls.INITIAL_WEIGHTS))

    def __post_init__(self) -> None:
        checks.whole("pretraining", self.pretraining, least=0, most=10**6)

    @property
    def needs(self) -> ThreatModel:
        return self.threat if self.pretraining else ThreatModel(Sees.FINAL_MODEL, (Controls.RECORDS,))

    def craft(self, recipe: Recipe, data: Dataset, relation: Relation, seed: np.random.SeedSequence) -> Game:
        network, blank = network_for(recipe, data), np.zeros((1, data.x.shape[1]), np.float32)
        row = natural_target(data, None, seed).row
        others = data.without(row)
        learned = _pretrained(recipe, others, max(self.pretraining, 1), seed)
        order = np.argsort(network.logits(learned, blank.astype(learned.dtype))[0], kind="stable")
        poison = Poison(blank, int(order[0]), int(order[-1]))
        base = data if relation is Relation.REPLACE else others
        out_data, in_data = poison.worlds(base, relation, np.array([row]), "label")

        def score(outputs: Array) -> float:
            return float(outputs[0, poison.label]) - float(outputs[0, poison.likely])

        def watch(_: int) -> FinalOutputs:
            watcher = FinalOutputs(network, blank, score)
            watcher.start = learned if self.pretraining else None
            return watcher

        return Game(out_data, in_data, relation, 1, watch)


def _pretrained(recipe: Recipe, data: Dataset, steps: int, seed: np.random.SeedSequence) -> Array:
    plainly = replace(
        recipe, noise_multiplier=0.0, clip_norm=1e6, clipping="flat", sampling="full", sample_rate=1.0, steps=steps,
        optimizer="adam", learning_rate=0.01, schedule="constant", weight_decay=0.0,
    )  # fmt: skip
    return train(plainly, data, seed)
