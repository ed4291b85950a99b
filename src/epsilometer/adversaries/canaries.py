"""Many canaries in one training, each put in by its own coin: the game behind one-run bounds.

Steinke et al. (2023) audit with records or Dirac gradients; Keinan et al. (2025) let several canaries share a
coordinate. Scores follow the white-box attack Σ_t ⟨noisy sum, gradient of the canary⟩, or the final model's loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.adversaries.final_model import FinalOutputs
from epsilometer.adversaries.game import Adversary, Game, Prepared
from epsilometer.arrays import Floats
from epsilometer.claims import Relation
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.evidence import Coins, OneRun
from epsilometer.subjects import (
    Capability,
    Controls,
    Insertion,
    KnowsNetwork,
    NoisySteps,
    Observer,
    Predicts,
    Sees,
    Subject,
    ThreatModel,
)
from epsilometer.subjects.subject import Addition
from epsilometer.training import Array, Labels, record_losses

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
    evidence_type = OneRun
    least_settings: ClassVar[Mapping[str, Any]] = {"kind": "records", "sees": "model"}
    sized_by: ClassVar[str] = "canaries"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.EVERY_MODEL, (Controls.GRADIENTS,))

    def __post_init__(self) -> None:
        validate.whole("canaries", self.canaries, least=1, most=10**7)
        for argument, value, valid in (("kind", self.kind, KINDS), ("sees", self.sees, VIEWS)):
            if value not in valid:
                raise unknown_name(argument, value, valid)
        if self.kind == "gradients" and self.sees == "model":
            raise InvalidInput("sees", self.sees, "updates for gradients", "a gradient has no loss; use records")

    @property
    def needs(self) -> ThreatModel:
        seen = Sees.EVERY_MODEL if self.sees == "updates" else Sees.PREDICTIONS
        return ThreatModel(seen, (Controls.GRADIENTS if self.kind == "gradients" else Controls.RECORDS,))

    @property
    def requires(self) -> tuple[type[Capability], ...]:
        if self.kind == "gradients":
            return (NoisySteps,)
        return (Predicts,) if self.sees == "model" else (Predicts, KnowsNetwork)

    def scores_a_trial(self, subject: Subject) -> int:
        return self.canaries

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        data, rng = subject.data, np.random.default_rng(seed)
        if relation is Relation.REPLACE:
            raise InvalidInput("relation", relation.value, "add-remove or zero-out: a coin puts a canary in or not")
        if self.kind == "gradients":
            steps = subject.require(NoisySteps, self.name)
            if not steps.by_coins:
                raise InvalidInput(
                    "sampling", steps.sampling, "poisson or full for gradients that toss their own coins"
                )
            places = rng.permutation(steps.width)
            return {"places": places[np.arange(self.canaries) % len(places)]}
        if self.canaries > len(data):
            raise InvalidInput("canaries", self.canaries, f"at most the {len(data)} records of {data.name}")
        rows = rng.choice(len(data), self.canaries, replace=False)
        return {"rows": rows, "wrong": (data.y[rows] + rng.integers(1, data.classes, len(rows))) % data.classes}

    def pictured(self, subject: Subject, prepared: Prepared) -> list[tuple[str, Array]]:
        shown = zip(prepared.get("rows", ())[:2], prepared.get("wrong", ())[:2], strict=True)
        return [(f"canary, said to be {label}", subject.data.x[row]) for row, label in shown]

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        if self.kind == "gradients":
            return self._gradients(subject, relation, prepared["places"])
        data, rows, wrong = subject.data, prepared["rows"], prepared["wrong"]
        mislabelled = data.with_rows(rows, data.x[rows], wrong)

        def insert(coins: Coins, _: np.random.SeedSequence) -> Insertion:
            kept = np.ones(len(data), bool)
            kept[rows[~coins]] = False
            return Insertion(mislabelled, rows=np.flatnonzero(kept))

        network = subject.require(KnowsNetwork, self.name) if self.sees == "updates" else None

        def observe() -> Observer:
            if network is None:
                return FinalOutputs(data.x[rows], lambda outputs: -record_losses(outputs, wrong))
            return _SeesUpdates(network, data.x[rows], wrong)

        return Game(relation, insert, observe, scores=self.canaries)

    def _gradients(self, subject: Subject, relation: Relation, places: NDArray[np.int64]) -> Game:
        steps, data = subject.require(NoisySteps, self.name), subject.data

        def insert(coins: Coins, seed: np.random.SeedSequence) -> Insertion:
            included, rng = places[coins], np.random.default_rng(seed)

            def additions(_: int) -> Addition:
                sampled = included[rng.random(len(included)) < steps.sample_rate]
                return sampled, np.full(len(sampled), steps.clip_norm)

            return Insertion(data, additions=additions)

        return Game(relation, insert, lambda: _SeesPlaces(steps, data, places), scores=self.canaries)


class _SeesPlaces(Observer):
    """Adds up what is seen at every canary's place, where an included one adds C with probability q in each step.

    What the natural records are expected to contribute at the model before the step is known, and taken off.
    """

    stepwise = True

    def __init__(self, steps: NoisySteps, data: Any, places: NDArray[np.int64]) -> None:
        self._steps, self._data, self._places = steps, data, places
        self._natural: Array = np.zeros(0)
        self._seen = np.zeros(len(places))

    def before(self, step: int, parameters: Array) -> None:
        self._natural = self._steps.expected_sum(self._data, parameters)

    def observe(self, step: int, noisy_sum: Array, parameters: Array) -> bool:
        self._seen += (noisy_sum - self._natural)[self._places]
        return False

    def score(self) -> Floats:
        return self._seen


class _SeesUpdates(Observer):
    """Σ_t ⟨noisy sum, clipped gradient of the canary at the model before the step⟩."""

    stepwise = True

    def __init__(self, network: KnowsNetwork, x: Array, y: Labels) -> None:
        self._network, self._x, self._y = network, x, y
        self._before: Array | None = None
        self._seen = np.zeros(len(x))

    def before(self, step: int, parameters: Array) -> None:
        self._before = parameters.copy()  # what the step's gradients are taken at

    def observe(self, step: int, noisy_sum: Array, parameters: Array) -> bool:
        assert self._before is not None
        self._seen += self._network.clipped_products(self._before, self._x, self._y, noisy_sum)
        return False

    def score(self) -> Floats:
        return self._seen
