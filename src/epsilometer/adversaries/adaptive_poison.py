"""Adaptive poisoning (Nasr et al. 2021, adversary 4): another record before every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer.adversaries.game import IN, Game
from epsilometer.adversaries.intermediate import Intermediate
from epsilometer.adversaries.powers import Controls, Sees, ThreatModel
from epsilometer.adversaries.static_poison import STRIDE, static_poison
from epsilometer.adversaries.target import Checkpoints, Target
from epsilometer.claims import Floats, Relation
from epsilometer.data import Dataset
from epsilometer.training import Array, Labels, ModuleNetwork, Network, Recipe, network_for, record_losses

ITERATIONS = 5  # of the ascent, in every step
ALIGNED = 1e-3  # the sine of an angle that is nil
TINY = 1e-60
Gradients = Any  # of one record at each of several models, as the network gives them: RecordGradients, FormedGradients


@dataclass(frozen=True)
class AdaptivePoison(Intermediate):
    """Before every step a poison moves from a fixed query to where one step on it would lower the query's loss most.

    The query is the poison of `static-poison`. The step is simulated, one of plain clipped SGD, and differentiated
    through. The score is minus the mean (or largest, or last) loss of the query over all models.
    """

    name: ClassVar[str] = "adaptive-poison"
    summary: ClassVar[str] = "a fresh poison before every step (Nasr et al. 2021, adversary 4)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.EVERY_MODEL, (Controls.RECORDS_IN_STEPS,))

    def craft(self, recipe: Recipe, data: Dataset, relation: Relation, seed: np.random.SeedSequence) -> Game:
        query = static_poison(recipe, data, self.shadows, seed)
        network = network_for(recipe, data)
        box = data.x.min(axis=0), data.x.max(axis=0)
        poisons = _Poisons(query.place(data, relation), network, recipe, query, box)

        def watch(world: int) -> Checkpoints:
            watcher = Checkpoints(network, recipe.loss, query, self.statistic)
            watcher.poisoner = poisons if world == IN else None
            return watcher

        return Game(*query.worlds(data, relation), relation, 1, watch)


@dataclass(eq=False)
class _Poisons:
    """The poisoner: poisons for all trainings that are about to use one."""

    row: int
    network: Network | ModuleNetwork
    recipe: Recipe
    query: Target
    box: tuple[Array, Array]

    def records(self, steps: NDArray[np.int64], parameters: Array) -> tuple[Array, Labels]:
        labels = np.full(len(steps), self.query.label)
        rates = self.recipe.learning_rates()[steps] / self.recipe.expected_batch
        stride = STRIDE * float(np.linalg.norm(self.box[1] - self.box[0]))
        poisons = np.repeat(self.query.x[None], len(steps), axis=0)
        moving = np.arange(len(steps))
        for _ in range(ITERATIONS):
            here = poisons[moving]
            step = _Simulated(
                self.network, parameters[moving], self.query.x, labels[moving], self.recipe.clip_norm, rates[moving]
            )
            along, loss = step.ascent(here)
            sizes = np.sqrt(np.sum(along.astype(np.float64) ** 2, axis=1, keepdims=True))
            moved = np.clip(here + stride / np.maximum(sizes, TINY) * along, *self.box).astype(here.dtype)
            better = (sizes[:, 0] > 0) & ~(step.query_loss(moved) >= loss)
            poisons[moving[better]] = moved[better]
            moving = moving[better]
            if len(moving) == 0:
                break
        return poisons, labels


@dataclass(frozen=True, eq=False)
class _Simulated:
    """One clipped step at each model of a stack on a poison with the query's label, and what it does to the query."""

    network: Any
    models: Array
    query: Array
    labels: Labels
    clip_norm: float
    rates: Floats

    def query_loss(self, x: Array) -> Floats:
        """After the step."""
        return self._loss(self._after(self._own(x)))

    def ascent(self, x: Array) -> tuple[Array, Floats]:
        """Where to move the poisons so that the step lowers the query's loss more, differentiating through it; and that
        loss.

        0 if a poison cannot be better.
        """
        own = self._own(x)
        pull = self._after(own)
        square, shared = own.dot(own), own.dot(pull)
        # A clipped step has a direction and no length: what counts is the part of the pull that is beside it.
        share = np.where(np.sqrt(square) > self.clip_norm, shared / np.maximum(square, TINY), 0.0)
        beside = np.maximum(pull.dot(pull) - share * shared, 0.0)
        along = self.network.input_gradients_along(
            self.models, x, self.labels, [(np.ones_like(share), pull), (-share, own)]
        )
        along[beside < ALIGNED**2 * pull.dot(pull)] = 0.0  # no direction is better
        return along, self._loss(pull)

    def _own(self, x: Array) -> Gradients:
        """The poisons' gradients before the step."""
        return self.network.record_gradients(self.models, x, self.labels)

    def _after(self, own: Gradients) -> Gradients:
        """The query's gradients after it."""
        lengths = self.rates * np.minimum(1.0, self.clip_norm / np.sqrt(np.maximum(own.dot(own), TINY)))
        queries = np.repeat(self.query[None], len(self.models), axis=0)
        return self.network.record_gradients(self.models, queries, self.labels, [(-lengths, own)])

    def _loss(self, gradients: Gradients) -> Floats:
        return record_losses(gradients.logits, self.labels, self.network.loss)
