"""ClipBKD (Jagielski et al. 2020): a poison that survives clipping, seen through the final model only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer import checks
from epsilometer.adversaries.game import Adversary, Game, ScoringWatcher, ThreatModel
from epsilometer.claims import Floats, Relation
from epsilometer.data import Dataset
from epsilometer.training import Array, ModuleNetwork, Network, Recipe, network_for, train


@dataclass(frozen=True)
class ClipBkd(Adversary):
    """Poisons with x = m·v, where v is the direction in which the data vary least and m their median norm.

    The label is the least likely class at x of a model trained without noise. Under `add-remove` and
    `zero-out` world 1 has `copies` poisoned records more; under `replace` both worlds have them and their
    label differs, as in the authors' code. The score is the label's logit at x less that at 0.
    """

    copies: int = 1
    name: ClassVar[str] = "clipbkd"
    summary: ClassVar[str] = "poisoned records along the least singular vector (Jagielski et al. 2020)"
    threat: ClassVar[ThreatModel] = ThreatModel(
        sees="the final model",
        controls="k training records",
        knows="recipe and data",
    )

    def __post_init__(self) -> None:
        checks.whole("copies", self.copies, least=1)

    @property
    def group_size(self) -> int:
        return self.copies

    def craft(self, recipe: Recipe, data: Dataset, relation: Relation, seed: np.random.SeedSequence) -> Game:
        network = network_for(recipe, data)
        poison = least_singular_direction(data.x) * np.median(np.linalg.norm(data.x, axis=1))
        poison = poison.astype(np.float32)
        logits = network.logits(train(recipe, data, seed, noise_scale=0.0), poison[None])[0]
        label, likely = int(np.argmin(logits)), int(np.argmax(logits))
        out_data = data.plus(poison, likely, self.copies) if relation is Relation.REPLACE else data
        in_data = data.plus(poison, label, self.copies)
        return Game(out_data, in_data, relation, self.group_size, lambda _: _FinalLogit(network, poison, label))


def least_singular_direction(x: np.ndarray) -> np.ndarray:
    """The right singular vector of the smallest singular value."""
    _, _, directions = np.linalg.svd(x, full_matrices=x.shape[0] < x.shape[1])
    least: np.ndarray = directions[-1]
    return least


class _FinalLogit(ScoringWatcher):
    def __init__(self, network: Network | ModuleNetwork, poison: Array, label: int) -> None:
        self._network, self._label = network, label
        self._points = np.stack([poison, np.zeros_like(poison)])
        self._score = np.nan

    def finish(self, parameters: Array, projections: Floats) -> None:
        at_poison, at_zero = self._network.logits(parameters, self._points)[:, self._label]
        self._score = float(at_poison) - float(at_zero)

    def score(self) -> float:
        return self._score
