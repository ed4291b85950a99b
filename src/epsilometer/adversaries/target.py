"""One record that world 1 has and world 0 has not, and how its loss looks to those who see models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from epsilometer.adversaries.final_model import FinalOutputs
from epsilometer.adversaries.game import Prepared, two_worlds
from epsilometer.adversaries.poisoning import Poison
from epsilometer.claims import Relation
from epsilometer.data import Dataset, OwnRecord, RegressionData
from epsilometer.errors import InvalidInput
from epsilometer.subjects import Insertion, KnowsNetwork, Observer
from epsilometer.training import Array, record_losses


@dataclass(frozen=True, eq=False)
class Target:
    """A record `x` of class `label` that takes the place of a row of the data; `other` is a class that it is not of.

    Without a row (−1) it comes to all of the data.
    """

    row: int
    x: Array
    label: int
    other: int

    def prepared(self) -> Prepared:
        return {"x": self.x, "rest": np.array([self.row, self.label, self.other])}

    @classmethod
    def of(cls, prepared: Prepared) -> Self:
        row, label, other = (int(number) for number in prepared["rest"])
        return cls(row, prepared["x"], label, other)

    def inserted(self, data: Dataset, relation: Relation) -> Callable[[int, np.random.SeedSequence], Insertion]:
        return two_worlds(*self.worlds(data, relation))

    def worlds(self, data: Dataset, relation: Relation) -> tuple[Dataset, Dataset]:
        """Worlds 0 and 1: the data without the row (or all of them), and with the target for it.

        Under `replace` world 0 has the target too, with the other label.
        """
        poison = Poison(self.x[None], self.label, self.other)
        if relation is Relation.REPLACE:
            return poison.worlds(data, relation, np.array([self.row]), "label")
        others = data if self.row < 0 else data.without(self.row)
        return poison.worlds(others, relation, np.array([self.row]), "row")

    def place(self, data: Dataset, relation: Relation) -> int:
        """Its row in world 1."""
        if relation is Relation.REPLACE:
            return self.row
        return len(data) if self.row < 0 else len(data) - 1


def natural_row(data: Dataset | RegressionData, row: int | None, seed: np.random.SeedSequence) -> int:
    """The given row of the data, or a random one."""
    if len(data) < 2:
        raise InvalidInput("data", data.name, "at least 2 records, one of which can be left out")
    if row is not None and row >= len(data):
        raise InvalidInput("record", row, f"a row of {data.name}, 0 to {len(data) - 1}")
    return int(np.random.default_rng(seed).integers(len(data))) if row is None else row


def natural_target(data: Dataset, row: int | None, seed: np.random.SeedSequence) -> Target:
    """A record of the data: the given row, or a random one."""
    chosen = natural_row(data, row, seed)
    label = int(data.y[chosen])
    return Target(chosen, data.x[chosen], label, (label + 1) % data.classes)


def chosen_target(
    data: Dataset, record: int | OwnRecord | None, relation: Relation, seed: np.random.SeedSequence
) -> Target:
    """A row of the data, a random one, or a record of the user's own.

    That one comes to all of the data, unless it is there already; under `replace`, to the place of a random row.
    """
    if not isinstance(record, OwnRecord):
        return natural_target(data, record, seed)
    x, label = record.fitted(data)
    there = np.flatnonzero((data.y == label) & (data.x == x).all(axis=1))
    row = int(there[0]) if len(there) else -1
    if row < 0 and relation is Relation.REPLACE:
        row = natural_row(data, None, seed)
    return Target(row, x, label, (label + 1) % data.classes)


def final_loss(loss: str, target: Target) -> FinalOutputs:
    """Minus the target's loss at the final model: a member's is lower."""
    labels = np.array([target.label])
    return FinalOutputs(target.x[None], lambda outputs: -float(record_losses(outputs, labels, loss)[0]))


STATISTICS = {"mean": "the mean of the losses", "max": "the largest loss", "last": "the loss at the final model"}


class Checkpoints(Observer):
    """Minus the target's mean, largest or last loss over the models of all steps."""

    stepwise = True

    def __init__(self, network: KnowsNetwork, loss: str, target: Target, statistic: str) -> None:
        self._network, self._loss, self._statistic = network, loss, statistic
        self._point, self._label = target.x[None], target.label
        self._outputs: list[Array] = []

    def observe(self, step: int, noisy_sum: Array, parameters: Array) -> bool:
        self._outputs.append(self._network.logits(parameters, self._point))
        return False

    def score(self) -> float:
        labels = np.full(len(self._outputs), self._label)
        losses = record_losses(np.concatenate(self._outputs), labels, self._loss)
        if self._statistic == "last":
            return -float(losses[-1])
        return -float(np.mean(losses) if self._statistic == "mean" else np.max(losses))
