"""Static poisoning (Nasr et al. 2021, adversary 2): a record crafted against shadow models."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epsilometer import checks
from epsilometer.adversaries.game import Adversary, Game
from epsilometer.adversaries.powers import Controls, Sees, ThreatModel
from epsilometer.adversaries.target import Target, final_loss, natural_target
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.training import Array, Recipe, network_for, train

ITERATIONS, STRIDE = 40, 0.05  # of the ascent; a stride is a share of the diagonal of the data's box


@dataclass(frozen=True)
class StaticPoison(Adversary):
    """Moves a random record to where the loss of its label is largest for `shadows` models, within the data's range.

    The shadow models are trained by the same recipe, noise included, on the data without that record. The score is
    minus the poison's loss at the final model. Under `replace` world 0 has the poison with the label that the shadow
    models give it. Where features of a frozen network are trained on, the poison is a vector of features.
    """

    shadows: int = 4
    name: ClassVar[str] = "static-poison"
    summary: ClassVar[str] = "a record crafted against shadow models (Nasr et al. 2021, adversary 2)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.FINAL_MODEL, (Controls.RECORDS,))

    def __post_init__(self) -> None:
        checks.whole("shadows", self.shadows, least=1, most=10_000)

    def craft(self, recipe: Recipe, data: Dataset, relation: Relation, seed: np.random.SeedSequence) -> Game:
        target = static_poison(recipe, data, self.shadows, seed)
        network = network_for(recipe, data)
        return Game(*target.worlds(data, relation), relation, 1, lambda _: final_loss(network, recipe.loss, target))


def static_poison(recipe: Recipe, data: Dataset, shadows: int, seed: np.random.SeedSequence) -> Target:
    """The poison that all adversaries with these settings begin with."""
    return _crafted(recipe, data, shadows, seed.entropy, seed.spawn_key)


@functools.lru_cache(maxsize=4)  # several adversaries of one training share it
def _crafted(recipe: Recipe, data: Dataset, shadows: int, entropy: Any, spawn_key: tuple[int, ...]) -> Target:
    seed = np.random.SeedSequence(entropy, spawn_key=spawn_key)
    start, network = natural_target(data, None, seed), network_for(recipe, data)
    others, label = data.without(start.row), np.array([start.label])
    models = [train(recipe, others, own) for own in seed.spawn(shadows)]
    low, high = data.x.min(axis=0), data.x.max(axis=0)
    stride = STRIDE * float(np.linalg.norm(high - low))
    x: Array = start.x[None].astype(np.float64)
    for _ in range(ITERATIONS):
        slope = np.sum([network.input_gradients(model.astype(np.float64), x, label) for model in models], axis=0)
        x = np.clip(x + stride * slope / max(float(np.linalg.norm(slope)), 1e-12), low, high)
    outputs = np.sum([network.logits(model, x.astype(model.dtype))[0] for model in models], axis=0)
    likely = next(int(c) for c in np.argsort(-outputs, kind="stable") if c != start.label)
    return Target(start.row, x[0].astype(np.float32), start.label, likely)
