"""Worst-case initial weights for black-box audits (Annamalai & De Cristofaro 2024)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from epsilometer import validate
from epsilometer.adversaries.final_model import FinalOutputs
from epsilometer.adversaries.game import Adversary, Game, Prepared, two_worlds
from epsilometer.adversaries.poisoning import Poison
from epsilometer.adversaries.target import natural_target
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.subjects import Controls, Insertion, KnowsRecipe, Predicts, Sees, Subject, ThreatModel
from epsilometer.training import Array, Recipe, train


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
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.PREDICTIONS, (Controls.RECORDS, Controls.INITIAL_WEIGHTS))
    capabilities = (Predicts, KnowsRecipe)

    def __post_init__(self) -> None:
        validate.whole("pretraining", self.pretraining, least=0, most=10**6)

    @property
    def needs(self) -> ThreatModel:
        return self.threat if self.pretraining else ThreatModel(Sees.PREDICTIONS, (Controls.RECORDS,))

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        training, row = subject.require(KnowsRecipe, self.name), natural_target(subject.data, None, seed).row
        blank = np.zeros((1, subject.data.x.shape[1]), np.float32)
        learned = _pretrained(training.recipe, subject.data.without(row), max(self.pretraining, 1), seed)
        order = np.argsort(training.network.logits(learned, blank.astype(learned.dtype))[0], kind="stable")
        return {"row": np.array([row]), "blank": blank, "labels": order[[0, -1]], "learned": learned}

    def pictured(self, subject: Subject, prepared: Prepared) -> list[tuple[str, Array]]:
        return [("poison", prepared["blank"][0])]

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        blank, row = prepared["blank"], prepared["row"]
        poison = Poison(blank, *prepared["labels"].tolist())
        base = subject.data if relation is Relation.REPLACE else subject.data.without(int(row[0]))
        worlds = two_worlds(*poison.worlds(base, relation, row, "label"))

        def score(outputs: Array) -> float:
            return float(outputs[0, poison.label]) - float(outputs[0, poison.likely])

        def insert(world: int, seed: np.random.SeedSequence) -> Insertion:
            return replace(worlds(world, seed), start=prepared["learned"] if self.pretraining else None)

        return Game(relation, insert, lambda: FinalOutputs(blank, score))


def _pretrained(recipe: Recipe, data: Dataset, steps: int, seed: np.random.SeedSequence) -> Array:
    plainly = replace(
        recipe, noise_multiplier=0.0, clip_norm=1e6, clipping="flat", sampling="full", sample_rate=1.0, steps=steps,
        optimizer="adam", learning_rate=0.01, schedule="constant", weight_decay=0.0,
    )  # fmt: skip
    return train(plainly, data, seed)
