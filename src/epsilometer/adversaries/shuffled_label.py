"""One label among records that all pull the other way, in shuffled batches (after Chua et al. 2024, Annamalai et al.
2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from epsilometer import checks
from epsilometer.adversaries.game import Adversary, Game, Prepared, two_worlds
from epsilometer.claims import Floats, Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.subjects import Controls, Observer, Sees, Subject, ThreatModel, WhiteModel, own_training
from epsilometer.training import Recipe


@dataclass(frozen=True)
class ShuffledLabel(Adversary):
    """All records are the same and so large that each gradient is clipped; in world 1 one of them has another label.

    Then the sum of every batch is −bCv, for a direction v that is known, and in world 1 one batch of each epoch, nobody
    knows which, has −(b − 2)Cv: the two worlds are as far apart as one label can put them. Under Poisson sampling the
    sizes of batches hide that; those of a shuffled epoch do not. The score is the exact likelihood ratio of the
    projections of all updates on v: for an epoch, the mean over its batches of exp((2s − 2)/σ²), where s is by how much
    a batch's projection exceeds −b, in clip norms.

    `size` is a record's norm. For logistic regression with two classes, the `replace` relation and shuffled epochs of
    whole batches. Weights have to start near 0 and the learning rate has to be small, so that the model stays unsure
    and every gradient is longer than C; where it is not, the score is weaker, and no bound is wrong.
    """

    size: float = 10.0
    name: ClassVar[str] = "shuffled-label"
    summary: ClassVar[str] = "one label among equal records, seen through all updates of shuffled epochs"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.EVERY_MODEL, (Controls.DATA,))

    def __post_init__(self) -> None:
        checks.real("size", self.size, above=0, below=1e6)

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        """The direction of the other label's gradient, as the parameters are laid out; label 0 has its opposite."""
        training = own_training(subject)
        recipe, network = training.recipe, training.network
        self._require(recipe, subject.data, relation)
        point = self._records(subject.data, 1).x.astype(np.float64)
        pull = network.clipped_gradient_sum(
            np.zeros(network.parameters), point, np.array([1]), recipe.clip_norm, recipe.clipping
        )  # fmt: skip
        return {"direction": pull / np.linalg.norm(pull)}

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        data = self._records(subject.data, len(subject.data))
        flipped = data.with_rows([0], data.x[0], 1)
        recipe, direction = own_training(subject).recipe, prepared["direction"]
        return Game(relation, two_worlds(data, flipped), lambda: _Epochs(recipe, direction))

    def _records(self, like: Dataset, count: int) -> Dataset:
        x = np.full((count, like.x.shape[1]), self.size / np.sqrt(like.x.shape[1]), np.float32)
        return Dataset(f"equal records ({like.name})", x, np.zeros(count, np.int64), like.classes)

    def _require(self, recipe: Recipe, data: Dataset, relation: Relation) -> None:
        if relation is not Relation.REPLACE:
            raise InvalidInput("relation", relation.value, "replace: one label is another")
        if recipe.model != "logistic" or recipe.loss != "cross-entropy" or data.classes != 2:
            given = f"{recipe.model}, {recipe.loss} loss, {data.classes} classes"
            raise InvalidInput("model", given, "logistic regression with cross-entropy and two classes")
        if recipe.sampling != "shuffle" or recipe.records % recipe.batch_size or recipe.steps % recipe.batches:
            given = f"{recipe.sampling}, {recipe.steps} batches of {recipe.batch_size} of {recipe.records} records"
            raise InvalidInput("sampling", given, "shuffled epochs of whole batches")
        if recipe.noise_multiplier == 0:
            raise InvalidInput("noise_multiplier", 0, "noise > 0 for a likelihood ratio")


class _Epochs(Observer):
    def __init__(self, recipe: Recipe, direction: Floats) -> None:
        self._recipe = recipe
        self.probe = direction

    def finish(self, model: WhiteModel) -> None:
        self._projections = model.projections

    def score(self) -> float:
        recipe, sigma = self._recipe, self._recipe.noise_multiplier
        above = self._projections / recipe.clip_norm + recipe.batch_size
        epochs = above.reshape(-1, recipe.batches)
        ratios = special.logsumexp((2.0 * epochs - 2.0) / sigma**2, axis=1) - np.log(recipe.batches)
        return float(np.sum(ratios))
