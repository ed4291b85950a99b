"""A pair of neighbours that was chosen beforehand, told apart along the line between their noiseless models."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epsilometer import validate
from epsilometer.adversaries.final_model import identity
from epsilometer.adversaries.game import Adversary, Game, Prepared, two_worlds
from epsilometer.arrays import Floats
from epsilometer.claims import Relation
from epsilometer.data import RegressionData
from epsilometer.errors import InvalidInput
from epsilometer.subjects import Controls, KnowsErm, Observer, Sees, Subject, ThreatModel


@dataclass(frozen=True)
class Neighbour(Adversary):
    """World 1 has the record (`point`, `target`) in place of `row`. The score is how far the released model lies
    towards the noiseless model of world 1 (for normal noise on it no score tells the worlds apart better); of a
    training that is random without noise too, towards where the record pulls.
    """

    point: tuple[float, ...] = ()
    target: float = 1.0
    row: int = 0
    name: ClassVar[str] = "neighbour"
    summary: ClassVar[str] = "a record of private ERM that has another value, chosen beforehand"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.RELEASE, (Controls.RECORDS,), "mechanism and data")
    capabilities = (KnowsErm,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", tuple(float(number) for number in self.point))
        validate.whole("row", self.row, least=0)

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        worlds = self._worlds(subject, relation)
        models = [
            [model.numbers for model in subject.rehearse(data, seed.spawn(2), noiseless=True)]  # type: ignore[attr-defined]
            for data in worlds
        ]
        before, after = models[0][0], models[1][0]
        if np.array_equal(before, after) or not all(np.array_equal(*pair) for pair in models):  # SGD draws records
            before, after = (self._pull(subject, data) for data in worlds)
        apart = np.linalg.norm(after - before)
        if not apart > 0:
            raise InvalidInput("point", self.point, "a record that changes the model", "choose another")
        return {"direction": (after - before) / apart, "middle": (before + after) / 2.0}

    def _pull(self, subject: Subject, data: RegressionData) -> Floats:
        """Where the record pulls a model that knows nothing yet."""
        problem = subject.require(KnowsErm, self.name).erm.problem
        rows, targets = problem.bounded(data.x, data.y)
        pull: Floats = -problem.loss.slope(np.zeros(1), targets[self.row : self.row + 1]) * rows[self.row]
        return pull

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        out_data, in_data = self._worlds(subject, relation)
        direction, middle = prepared["direction"], prepared["middle"]
        return Game(
            relation,
            two_worlds(out_data, in_data),
            functools.partial(_AlongTheLine, direction, middle),
            out_identity=identity(out_data, direction, middle),
        )

    def _worlds(self, subject: Subject, relation: Relation) -> tuple[RegressionData, RegressionData]:
        data: RegressionData = subject.data
        if len(self.point) != data.x.shape[1]:
            raise InvalidInput("point", self.point, f"{data.x.shape[1]} features, as {data.name} has")
        if self.row >= len(data):
            raise InvalidInput("row", self.row, f"one of the {len(data)} records of {data.name}")
        return data, data.replaced(self.row, self.point, self.target)


class _AlongTheLine(Observer):
    _score = float("nan")

    def __init__(self, direction: Floats, middle: Floats) -> None:
        self._direction, self._middle = direction, middle

    def finish(self, model: Any) -> None:
        self._score = float((model.numbers - self._middle) @ self._direction)

    def score(self) -> float:
        return self._score
