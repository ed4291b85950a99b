"""Membership inference by loss (Yeom et al. 2018; Jayaraman & Evans 2019), played as a game that certifies an ε."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer import checks
from epsilometer.adversaries.game import Adversary, CanaryGame, CanaryWatcher
from epsilometer.adversaries.powers import Sees, ThreatModel
from epsilometer.claims import Floats, Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.evidence import OneRun
from epsilometer.training import Array, ModuleNetwork, Network, Recipe, network_for, record_losses


@dataclass(frozen=True)
class MembershipAttack(Adversary):
    """Natural records, each in the training by a fair coin; "member" means a loss below the mean training loss.

    The score is the mean loss of the records that are in anyway less the record's own, so that Yeom's threshold is
    0. His attacker is told the mean over *all* members; that number has seen the coins without any noise, and an ε
    that rests on it would not be the training's. With the others' mean, nothing but the model has seen them.

    `records` may be all but one of the data. With `threshold = 0` in the audit every record is guessed, and the
    bound is one on the attack's accuracy; without it, the surest guesses count.
    """

    records: int = 1000
    name: ClassVar[str] = "membership"
    summary: ClassVar[str] = "natural records, guessed by their loss (Yeom et al. 2018)"
    gives: ClassVar[type] = OneRun
    threat: ClassVar[ThreatModel] = ThreatModel(
        Sees.FINAL_MODEL, (), knows="the records, and which of the others are in"
    )

    def __post_init__(self) -> None:
        checks.whole("records", self.records, least=1)

    def craft(self, recipe: Recipe, data: Dataset, relation: Relation, seed: np.random.SeedSequence) -> CanaryGame:
        if relation is Relation.REPLACE:
            raise InvalidInput("relation", relation.value, "add-remove or zero-out: a coin puts a record in or not")
        if self.records >= len(data):
            expected = f"fewer than the {len(data)} records of {data.name}"
            raise InvalidInput("records", self.records, expected)
        order = np.random.default_rng(seed).permutation(len(data))
        tossed, others = order[: self.records], np.sort(order[self.records :])
        network = network_for(recipe, data)

        def world(coins: NDArray[np.bool_]) -> Dataset:
            kept = np.sort(np.concatenate([others, tossed[coins]]))
            return Dataset(data.name, data.x[kept], data.y[kept], data.classes)

        def watch(_: NDArray[np.bool_], __: np.random.SeedSequence) -> CanaryWatcher:
            return _Losses(network, recipe.loss, data, tossed, others)

        return CanaryGame(self.records, relation, world, watch)


class _Losses(CanaryWatcher):
    def __init__(
        self,
        network: Network | ModuleNetwork,
        loss: str,
        data: Dataset,
        tossed: NDArray[np.int64],
        others: NDArray[np.int64],
    ) -> None:
        self._network, self._loss, self._data = network, loss, data
        self._tossed, self._others = tossed, others
        self._scores: Floats = np.zeros(len(tossed))

    def finish(self, parameters: Array, projections: Floats) -> None:
        outputs = self._network.logits(parameters, self._data.x.astype(parameters.dtype))
        losses = record_losses(outputs, self._data.y, self._loss)
        self._scores = losses[self._others].mean() - losses[self._tossed]

    def scores(self) -> Floats:
        return self._scores
