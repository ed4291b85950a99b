"""Many canaries in one training, each put in by its own coin: the game behind one-run bounds.

Steinke et al. (2023) audit with records or Dirac gradients; Keinan et al. (2025) let several canaries share a
coordinate. Scores follow the white-box attack Σ_t ⟨noisy sum, gradient of the canary⟩, or the final model's loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer import checks
from epsilometer.adversaries.game import Adversary, CanaryGame, CanaryWatcher
from epsilometer.adversaries.powers import Controls, Sees, ThreatModel
from epsilometer.claims import Floats, Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.evidence import OneRun
from epsilometer.training import Array, Labels, ModuleNetwork, Network, Recipe, network_for, record_losses

KINDS = ("gradients", "records")
VIEWS = ("updates", "model")


@dataclass(frozen=True)
class Canaries(Adversary):
    """Puts each of `canaries` into the training by a fair coin, and scores each from what it sees.

    `gradients` are Dirac gradients of norm C, each on one parameter; more canaries than parameters share them.
    `records` are records of the data with a wrong label, taken out of the data when the coin says so. With
    `sees = "updates"` the score adds up the noisy sums' products with the canary's gradient; with "model" it is minus
    the final loss, which only records have.
    """

    canaries: int = 1000
    kind: str = "gradients"
    sees: str = "updates"
    name: ClassVar[str] = "canaries"
    summary: ClassVar[str] = "many canaries in one training, each by a coin (Steinke et al. 2023)"
    gives: ClassVar[type] = OneRun
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.EVERY_MODEL, (Controls.GRADIENTS,))

    def __post_init__(self) -> None:
        checks.whole("canaries", self.canaries, least=1, most=10**7)
        for argument, value, valid in (("kind", self.kind, KINDS), ("sees", self.sees, VIEWS)):
            if value not in valid:
                raise unknown_name(argument, value, valid)
        if self.kind == "gradients" and self.sees == "model":
            raise InvalidInput("sees", self.sees, "updates for gradients", "a gradient has no loss; use records")

    @property
    def needs(self) -> ThreatModel:
        seen = Sees.EVERY_MODEL if self.sees == "updates" else Sees.FINAL_MODEL
        return ThreatModel(seen, (Controls.GRADIENTS if self.kind == "gradients" else Controls.RECORDS,))

    def craft(self, recipe: Recipe, data: Dataset, relation: Relation, seed: np.random.SeedSequence) -> CanaryGame:
        if relation is Relation.REPLACE:
            raise InvalidInput("relation", relation.value, "add-remove or zero-out: a coin puts a canary in or not")
        network = network_for(recipe, data)
        if self.kind == "gradients":
            if not recipe.is_accounted:
                raise InvalidInput(
                    "sampling", recipe.sampling, "poisson or full for gradients that toss their own coins"
                )
            places = np.random.default_rng(seed).permutation(network.parameters)
            chosen = places[np.arange(self.canaries) % network.parameters]
            return CanaryGame(
                self.canaries, relation, lambda _: data,
                lambda coins, own: _Diracs(network, recipe, data, chosen, coins, own),
            )  # fmt: skip
        if self.canaries > len(data):
            raise InvalidInput("canaries", self.canaries, f"at most the {len(data)} records of {data.name}")
        rng = np.random.default_rng(seed)
        rows = rng.choice(len(data), self.canaries, replace=False)
        wrong = (data.y[rows] + rng.integers(1, data.classes, len(rows))) % data.classes
        labels = data.y.copy()
        labels[rows] = wrong

        def world(coins: NDArray[np.bool_]) -> Dataset:
            kept = np.ones(len(data), bool)
            kept[rows[~coins]] = False
            return Dataset(data.name, data.x[kept], labels[kept], data.classes)

        def watch(_: NDArray[np.bool_], __: np.random.SeedSequence) -> CanaryWatcher:
            watcher = _SeesUpdates if self.sees == "updates" else _SeesModel
            return watcher(network, recipe, data.x[rows], wrong)

        return CanaryGame(self.canaries, relation, world, watch)


def expected_gradient(network: Network | ModuleNetwork, recipe: Recipe, data: Dataset, parameters: Array) -> Array:
    """What the natural records are expected to contribute to a step at this model."""
    x = data.x.astype(parameters.dtype)
    whole = network.clipped_gradient_sum(parameters, x, data.y, recipe.clip_norm, recipe.clipping)
    return recipe.sample_rate * whole


class _Diracs(CanaryWatcher):
    """Adds C at an included canary's place with probability q in each step, and adds up what is seen there.

    What the natural records are expected to contribute at the model before the step is known, and taken off.
    """

    stepwise = True

    def __init__(
        self,
        network: Network | ModuleNetwork,
        recipe: Recipe,
        data: Dataset,
        places: NDArray[np.int64],
        coins: NDArray[np.bool_],
        seed: np.random.SeedSequence,
    ) -> None:
        self._network, self._recipe, self._data = network, recipe, data
        self._places, self._included = places, places[coins]
        self._rng = np.random.default_rng(seed)
        self._natural: Array = np.zeros(0)
        self._seen = np.zeros(len(places))

    def before(self, step: int, parameters: Array) -> None:
        self._natural = expected_gradient(self._network, self._recipe, self._data, parameters)

    def contribute(self, step: int, gradient_sum: Array) -> None:
        sampled = self._included[self._rng.random(len(self._included)) < self._recipe.sample_rate]
        np.add.at(gradient_sum, sampled, self._recipe.clip_norm)

    def observe(self, step: int, noisy_sum: Array, parameters: Array) -> bool:
        self._seen += (noisy_sum - self._natural)[self._places]
        return False

    def scores(self) -> Floats:
        return self._seen


class _SeesUpdates(CanaryWatcher):
    """Σ_t ⟨noisy sum, clipped gradient of the canary at the model before the step⟩."""

    stepwise = True

    def __init__(self, network: Network | ModuleNetwork, recipe: Recipe, x: Array, y: Labels) -> None:
        self._network, self._recipe, self._x, self._y = network, recipe, x, y
        self._before: Array | None = None
        self._seen = np.zeros(len(x))

    def before(self, step: int, parameters: Array) -> None:
        self._before = parameters.copy()  # what the step's gradients are taken at

    def observe(self, step: int, noisy_sum: Array, parameters: Array) -> bool:
        assert self._before is not None
        settings = (self._recipe.clip_norm, self._recipe.clipping)
        self._seen += self._network.clipped_products(self._before, self._x, self._y, noisy_sum, *settings)
        return False

    def scores(self) -> Floats:
        return self._seen


class _SeesModel(CanaryWatcher):
    """Minus the final loss: a member's is lower."""

    def __init__(self, network: Network | ModuleNetwork, recipe: Recipe, x: Array, y: Labels) -> None:
        self._network, self._x, self._y = network, x, y
        self._scores = np.zeros(len(x))

    def finish(self, parameters: Array, projections: Floats) -> None:
        outputs = self._network.logits(parameters, self._x.astype(parameters.dtype))
        self._scores = -record_losses(outputs, self._y)

    def scores(self) -> Floats:
        return self._scores
