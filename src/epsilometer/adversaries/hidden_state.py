"""A crafted gradient seen through the final model only (GC-R of Cebere et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer.adversaries.game import Adversary, Game, Prepared
from epsilometer.adversaries.gradient import absence
from epsilometer.claims import Relation
from epsilometer.evidence import IN
from epsilometer.subjects import Controls, Insertion, NoisySteps, Observer, Sees, Subject, ThreatModel, WhiteModel


@dataclass(frozen=True)
class HiddenState(Adversary):
    """Inserts a gradient of norm C on one random parameter with probability q at each step; models stay hidden.

    The score is how far that parameter of the final model has moved against it. What the steps in between would
    have told is lost unless every one of them has the canary, which is so without subsampling.
    """

    name: ClassVar[str] = "hidden-state"
    summary: ClassVar[str] = "crafted gradient on a random parameter, sees the final model (Cebere et al. 2025, GC-R)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.FINAL_MODEL, (Controls.GRADIENTS,))
    capabilities = (NoisySteps,)

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        width = subject.require(NoisySteps, self.name).width
        return {"place": np.array(np.random.default_rng(seed).integers(width))}

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        steps, place = subject.require(NoisySteps, self.name), int(prepared["place"])
        direction, absent = np.zeros(steps.width), absence(relation)
        direction[place] = steps.clip_norm

        def insert(world: int, _: np.random.SeedSequence) -> Insertion:
            times = 1.0 if world == IN else absent
            return Insertion(subject.data, gradient=times * direction if times else None)

        return Game(relation, insert, lambda: _Moved(place))


class _Moved(Observer):
    def __init__(self, place: int) -> None:
        self._place = place
        self._score = float("nan")

    def finish(self, model: WhiteModel) -> None:
        self._score = -float(model.parameters[self._place])

    def score(self) -> float:
        return self._score
