"""Adaptive poisoning (Nasr et al. 2021, adversary 4): another record before every step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from epsilometer.adversaries.game import Game, Prepared
from epsilometer.adversaries.held_out import held_out_of
from epsilometer.adversaries.intermediate import Intermediate
from epsilometer.adversaries.static_poison import STRIDE
from epsilometer.adversaries.target import Target
from epsilometer.arrays import Floats
from epsilometer.claims import Relation
from epsilometer.evidence import IN
from epsilometer.subjects import Controls, Insertion, KnowsNetwork, KnowsRecipe, Predicts, Sees, Subject, ThreatModel
from epsilometer.training import Array, Labels, ModuleNetwork, Network, Recipe, record_losses

ITERATIONS = 5  # of the ascent, in every step
ALIGNED = 1e-3  # the sine of an angle that is nil
TINY = 1e-30  # in place of a length that is 0


@dataclass(frozen=True)
class AdaptivePoison(Intermediate):
    """Before every step a poison moves from a fixed query to where one step on it would lower the query's loss most.

    The query is the poison of `static-poison`. The step is simulated, one of plain clipped SGD, and differentiated
    through. The score is minus the mean (or largest, or last) loss of the query over all models.
    """

    name: ClassVar[str] = "adaptive-poison"
    summary: ClassVar[str] = "a fresh poison before every step (Nasr et al. 2021, adversary 4)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.EVERY_MODEL, (Controls.RECORDS_IN_STEPS,))
    capabilities = (Predicts, KnowsNetwork, KnowsRecipe)

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        game, training = super().craft(subject, relation, prepared), subject.require(KnowsRecipe, self.name)
        query, data = Target.of(prepared), subject.data
        known = data if self.shadow_data == "same" else held_out_of(data, "shadow_data")
        box = known.x.min(axis=0), known.x.max(axis=0)
        poisons = _Poisons(query.place(data, relation), training.network, training.recipe, query, box)

        def insert(world: int, seed: np.random.SeedSequence) -> Insertion:
            return replace(game.insert(world, seed), poisoner=poisons if world == IN else None)

        return replace(game, insert=insert)


class _Poisons:
    """The poisoner: poisons for all trainings that are about to use one."""

    def __init__(
        self, row: int, network: Network | ModuleNetwork, recipe: Recipe, query: Target, box: tuple[Array, Array]
    ) -> None:
        self.row = row
        self._network, self._query, self._box, self._clip_norm = network, query, box, recipe.clip_norm
        self._rates = recipe.learning_rates() / recipe.expected_batch
        self._stride = STRIDE * float(np.linalg.norm(box[1] - box[0]))

    def records(self, steps: NDArray[np.int64], parameters: Array) -> tuple[Array, Labels]:
        labels, rates = np.full(len(steps), self._query.label), self._rates[steps]
        poisons = np.repeat(self._query.x[None], len(steps), axis=0)
        moving = np.arange(len(steps))
        for _ in range(ITERATIONS):
            here = poisons[moving]
            models = _Simulated(
                self._network, parameters[moving], self._query.x, labels[moving], self._clip_norm, rates[moving]
            )
            along, loss = models.ascent(here)
            sizes = np.sqrt(np.sum(along.astype(np.float64) ** 2, axis=1, keepdims=True))
            moved = np.clip(here + self._stride / np.maximum(sizes, TINY) * along, *self._box).astype(here.dtype)
            better = (sizes[:, 0] > 0) & ~(models.query_loss(moved) >= loss)
            poisons[moving[better]] = moved[better]
            moving = moving[better]
            if len(moving) == 0:
                break
        return poisons, labels


class _Gradients(Protocol):
    """Of one record at each of several models, as a network gives them."""

    @property
    def logits(self) -> Array: ...

    def dot(self, other: Any) -> Floats: ...


@dataclass(frozen=True, eq=False)
class _Simulated:
    """One clipped step at each model of a stack on a poison with the query's label, and what it does to the query."""

    network: Any  # takes back only gradients that it gave
    models: Array
    query: Array
    labels: Labels
    clip_norm: float
    rates: Floats

    def query_loss(self, x: Array) -> Floats:
        """After the step."""
        own, size = self._own(x)
        return self._loss(self._after(own, size))

    def ascent(self, x: Array) -> tuple[Array, Floats]:
        """Where to move the poisons so that the step lowers the query's loss more, differentiating through it; and that
        loss.

        0 if a poison cannot be better.
        """
        own, size = self._own(x)
        pull = self._after(own, size)
        shared, whole = own.dot(pull), pull.dot(pull)
        # A clipped step has a direction and no length: what counts is the part of the pull that is beside it.
        share = np.where(size > self.clip_norm, shared / np.maximum(size, TINY) ** 2, 0.0)
        along: Array = self.network.input_gradients_along(
            self.models, x, self.labels, [(np.ones_like(share), pull), (-share, own)]
        )
        along[whole - share * shared < ALIGNED**2 * whole] = 0.0  # no direction is better
        return along, self._loss(pull)

    def _own(self, x: Array) -> tuple[_Gradients, Floats]:
        """The poisons' gradients before the step, and their norms."""
        gradients: _Gradients = self.network.record_gradients(self.models, x, self.labels)
        return gradients, np.sqrt(gradients.dot(gradients))

    def _after(self, own: _Gradients, size: Floats) -> _Gradients:
        """The query's gradients after it."""
        lengths = self.rates * np.minimum(1.0, self.clip_norm / np.maximum(size, TINY))
        queries = np.repeat(self.query[None], len(self.models), axis=0)
        gradients: _Gradients = self.network.record_gradients(self.models, queries, self.labels, [(-lengths, own)])
        return gradients

    def _loss(self, gradients: _Gradients) -> Floats:
        return record_losses(gradients.logits, self.labels, self.network.loss)
