"""Whatever is audited, and the two parties of a trial: who puts something in, and who looks.

An *insertion* knows the world and sees nothing. An *observer* sees what the subject grants and does not know the world:
whatever its score says about the world, it has learned from the training.
"""

from __future__ import annotations

import functools
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from epsilometer.accounting import NoPromise, Promise, StepsPromise
from epsilometer.arrays import Floats
from epsilometer.claims import Claim, Relation
from epsilometer.deprecated import moved_property
from epsilometer.errors import InvalidInput
from epsilometer.isolation import Isolation
from epsilometer.neighbours import RECORD
from epsilometer.subjects.access import Access
from epsilometer.subjects.capabilities import Capability
from epsilometer.training import Array, Labels, Poisoner

Offered = TypeVar("Offered", bound=Capability)
Addition = tuple[NDArray[np.int64], Floats]  # places in the parameter vector, and what is added there


class Model(Protocol):
    """What a training ends in, as those see it who may ask it for predictions."""

    def logits(self, x: Array) -> Array:
        """A row of outputs, one a class, for each record (row)."""


class WhiteModel(Model, Protocol):
    """A model whose parameters are seen."""

    @property
    def parameters(self) -> Array:
        """One flat vector (a view: copy what you keep)."""

    @property
    def projections(self) -> Floats:
        """⟨noisy sum, probe⟩ of every step; empty without a probe."""


@runtime_checkable
class Differentiable(Protocol):
    """A model through which a record can be moved."""

    def input_gradients(self, x: Array, y: Labels) -> Array:
        """The gradient of each record's loss by its features."""


@dataclass(frozen=True, eq=False)
class Insertion:
    """What is put into one training: its data and, where the subject grants more, gradients and initial weights.

    Its data are `whole`, or the records of it at `rows`, in this order: `data`, which is copied only if somebody asks
    for it, since a game that leaves other records out in every trial would take longer to copy than to train.
    `gradient`, of norm ≤ clip_norm, is sampled like one more record; `additions` gives for every step what is added to
    the sum of clipped gradients; `poisoner` makes one record anew before every step, and is shared by all trainings
    that it makes records for; `start` is where the training starts.
    """

    whole: Any  # of the subject's own kind
    gradient: Array | None = None
    additions: Callable[[int], Addition] | None = None
    poisoner: Poisoner | None = None
    start: Array | None = None
    rows: NDArray[np.int64] | None = None

    @functools.cached_property
    def data(self) -> Any:
        return self.whole if self.rows is None else self.whole.taken(self.rows)


class Observer(ABC):
    """Sees one training, and says afterwards how much it looks like world 1 (see evidence.py).

    `probe` is a direction on which every noisy sum is projected, which costs next to nothing. Who wants to see every
    step says so (`stepwise`) and pays for it.
    """

    probe: Array | None = None
    stepwise: bool = False

    def before(self, step: int, parameters: Array) -> None:
        """Before a step (if `stepwise`): the model at which its gradients will be taken (a view)."""

    def observe(self, step: int, noisy_sum: Array, parameters: Array) -> bool:
        """After a step (if `stepwise`): the noisy sum and the new model (views); True ends the training here."""
        return False

    def finish(self, model: Any) -> None:
        """The final model: a `Model`, or more where the subject grants more."""

    @abstractmethod
    def score(self) -> float | Floats:
        """One number, or one for each canary."""


class Subject(ABC):
    """What is audited: what runs, what it grants to those who attack it, and what it promises."""

    # What it trains on, with a name, a length and a fingerprint: a `Dataset` if records have classes, and what else for
    # other subjects. Who needs classes needs predictions, which subjects without classes do not grant.
    data: Any
    loss: str = "cross-entropy"  # by which models are judged where adversaries look at losses
    noun: ClassVar[str] = "training"  # what it is called in results

    @property
    @abstractmethod
    def grants(self) -> Access: ...

    @abstractmethod
    def describe(self) -> str:
        """What it is, in one line."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """All that decides its scores, as plain data: parts of a plan's dictionary."""

    @abstractmethod
    def run(
        self,
        insertions: Sequence[Insertion],
        seeds: Sequence[np.random.SeedSequence],
        observers: Sequence[Observer],
    ) -> None:
        """Train once for each insertion, a pure function of it and its seed; its observer is shown what happens."""

    @abstractmethod
    def rehearse(
        self, data: Any, seeds: Sequence[np.random.SeedSequence], *, noiseless: bool = False
    ) -> Sequence[Model]:
        """Models that an adversary trains for itself; without noise, if it asks for that and knows how."""

    @property
    def unit(self) -> str:
        """What one row of its data is, all that a game puts in or leaves out: a record, a user, another word."""
        return RECORD

    def offers(self, capability: type[Offered]) -> Offered | None:
        """The capability, if it has it; by itself a subject offers what it inherits."""
        return capability.of(self)

    def require(self, capability: type[Offered], adversary: str) -> Offered:
        """The capability, for an adversary that cannot play without."""
        found = self.offers(capability)
        if found is None:
            expected = f"one that {self.describe()} offers enough to; it needs {capability.words}"
            raise InvalidInput("adversary", adversary, expected)
        return found

    @property
    def promise(self) -> Promise:
        """What it promises of its privacy, as far as it says."""
        return NoPromise()

    mechanism = moved_property("mechanism", "promise.steps", lambda self: self.promise.steps)
    caveat = moved_property("caveat", "promise.caveat", lambda self: self.promise.caveat)

    def __init_subclass__(cls, **settings: Any) -> None:
        """A class of the user's own that still says a mechanism promises what follows from that."""
        super().__init_subclass__(**settings)
        if "mechanism" in vars(cls) and "promise" not in vars(cls):
            words = f"{cls.__name__}.mechanism is now promise, and the old name will go with the next release"
            warnings.warn(words, DeprecationWarning, stacklevel=2)
            cls.promise = property(_from_mechanism)  # type: ignore[method-assign, assignment]

    def load(self) -> None:
        """Import all that it needs; threads are counted only of libraries that are there."""

    def injected(self) -> list[str]:
        """Faults that were put in on purpose, in words."""
        return []

    @property
    def safeguards(self) -> Isolation:
        return Isolation()

    def ignores_its_seed(self, seed: np.random.SeedSequence) -> bool:
        """Whether different seeds end in exactly the same; asked of foreign code."""
        return False

    def code(self) -> list[Any]:
        """Classes and functions of the user's own that it consists of."""
        return []

    def require_relation(self, relation: Relation) -> None:
        """Refuse a relation that games which leave a record out cannot play here."""

    def require_claim(self, claim: Claim) -> None:
        """Refuse a claim that makes no sense for this subject."""


def _from_mechanism(subject: Subject) -> Promise:
    said = type(subject).caveat is not Subject.caveat
    mechanism, caveat = subject.mechanism, subject.caveat if said else ""
    return NoPromise(caveat=caveat) if mechanism is None else StepsPromise(mechanism, caveat=caveat)
