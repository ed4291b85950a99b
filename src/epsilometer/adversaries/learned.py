"""A learned score, for outputs that no hand-made score fits: summary statistics, and a small classifier on them.

It is fitted on trainings with seeds of their own, then frozen: what it scores in the audit it has never seen, so that
nothing has to be paid for the learning. A leak need not be in the mean: variances, norms and order statistics are
among the summaries.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.adversaries.clipbkd import ClipBkd
from epsilometer.adversaries.game import Adversary, Game, Prepared, two_worlds
from epsilometer.adversaries.logistic import fitted_logistic
from epsilometer.adversaries.target import Target, chosen_target, natural_row
from epsilometer.arrays import Floats
from epsilometer.claims import Relation
from epsilometer.data import SUFFIXES, OwnRecord
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.evidence import IN, OUT
from epsilometer.subjects import Controls, HasRecords, Observer, Sees, Subject, ThreatModel
from epsilometer.training import Array

RECORDS = {"natural": "a record of the data", "clipbkd": "the poison of clipbkd"}
VIEWS = {"model": "what is released in the end", "updates": "the noisy sum of every step"}
MOST = 2048  # numbers kept of one training: longer ones are added up, with signs, into so many
DIRECTIONS = 16  # random ones, on which outputs are projected
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True)
class LearnedScore(Adversary):
    """Trains `examples` models of each world for itself and learns to tell their outputs apart.

    `record` is what world 1 has more: a natural record (any, or that of a row), the poison of clipbkd, or a file of the
    user's own with one record (.npz, .csv, .parquet). With `sees = "model"` the output is
    all that is released, as numbers; with "updates", the noisy sums of all steps.
    """

    examples: int = 200
    record: str | int = "natural"
    sees: str = "model"
    name: ClassVar[str] = "learned"
    summary: ClassVar[str] = "a score learned from trainings of its own, on whatever is released"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.RELEASE, ())
    capabilities = (HasRecords,)

    def __post_init__(self) -> None:
        validate.whole("examples", self.examples, least=10, most=10**6)
        if self.sees not in VIEWS:
            raise unknown_name("sees", self.sees, VIEWS)
        if self._own is None and self.record not in RECORDS:
            validate.whole("record", self.record, least=0)

    @functools.cached_property
    def _own(self) -> OwnRecord | None:
        """Read once: the record travels to other processes, its file need not."""
        if not isinstance(self.record, str) or self.record in RECORDS:
            return None
        if Path(self.record).suffix not in SUFFIXES:
            raise unknown_name("record", self.record, [*RECORDS, "a row number", f"a file ({', '.join(SUFFIXES)})"])
        return OwnRecord.read(self.record)

    def reads(self, data: Any) -> dict[str, Any]:
        return {} if self._own is None else {"record_sha256": self._own.fingerprint()}

    @property
    def needs(self) -> ThreatModel:
        seen = Sees.EVERY_MODEL if self.sees == "updates" else Sees.RELEASE
        if self.record == "clipbkd":  # its label comes from predictions
            seen = max(seen, Sees.PREDICTIONS, key=list(Sees).index)
        crafted = self.record == "clipbkd" or self._own is not None
        return ThreatModel(seen, (Controls.RECORDS,) if crafted else ())

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        crafting, drawing, *training = seed.spawn(2 + 2 * self.examples)
        inserted = self._record(subject, relation, crafting)
        game = self._insertions(subject, relation, inserted)
        worlds = np.arange(2 * self.examples) % 2
        insertions = [game.insert(int(world), crafting) for world in worlds]
        seen = [self._observer() for _ in worlds]
        subject.run(insertions, training, seen)
        learned = _fitted(np.stack([one.numbers for one in seen]), worlds, np.random.default_rng(drawing))
        return {**{f"record_{name}": values for name, values in inserted.items()}, **learned}

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        prefix = "record_"
        inserted = {name[len(prefix) :]: values for name, values in prepared.items() if name.startswith(prefix)}
        game = self._insertions(subject, relation, inserted)
        return Game(relation, game.insert, lambda: self._observer(prepared))

    def _record(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        if self.record == "clipbkd":
            return ClipBkd().prepare(subject, relation, seed)
        row = self.record if isinstance(self.record, int) else None
        if _has_classes(subject.data):
            return chosen_target(subject.data, self._own or row, relation, seed).prepared()
        if self._own is not None:
            raise InvalidInput("record", self.record, "natural, or a row of the data", "its numbers are no classes")
        return {"row": np.array([natural_row(subject.data, row, seed)])}

    def _insertions(self, subject: Subject, relation: Relation, inserted: Prepared) -> Game:
        if self.record == "clipbkd":
            return ClipBkd().craft(subject, relation, inserted)
        if not _has_classes(subject.data):  # the record has no class of which another would be wrong
            data, row = subject.data, int(inserted["row"][0])
            if relation is Relation.REPLACE:  # nothing in its place, with the opposite number
                return Game(
                    relation, two_worlds(data.replaced(row, 0.0 * data.x[row], -data.y[row]), data), self._observer
                )
            worlds = two_worlds(data.without(row), data)
            return Game(relation, worlds, self._observer)
        target = Target.of(inserted)
        return Game(relation, target.inserted(subject.data, relation), self._observer)

    def _observer(self, learned: Prepared | None = None) -> _Seen:
        return _SeenUpdates(learned) if self.sees == "updates" else _Seen(learned)


def _has_classes(data: Any) -> bool:
    """Or numbers, as `RegressionData` have."""
    return hasattr(data, "classes")


class _Seen(Observer):
    """The numbers of one training, and what was learned says of them."""

    def __init__(self, learned: Prepared | None = None) -> None:
        self._learned = learned
        self.numbers: Floats = np.zeros(0)

    def finish(self, model: Any) -> None:
        self.numbers = sketched(np.asarray(model.numbers, np.float64))

    def score(self) -> float:
        assert self._learned is not None
        return float(_scores(self.numbers[None], self._learned)[0])


class _SeenUpdates(_Seen):
    stepwise = True

    def __init__(self, learned: Prepared | None = None) -> None:
        super().__init__(learned)
        self._steps: list[Floats] = []

    def observe(self, step: int, noisy_sum: Array, parameters: Array) -> bool:
        self._steps.append(sketched(noisy_sum.astype(np.float64)))
        return False

    def finish(self, model: Any) -> None:
        self.numbers = sketched(np.concatenate(self._steps))


def sketched(numbers: Floats) -> Floats:
    """At most so many numbers: each of a longer vector is added to a place of its own choice, with a random sign.

    >>> sketched(np.ones(5)).tolist(), len(sketched(np.ones(100_000)))
    ([1.0, 1.0, 1.0, 1.0, 1.0], 2048)
    """
    if len(numbers) <= MOST:
        return numbers.copy()
    rng = np.random.default_rng(len(numbers))  # the same for all outputs of one length
    places, signs = rng.integers(0, MOST, len(numbers)), rng.choice((-1.0, 1.0), len(numbers))
    return np.bincount(places, weights=signs * numbers, minlength=MOST).astype(np.float64)


def _summaries(numbers: Floats, learned: Prepared) -> Floats:
    """A row of summaries for each output: how large, how spread, how far, and in which directions."""
    apart = (numbers - learned["centre"]) / learned["spread"]
    energy = np.mean(apart**2, axis=1)
    columns = [
        *(np.quantile(numbers, QUANTILES, axis=1)),
        *(np.quantile(apart, QUANTILES, axis=1)),
        numbers.mean(axis=1),
        numbers.std(axis=1),
        apart.mean(axis=1),
        np.log1p(np.abs(numbers).mean(axis=1)),
        np.log1p(np.sqrt(np.mean(numbers**2, axis=1))),
        np.log(energy + 1e-12),
        np.mean(apart**4, axis=1) ** 0.25,
        apart @ learned["direction"],
        *(apart @ learned["directions"]).T,
        *((apart @ learned["directions"]) ** 2).T,
    ]
    return np.column_stack(columns)


def _fitted(numbers: Floats, worlds: NDArray[np.int64], rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Centre, spread and directions of the outputs, and a logistic regression on their summaries."""
    absent, present = numbers[worlds == OUT], numbers[worlds == IN]
    spread = absent.std(axis=0) + 1e-12 * (1.0 + np.abs(absent).max())
    moved = (present.mean(axis=0) - absent.mean(axis=0)) / spread
    directions = rng.normal(size=(numbers.shape[1], DIRECTIONS)) / np.sqrt(numbers.shape[1])
    learned: dict[str, NDArray[Any]] = {
        "centre": absent.mean(axis=0),
        "spread": spread,
        "direction": moved / max(float(np.linalg.norm(moved)), 1e-12),
        "directions": directions,
    }
    summaries = np.clip(_summaries(numbers, learned), -1e12, 1e12)
    learned["mean"], learned["scale"] = summaries.mean(axis=0), summaries.std(axis=0) + 1e-12
    standardised = (summaries - learned["mean"]) / learned["scale"]
    learned["weights"] = fitted_logistic(standardised, worlds)[:-1]
    return learned


def _scores(numbers: Floats, learned: Prepared) -> Floats:
    """Log-odds of world 1, up to a constant."""
    summaries = np.clip(_summaries(numbers, learned), -1e12, 1e12)
    scores: Floats = ((summaries - learned["mean"]) / learned["scale"]) @ learned["weights"]
    return scores
