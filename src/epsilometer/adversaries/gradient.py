"""The white-box gradient adversary (Nasr et al. 2021, adversary 5): a watermark in the updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer import checks
from epsilometer.accounting.renyi import log_mixture
from epsilometer.adversaries.game import IN, Adversary, Game, ScoringWatcher, ThreatModel
from epsilometer.claims import Floats, Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.training import Array, Recipe, Watcher, network_for, train


@dataclass(frozen=True)
class Gradient(Adversary):
    """Inserts a crafted gradient of norm C with probability q at each step, and sees every update.

    The watermark sits on the `coordinates` parameters that natural gradients move least, ±C/√coordinates
    alternating. The score is the exact log-likelihood ratio of the two worlds given the projections of all
    updates on the watermark, under the *claimed* noise: no better test exists when natural gradients vanish
    on the watermark.
    """

    coordinates: int = 20
    name: ClassVar[str] = "gradient"
    summary: ClassVar[str] = "crafted gradient, sees every update (Nasr et al. 2021, adversary 5)"
    threat: ClassVar[ThreatModel] = ThreatModel(
        sees="every model during training",
        controls="the gradient of one record",
        knows="recipe and data",
    )

    def __post_init__(self) -> None:
        checks.whole("coordinates", self.coordinates, least=1)

    def craft(self, recipe: Recipe, data: Dataset, relation: Relation, seed: np.random.SeedSequence) -> Game:
        parameters = network_for(recipe, data).parameters
        if self.coordinates > parameters:
            raise InvalidInput("coordinates", self.coordinates, f"at most the model's {parameters} parameters")
        if recipe.noise_multiplier == 0:
            raise InvalidInput(
                "noise_multiplier", 0, "noise > 0 for a likelihood ratio", "use the clipbkd adversary instead"
            )
        movement = _Movement(parameters)
        train(recipe, data, seed, movement, noise_scale=0.0)
        quiet = np.argsort(movement.total, kind="stable")[: self.coordinates]
        direction = np.zeros(parameters)
        direction[quiet] = np.where(np.arange(self.coordinates) % 2 == 0, 1, -1) / np.sqrt(self.coordinates)
        # What the canary contributes in each world, in clip norms along the direction.
        absent = -1.0 if relation is Relation.REPLACE else 0.0

        def watch(world: int) -> ScoringWatcher:
            return _Watermark(recipe, direction, inserted=1.0 if world == IN else absent, absent=absent)

        return Game(data, data, relation, 1, watch)


class _Movement(Watcher):
    """How much natural gradients move each parameter."""

    stepwise = True

    def __init__(self, parameters: int) -> None:
        self.total = np.zeros(parameters)

    def observe(self, step: int, noisy_sum: Array, parameters: Array) -> bool:
        self.total += np.abs(noisy_sum)
        return False


class _Watermark(ScoringWatcher):
    def __init__(self, recipe: Recipe, direction: Floats, inserted: float, absent: float) -> None:
        self._recipe, self._absent = recipe, absent
        self.probe = direction
        if inserted:
            self.inserted = inserted * recipe.clip_norm * direction

    def finish(self, parameters: Array, projections: Floats) -> None:
        self._projections = projections

    def score(self) -> float:
        q, sigma = self._recipe.sample_rate, self._recipe.noise_multiplier
        seen = self._projections / self._recipe.clip_norm
        present = log_mixture(seen, 1.0, q, sigma)
        absent = log_mixture(seen, self._absent, q, sigma)
        return float(np.sum(present - absent))
