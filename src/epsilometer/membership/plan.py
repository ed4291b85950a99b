"""Which models are trained and what is read off them: everything that decides signals, frozen before the first."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, Coins, Membership, Trial, toss_coins
from epsilometer.isolation import Isolation
from epsilometer.membership.given import GivenModel
from epsilometer.membership.queries import Queries
from epsilometer.membership.readout import READOUTS, Classifier, Readout
from epsilometer.membership.signals import Signals
from epsilometer.neighbours import RECORD, Neighbours
from epsilometer.runs import Preparation, Results
from epsilometer.runs.identity import Fingerprinted
from epsilometer.runs.scores import require_scores
from epsilometer.runs.trials import one_thread
from epsilometer.seeds import Seeds
from epsilometer.subjects import Insertion, Observer, Subject
from epsilometer.training import Network

VERSION = 1  # raised whenever the same plan would give other signals
MOST_MODELS = 4096


@dataclass(frozen=True, eq=False, repr=False)
class MembershipPlan(Fingerprinted):
    """Targets that are attacked, and references that the attacker trains; all of them are trials (see `Trials`).

    Every record of `training.data` is in a target by a fair coin of its own, and in a reference by another: references
    come in pairs with opposite coins, so that each record is in exactly half of them. `population` has records that
    are in no model. A `given` model is the one target instead, and then nothing can certify an ε.
    """

    kind: ClassVar[str] = "membership"
    training: Subject | None
    population: Dataset
    targets: int = 1
    references: int = 16
    queries: Queries | None = None  # for attacks that see labels only
    white_box: bool = False
    seed: int = 0
    given: GivenModel | None = None
    records: Dataset | None = None  # of a given model; those of the training, where there is one
    readout: Readout | None = None  # what is read off a model; if nothing is said, what its training has

    def __post_init__(self) -> None:
        validate.whole("targets", self.targets, least=1, most=MOST_MODELS)
        validate.whole("references", self.references, least=0, most=MOST_MODELS)
        validate.seed("seed", self.seed)
        if self.training is None and (self.given is None or self.references):
            raise InvalidInput("training", None, "a training", "references and targets are trained by it")
        if self.given is not None and self.targets != 1:
            raise InvalidInput("targets", self.targets, "1: the given model is the target")
        if self.given is not None and len(self.given.member) != len(self.data):
            raise InvalidInput(
                "member", f"{len(self.given.member)} values", f"one for each of {len(self.data)} records"
            )
        if self.readout is not None and (self.queries is not None or self.white_box):
            expected = "nothing beside queries and white_box, which a classifier's readout has"
            raise InvalidInput("readout", self.readout.name, expected, "leave it out")
        if self.training is not None:
            self.reads.require(self.training)
        if self.reads.name in READOUTS.own:
            self._require_alike()
        if self.white_box and self._network is None:
            expected = "false: layers are known of the own fully connected networks only"
            raise InvalidInput("white_box", True, expected, "leave white-box attacks out")

    def _require_alike(self) -> None:
        if self.population.x.shape[1] != self.data.x.shape[1] or self.population.classes != self.data.classes:
            shape = f"{self.population.x.shape[1]} features, {self.population.classes} classes"
            expected = f"{self.data.x.shape[1]} features and {self.data.classes} classes, as the records have"
            raise InvalidInput("population", shape, expected)

    @property
    def data(self) -> Dataset:
        """The records whose membership is inferred."""
        if self.training is None:
            assert self.records is not None
            return self.records
        found: Dataset = self.training.data
        return found

    @property
    def neighbours(self) -> Neighbours:
        """In what worlds differ for which a coin was tossed: one row of the data, in or out."""
        return Neighbours(RECORD if self.training is None else self.training.unit)

    @property
    def by_coins(self) -> bool:
        """Whether fair coins of our own decided who is in a target."""
        return self.given is None

    @property
    def _network(self) -> Network | None:
        network = getattr(self.training, "network", None) if self.given is None else None
        return network if getattr(network, "fully_connected", False) else None

    @functools.cached_property
    def reads(self) -> Readout:
        """What is read off each model."""
        if self.readout is not None:
            return self.readout
        return Classifier(self.queries, self._network if self.white_box else None)

    @property
    def signal_names(self) -> tuple[str, ...]:
        return self.reads.signals

    def member(self, index: int) -> Coins:
        """Who is in the model of that index: targets come first."""
        if index < self.targets:
            return toss_coins(self.seed, index, len(self.data)) if self.given is None else self.given.member
        pair, second = divmod(index - self.targets, 2)
        coins = toss_coins(self.seed, self.targets + pair, len(self.data))
        return ~coins if second else coins

    # ------------------------------------------------------------------------------------- its trials (see Trials)
    @property
    def worlds(self) -> tuple[int, ...]:
        return (IN,)

    @property
    def planned_trials(self) -> int:
        return self.targets + self.references

    @property
    def first_look(self) -> int:
        return self.planned_trials

    @property
    def safeguards(self) -> Isolation:
        mine = Isolation() if self.training is None else self.training.safeguards
        if self.given is None:
            return mine
        travels = not callable(self.given.predict) and mine.travels
        return Isolation(True, travels, mine.fresh_process, mine.seconds, mine.repeats)

    def to_dict(self) -> dict[str, Any]:
        """All that decides signals, and no attack: other attacks use the same models again."""
        data, population = self.data, self.population
        own = {"data": {"name": data.name, "records": len(data), "sha256": data.fingerprint()}}
        return {
            "membership_version": VERSION,
            "claim": {"kind": "none", **self.neighbours.identity()},
            "delta": 0.0,
            **(own if self.training is None else self.training.identity()),
            "population": {"records": len(population), "sha256": population.fingerprint()},
            "adversary": {"name": "membership"},
            "evidence": Membership.__name__,
            "targets": self.targets,
            "references": self.references,
            "signals": list(self.signal_names),
            **({} if self.readout is None else {"readout": self.readout.name}),
            "queries": None if self.queries is None else self.queries.to_dict(),
            "given": None if self.given is None else self.given.identity(),
            "group_size": 1,
            "trials": self.planned_trials,
            "seed": self.seed,
        }

    def about(self) -> dict[str, Any]:
        return {}

    def prepare(self) -> Preparation:
        if self.training is not None:
            self.training.load()
        return Preparation({})

    def play(self, prepared: Preparation, trials: Sequence[Trial]) -> list[Floats]:
        seen = {trial: self._given_signals() for trial in trials if self.given is not None and trial[1] == 0}
        rest = [trial for trial in trials if trial not in seen]
        if rest:
            assert self.training is not None
            data, looking = self.data, [_Looking(self) for _ in rest]
            members = [self.member(index) for _, index in rest]
            insertions = [Insertion(data, rows=np.flatnonzero(member)) for member in members]
            self.training.run(insertions, Seeds(self.seed, rest), looking)
            seen |= {trial: one.score() for trial, one in zip(rest, looking, strict=True)}
        return [seen[trial] for trial in trials]

    def _given_signals(self) -> Floats:
        assert self.given is not None
        with one_thread():
            return self.signals_of(self.given.asked(self.data)).ravel()

    def signals_of(self, model: Any) -> Floats:
        """A row for each record, and then for each of the population."""
        return self.reads.read(model, (self.data, self.population))

    def accepted(self, results: Mapping[Trial, Any], **remedy: str) -> dict[Trial, Floats]:
        length = (len(self.data) + len(self.population)) * len(self.signal_names)
        return require_scores(results, "membership", length, **remedy)

    def is_enough(self, results: Results, count: int) -> bool:
        return False

    def so_far(self, results: Results, count: int) -> str:
        return ""

    def rehearsal(self) -> None:
        return None

    def describe(self) -> str:
        return "membership"

    def code(self) -> list[Any]:
        own = [] if self.given is None else [self.given.function()]
        return [*own, *([] if self.training is None else self.training.code())]

    def signals(self, results: Results) -> Signals:
        """Models × records (those of the population last) × signals."""
        rows = [results[IN, index] for index in range(self.planned_trials)]
        shape = (len(rows), len(self.data) + len(self.population), len(self.signal_names))
        return Signals(self.signal_names, np.concatenate(rows).reshape(shape))

    def words(self) -> str:
        """What is attacked, in a line."""
        if self.given is not None:
            members = int(self.given.member.sum())
            return f"{self.given.name}, a given model, with {members} members and {len(self.data) - members} others"
        assert self.training is not None
        return self.training.describe()

    def __repr__(self) -> str:
        return f"MembershipPlan({self.words()}; {self.targets} targets, {self.references} references, seed {self.seed})"


class _Looking(Observer):
    """Reads signals off the final model; it is told neither coins nor seed."""

    def __init__(self, plan: MembershipPlan) -> None:
        self._plan = plan
        self._seen: Floats = np.zeros(0)

    def finish(self, model: Any) -> None:
        self._seen = self._plan.signals_of(model).ravel()

    def score(self) -> Floats:
        return self._seen
