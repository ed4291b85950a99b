"""One label among records that all pull the other way, in shuffled batches (after Chua et al. 2024, Annamalai et al.
2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from epsilometer import validate
from epsilometer.adversaries.game import Adversary, Game, Prepared, TwoWorlds
from epsilometer.arrays import Floats
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.subjects import Controls, Insertion, KnowsRecipe, Observer, Sees, Subject, ThreatModel, WhiteModel
from epsilometer.training import Recipe

SURE = 1000.0  # a difference of outputs at which the probability of the other class is 0


@dataclass(frozen=True)
class ShuffledLabel(Adversary):
    """All records are the same and so large that each gradient is clipped; in world 1 one of them has another label.

    Then the sum of every batch is −bCv, for a direction v that is known, and in world 1 one batch of each epoch, nobody
    knows which, has −(b − 2)Cv. In world 0 no batch differs under `replace`, where the record has the label of all;
    under `zero-out` its place is taken by one without a gradient, and one batch has −(b − 1)Cv. Under Poisson sampling
    the sizes of batches hide that; those of a shuffled epoch do not. The score is the exact likelihood ratio of the
    projections of all updates on v: for an epoch, the ratio of two means over its batches, of exp((as − a²/2)/σ²) with
    a = 2 and a = 0 or 1, where s is by how much a batch's projection exceeds −b, in clip norms.

    For logistic regression with two classes and shuffled epochs of whole batches. Trainings start where the model is
    unsure of all records but the one without a gradient, of which it is as sure as floating-point numbers can be. The
    learning rate should be so small that it stays there and every gradient is longer than C, or the score is weaker;
    under `zero-out` one that could make it unsure is refused. `size` is a record's norm.
    """

    size: float = 10.0
    name: ClassVar[str] = "shuffled-label"
    summary: ClassVar[str] = "one label among equal records, seen through all updates of shuffled epochs"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.EVERY_MODEL, (Controls.DATA, Controls.INITIAL_WEIGHTS))
    capabilities = (KnowsRecipe,)
    zeroes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        validate.real("size", self.size, above=0, below=1e6)

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        """Where trainings start, and the direction of the other label's gradient; label 0 has its opposite."""
        training = subject.require(KnowsRecipe, self.name)
        recipe, network = training.recipe, training.network
        self._require(recipe, subject.data, relation)
        start = np.zeros(network.parameters)
        ((weights, _),) = network.layers(start)  # type: ignore[union-attr]
        weights[:, 1] = SURE, -SURE
        point = self._records(subject.data, 1).x.astype(np.float64)
        pull = network.clipped_gradient_sum(start, point, np.array([1]), recipe.clip_norm, recipe.clipping)
        return {"start": start, "direction": pull / np.linalg.norm(pull)}

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        data, start = self._records(subject.data, len(subject.data)), prepared["start"]
        absent, zeroed = data, relation is Relation.ZERO_OUT
        if zeroed:  # its only feature is one of which the start is sure
            absent = data.with_rows([0], np.eye(1, data.x.shape[1], 1)[0], 0)
        worlds = TwoWorlds((
            Insertion(absent, start=start), Insertion(data.with_rows([0], data.x[0], 1), start=start),
        ))  # fmt: skip
        recipe, direction = subject.require(KnowsRecipe, self.name).recipe, prepared["direction"]
        return Game(relation, worlds, lambda: _Epochs(recipe, direction, 1.0 if zeroed else 0.0))

    def _records(self, like: Dataset, count: int) -> Dataset:
        """Records with one feature, and label 0."""
        x = np.zeros((count, like.x.shape[1]), np.float32)
        x[:, 0] = self.size
        return Dataset(f"equal records ({like.name})", x, np.zeros(count, np.int64), like.classes)

    def _require(self, recipe: Recipe, data: Dataset, relation: Relation) -> None:
        if relation is Relation.ADD_REMOVE:
            raise InvalidInput("relation", relation.value, "replace or zero-out, which leave batches their size")
        features = data.x.shape[1]
        if recipe.model != "logistic" or recipe.loss != "cross-entropy" or data.classes != 2 or features < 2:
            given = f"{recipe.model}, {recipe.loss} loss, {data.classes} classes, {features} features"
            raise InvalidInput("model", given, "logistic regression, cross-entropy, two classes, at least two features")
        if recipe.sampling != "shuffle" or recipe.records % recipe.batch_size or recipe.steps % recipe.batches:
            given = f"{recipe.sampling}, {recipe.steps} batches of {recipe.batch_size} of {recipe.records} records"
            raise InvalidInput("sampling", given, "shuffled epochs of whole batches")
        if recipe.noise_multiplier == 0:
            raise InvalidInput("noise_multiplier", 0, "noise > 0 for a likelihood ratio")
        noise = recipe.learning_rate * recipe.noise_multiplier * recipe.clip_norm / recipe.expected_batch
        plain = recipe.optimizer == "sgd" and recipe.weight_decay == 0
        if relation is Relation.ZERO_OUT and not (plain and noise * np.sqrt(recipe.steps) <= 1):  # SURE is far away
            given = f"{recipe.optimizer}, rate {recipe.learning_rate:g}, weight decay {recipe.weight_decay:g}"
            raise InvalidInput("optimizer", given, "plain SGD that hardly moves: a record must stay without a gradient")


class _Epochs(Observer):
    def __init__(self, recipe: Recipe, direction: Floats, absent: float) -> None:
        self._recipe, self._absent = recipe, absent
        self.probe = direction

    def finish(self, model: WhiteModel) -> None:
        self._projections = model.projections

    def score(self) -> float:
        recipe = self._recipe
        above = self._projections / recipe.clip_norm + recipe.batch_size
        epochs = above.reshape(-1, recipe.batches)
        return float(np.sum(self._log_mean(epochs, 2.0) - self._log_mean(epochs, self._absent)))

    def _log_mean(self, epochs: Floats, more: float) -> Floats:
        """The log-likelihood that one batch of each epoch has so much more, up to what all have in common."""
        exponents = (more * epochs - more**2 / 2) / self._recipe.noise_multiplier**2
        means: Floats = special.logsumexp(exponents, axis=1) - np.log(self._recipe.batches)
        return means
