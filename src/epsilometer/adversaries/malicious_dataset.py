"""A malicious data set (Nasr et al. 2021, adversary 6): natural gradients vanish, and the watermark stands alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer.adversaries.game import Game, Prepared
from epsilometer.adversaries.gradient import Gradient
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.subjects import Controls, KnowsRecipe, NoisySteps, Sees, Subject, ThreatModel
from epsilometer.training import Recipe, initial_parameters, network_for
from epsilometer.training.threefry import trial_key

SCALES = tuple(2.0**i for i in range(13))  # of records, tried in turn
NIL = 1e-4  # of the clip norm: what may be left of the mean gradient
SPARE = 4  # records drawn for each that is kept


@dataclass(frozen=True)
class MaliciousDataset(Gradient):
    """Chooses all records: random, labelled as the initial model sees them, and so large that they give no gradient.

    Both worlds have these records in place of the data; then everything is as with `gradient`.
    """

    name: ClassVar[str] = "malicious-dataset"
    summary: ClassVar[str] = "records that give no gradient, then a crafted one (Nasr et al. 2021, adversary 6)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.EVERY_MODEL, (Controls.DATA, Controls.GRADIENTS))
    capabilities = (NoisySteps, KnowsRecipe)

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        records = unlearnable(subject.require(KnowsRecipe, self.name).recipe, subject.data, seed)
        direction = self._direction(subject.require(NoisySteps, self.name), records, seed)
        return {"x": records.x, "y": records.y, "direction": direction}

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        return self._game(subject, malicious(subject.data, prepared), relation, prepared["direction"])


def malicious(like: Dataset, prepared: Prepared) -> Dataset:
    """Records that were prepared in place of those of `like`."""
    return Dataset(f"malicious ({like.name})", prepared["x"], prepared["y"], like.classes)


def unlearnable(recipe: Recipe, like: Dataset, seed: np.random.SeedSequence) -> Dataset:
    """As many records as in `like`, of whom the initial model is sure, and will be for as long as noise lets it.

    Half of their features are 0, so that even then nothing moves the weights that read them.
    """
    if recipe.initialisation != "fixed":
        raise InvalidInput(
            "initialisation", recipe.initialisation, "fixed: the initial model labels the records",
            "use natural records instead",
        )  # fmt: skip
    network, count = network_for(recipe, like), len(like)
    start = initial_parameters(recipe, network, trial_key(seed))
    drawn = np.random.default_rng(seed).uniform(-1.0, 1.0, (SPARE * count, like.x.shape[1])).astype(np.float32)
    drawn[:, : like.x.shape[1] // 2] = 0.0
    outputs = np.sort(network.logits(start, drawn.astype(start.dtype)), axis=1)
    surest = np.sort(np.argsort(outputs[:, -2] - outputs[:, -1], kind="stable")[:count])
    x = drawn[surest]
    y = np.argmax(network.logits(start, x.astype(start.dtype)), axis=1)

    def gradient(scale: float) -> float:
        """The mean of the clipped gradients, in clip norms."""
        records = (scale * x).astype(start.dtype)
        total = network.clipped_gradient_sum(start, records, y, recipe.clip_norm, recipe.clipping)
        return float(np.linalg.norm(total)) / (count * recipe.clip_norm)

    best = next((scale for scale in SCALES if gradient(scale) < NIL), None)
    if best is None:
        raise InvalidInput(
            "model", f"{recipe.model}, {recipe.loss} loss",
            "one that can be so sure of records that they give no gradient", "use natural records instead",
        )  # fmt: skip
    return malicious(like, {"x": best * x, "y": y})
