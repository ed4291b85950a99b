"""ClipBKD against private ridge regression (Jagielski et al. 2020, Appendix B), where its ε is known."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epsilometer.adversaries.final_model import identity
from epsilometer.adversaries.game import Adversary, Game, Prepared, two_worlds
from epsilometer.arrays import Floats
from epsilometer.claims import Relation
from epsilometer.mechanisms import craft_poison
from epsilometer.subjects import Controls, KnowsRidge, Observer, Sees, Subject, ThreatModel


@dataclass(frozen=True)
class RidgeClipBkd(Adversary):
    """World 1 has the poison more. The score is how far beyond the midpoint the released coefficients lie in its
    direction: in which alone the worlds differ, so that no score tells them apart better.
    """

    name: ClassVar[str] = "ridge-clipbkd"
    summary: ClassVar[str] = "the poison of Appendix B in private ridge regression (Jagielski et al. 2020)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.RELEASE, (Controls.RECORDS,), "mechanism and data")
    capabilities = (KnowsRidge,)

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        training = subject.require(KnowsRidge, self.name)
        poison = craft_poison(training.ridge, training.data.x, training.data.y)
        return {"point": poison.point, "label": np.array(poison.label), "midpoint": np.array(poison.midpoint)}

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        point, label, midpoint = prepared["point"], float(prepared["label"]), float(prepared["midpoint"])
        data = subject.data
        return Game(
            relation,
            two_worlds(data, data.plus(point, label)),
            functools.partial(_BeyondMidpoint, point, midpoint),
            out_identity=identity(data, point, midpoint),
        )


class _BeyondMidpoint(Observer):
    _score = float("nan")

    def __init__(self, point: Floats, midpoint: float) -> None:
        self._point, self._midpoint = point, midpoint

    def finish(self, model: Any) -> None:
        self._score = float(model.numbers @ self._point) - self._midpoint

    def score(self) -> float:
        return self._score
