"""Adaptive poisoning (Nasr et al. 2021, adversary 4): another record before every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer.adversaries.game import IN, Game
from epsilometer.adversaries.intermediate import Intermediate
from epsilometer.adversaries.powers import Controls, Sees, ThreatModel
from epsilometer.adversaries.static_poison import STRIDE, static_poison
from epsilometer.adversaries.target import Checkpoints, Target
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.training import Array, Labels, ModuleNetwork, Network, Recipe, network_for, record_losses

ITERATIONS = 5  # of the ascent, in every step
ALIGNED = 1e-3  # the sine of an angle that is nil


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
        place = query.place(data, relation)

        def watch(world: int) -> Checkpoints:
            if world == IN:
                return _Poisoning(network, recipe, query, self.statistic, box, place)
            return Checkpoints(network, recipe.loss, query, self.statistic)

        return Game(*query.worlds(data, relation), relation, 1, watch)


class _Poisoning(Checkpoints):
    def __init__(
        self,
        network: Network | ModuleNetwork,
        recipe: Recipe,
        query: Target,
        statistic: str,
        box: tuple[Array, Array],
        place: int,
    ) -> None:
        super().__init__(network, recipe.loss, query, statistic)
        self._recipe, self._rates, self._box = recipe, recipe.learning_rates(), box
        self._place = self.replaced_row = place
        self._stride = STRIDE * float(np.linalg.norm(box[1] - box[0]))
        self._query = query.x[None]

    def replace_record(self, step: int, parameters: Array) -> tuple[int, Array, int]:
        simulated = _Simulated(
            self._network, parameters, self._query, self._labels, self._recipe.clip_norm,
            self._rates[step] / self._recipe.expected_batch,
        )  # fmt: skip
        poison = self._query
        for _ in range(ITERATIONS):
            along, loss = simulated.ascent(poison)
            size = float(np.linalg.norm(along))
            moved = poison if size == 0 else np.clip(poison + self._stride / size * along, *self._box)
            if size == 0 or simulated.query_loss(moved) >= loss:
                break
            poison = moved
        return self._place, poison[0], int(self._labels[0])


@dataclass(frozen=True, eq=False)
class _Simulated:
    """One clipped step at a model on a poison with the query's label, and what it does to the query."""

    network: Network | ModuleNetwork
    flat: Array
    query: Array
    labels: Labels
    clip_norm: float
    rate: float

    def query_loss(self, x: Array) -> float:
        """After the step."""
        after, *_ = self._step(x)
        outputs = self.network.logits(after, self.query.astype(after.dtype))
        return float(record_losses(outputs, self.labels, self.network.loss)[0])

    def ascent(self, x: Array) -> tuple[Array, float]:
        """Where to move x so that the step lowers the query's loss more, differentiating through it; and that loss.

        0 if x cannot be better.
        """
        after, own, size = self._step(x)
        query = self.query.astype(after.dtype)
        pull = self.network.clipped_gradient_sum(after, query, self.labels, np.inf)
        if size > self.clip_norm:  # a clipped step has a direction and no length
            beside = pull - (float(own @ pull) / size**2) * own
            if np.linalg.norm(beside) < ALIGNED * np.linalg.norm(pull):  # no direction is better
                return np.zeros_like(x), np.nan
            pull = beside
        along = self.network.input_gradients_along(self.flat, x, self.labels, pull.astype(self.flat.dtype))
        return along, float(record_losses(self.network.logits(after, query), self.labels, self.network.loss)[0])

    def _step(self, x: Array) -> tuple[Array, Array, float]:
        """The model after it, the poison's gradient before it, and that gradient's norm."""
        own = self.network.clipped_gradient_sum(self.flat, x.astype(self.flat.dtype), self.labels, np.inf)
        size = float(np.linalg.norm(own))
        length = self.rate * min(1.0, self.clip_norm / max(size, 1e-30))
        return self.flat - self.flat.dtype.type(length) * own, own, size
