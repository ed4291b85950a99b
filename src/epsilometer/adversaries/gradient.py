"""The white-box gradient adversary (Nasr et al. 2021, adversary 5): a watermark in the updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.accounting.renyi import log_mixture
from epsilometer.adversaries.game import Adversary, Game, Prepared
from epsilometer.claims import Floats, Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.evidence import IN
from epsilometer.subjects import Controls, Insertion, Observer, Sees, Subject, ThreatModel, WhiteModel, own_training
from epsilometer.training import Array, Recipe, Watcher, network_for, train

DIRECTIONS = {
    "watermark": "±C/√n alternating on the n parameters that natural gradients move least",
    "dirac": "C on the one parameter that they move least",
    "random": "norm C in a random direction",
}


@dataclass(frozen=True)
class Gradient(Adversary):
    """Inserts a crafted gradient of norm C with probability q at each step, and sees every update.

    `direction` is a watermark on `coordinates` parameters, a Dirac on one, or random. The score is the exact
    log-likelihood ratio of the two worlds given the projections of all updates on it, under the *claimed* noise: no
    better test exists when natural gradients vanish there.
    """

    coordinates: int = 20
    direction: str = "watermark"
    name: ClassVar[str] = "gradient"
    summary: ClassVar[str] = "crafted gradient, sees every update (Nasr et al. 2021, adversary 5)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.EVERY_MODEL, (Controls.GRADIENTS,))

    def __post_init__(self) -> None:
        validate.whole("coordinates", self.coordinates, least=1)
        if self.direction not in DIRECTIONS:
            raise unknown_name("direction", self.direction, DIRECTIONS)

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        return {"direction": self._direction(own_training(subject).recipe, subject.data, seed)}

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        return self._game(subject, subject.data, relation, prepared["direction"])

    def _game(self, subject: Subject, data: Dataset, relation: Relation, direction: Floats) -> Game:
        recipe, absent = own_training(subject).recipe, absence(relation)

        def insert(world: int, _: np.random.SeedSequence) -> Insertion:
            times = 1.0 if world == IN else absent
            return Insertion(data, gradient=times * recipe.clip_norm * direction if times else None)

        return Game(relation, insert, lambda: _Watermark(recipe, direction, absent))

    def _direction(self, recipe: Recipe, data: Dataset, seed: np.random.SeedSequence) -> Floats:
        """A unit vector of parameters."""
        if recipe.noise_multiplier == 0:
            raise InvalidInput(
                "noise_multiplier", 0, "noise > 0 for a likelihood ratio", "use the clipbkd adversary instead"
            )
        parameters = network_for(recipe, data).parameters
        if self.direction == "random":
            drawn = np.random.default_rng(seed).normal(size=parameters)
            return drawn / np.linalg.norm(drawn)
        count = 1 if self.direction == "dirac" else self.coordinates
        direction = np.zeros(parameters)
        signs = np.where(np.arange(count) % 2 == 0, 1, -1)
        direction[quietest(natural_movement(recipe, data, seed), count)] = signs / np.sqrt(count)
        return direction


def absence(relation: Relation) -> float:
    """What stands in world 0 for a crafted gradient, as a multiple of it: nothing, or its opposite under replace."""
    return -1.0 if relation is Relation.REPLACE else 0.0


def quietest(moved: Floats, count: int) -> NDArray[np.int64]:
    """The parameters that natural gradients move least."""
    if count > len(moved):
        raise InvalidInput("coordinates", count, f"at most the model's {len(moved)} parameters")
    return np.argsort(moved, kind="stable")[:count]


def natural_movement(recipe: Recipe, data: Dataset, seed: np.random.SeedSequence) -> Floats:
    """How much natural gradients put on each parameter in a step, on average over a training."""
    movement = _Movement(network_for(recipe, data).parameters)
    train(recipe, data, seed, movement)
    return movement.total / recipe.steps


class _Movement(Watcher):
    """How much natural gradients move each parameter."""

    stepwise = True

    def __init__(self, parameters: int) -> None:
        self.total = np.zeros(parameters)

    def contribute(self, step: int, gradient_sum: Array) -> None:
        self.total += np.abs(gradient_sum)


class _Watermark(Observer):
    def __init__(self, recipe: Recipe, direction: Floats, absent: float) -> None:
        self._recipe, self._absent = recipe, absent
        self.probe = direction

    def finish(self, model: WhiteModel) -> None:
        self._projections = model.projections

    def score(self) -> float:
        q, sigma = self._recipe.sample_rate, self._recipe.noise_multiplier
        seen = self._projections / self._recipe.clip_norm
        present = log_mixture(seen, 1.0, q, sigma)
        absent = log_mixture(seen, self._absent, q, sigma)
        return float(np.sum(present - absent))
