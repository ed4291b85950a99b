"""A mechanism as a subject: a trial is a block of many independent releases of one value: millions are quick."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from epsilometer import validate
from epsilometer.accounting import ClaimPromise, DpSgd, NoPromise, Promise, StepsPromise
from epsilometer.arrays import Floats
from epsilometer.claims import Claim
from epsilometer.errors import EpsilometerError, InvalidInput, one_line
from epsilometer.isolation import Isolation
from epsilometer.mechanisms import Gaussian, Mechanism
from epsilometer.mechanisms.callables import as_rows
from epsilometer.neighbours import Neighbours, Relation, require_same_neighbours, sensitivity
from epsilometer.subjects.access import Access, Controls, Sees
from epsilometer.subjects.callables import TrainingFailed
from epsilometer.subjects.capabilities import DrawsReleases
from epsilometer.subjects.entry import Entry, can_start_processes, entry_of
from epsilometer.subjects.released import explained
from epsilometer.subjects.subject import Insertion, Observer, Subject
from epsilometer.subjects.user_code import code_of


@dataclass(frozen=True)
class ByName:
    """A function of the user's that is loaded by name where it is called."""

    entry: Entry
    travels: ClassVar[bool] = True

    @property
    def __wrapped__(self) -> Any:  # whoever asks for the signature is told that of the function
        return self.entry.load("mechanism")

    @property
    def shown(self) -> str:
        return self.entry.name

    def __call__(self, *arguments: Any) -> Any:
        return self.__wrapped__(*arguments)


@dataclass(frozen=True)
class Values:
    """What a mechanism is given in the two worlds: a pair of neighbours, or else how many entries values have that an
    adversary tries."""

    pair: tuple[Any, Any] | None = None
    entries: int = 1
    name: str = field(default="values", init=False)

    def __post_init__(self) -> None:
        validate.whole("entries", self.entries, least=1, most=10_000)

    def __len__(self) -> int:
        return self.entries if self.pair is None else int(np.size(self.pair[0]))

    def fingerprint(self) -> str:
        return hashlib.sha256(json.dumps([self.pair, self.entries], default=str).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Releases(Subject, DrawsReleases):
    """`block` releases a trial of a mechanism; each has its own randomness, so that they are independent.

    `fault` says what is wrong with it on purpose; nobody who plays is told.
    """

    released: Mechanism
    data: Values = field(default_factory=Values)
    block: int = 1000
    deterministic: bool = True  # given its seed; not so if it draws from the operating system
    fault: str = ""
    noun: ClassVar[str] = "mechanism"

    def __post_init__(self) -> None:
        validate.whole("block", self.block, least=1, most=10**6)
        entry = entry_of(self._function) if hasattr(self._function, "__qualname__") else None
        if entry is not None:
            object.__setattr__(self, "released", replace(self.released, function=ByName(entry)))  # type: ignore[type-var]
        if self.data.pair is not None:
            self._require_neighbours(*self.data.pair)

    def _require_neighbours(self, one: Any, other: Any) -> None:
        mechanism = self.released
        if not mechanism.has_sensitivity:
            require_data_sets(one, other, mechanism.neighbours)
            return
        values = (mechanism.accept(value) for value in (one, other))
        mechanism.sensitivity.require_neighbours(*values)

    @property
    def _function(self) -> Any:
        """The user's own, if it is one."""
        return getattr(self.released, "function", None)

    @property
    def unit(self) -> str:
        return self.released.unit

    @property
    def safeguards(self) -> Isolation:
        if self._function is None:
            return Isolation()
        travels = getattr(self._function, "travels", False) and can_start_processes()
        return Isolation(foreign=True, travels=travels, repeats=self.deterministic)

    @property
    def grants(self) -> Access:
        return Access(Sees.RELEASE, [Controls.RECORDS, Controls.DATA])

    @property
    def promise(self) -> Promise:
        """Gaussian noise is DP-SGD's only step with all records."""
        if type(self.released) is Gaussian:
            noise = self.released.noise_std / self.released.sensitivity.amount * sensitivity(self.released.relation)
            return StepsPromise(DpSgd(sample_rate=1.0, noise_multiplier=noise, steps=1))
        return NoPromise() if self.fault or self._function is not None else ClaimPromise(self.released.claim)

    def require_claim(self, claim: Claim) -> None:
        require_same_neighbours("the claim", claim.neighbours, "the mechanism", self.released.neighbours)

    def injected(self) -> list[str]:
        return [self.fault] if self.fault else []

    def describe(self) -> str:
        return f"{self.released.describe()}, {self.block} releases a trial"

    def identity(self) -> dict[str, Any]:
        released = self.released
        subject: dict[str, Any] = {"kind": "releases", "mechanism": released.name, "block": self.block}
        if self._function is None:
            subject["settings"] = repr(released)
            if not type(released).__module__.startswith("epsilometer."):  # of another package, or the user's own
                subject["code"] = code_of(type(released))
        else:
            subject |= {"function": released.describe(), "deterministic": self.deterministic}
            subject |= {"sensitivity": repr(released.sensitivity), "code": code_of(self._function)}
        data = {"name": self.data.name, "records": len(self.data), "sha256": self.data.fingerprint()}
        return {"subject": subject, "data": data}

    def load(self) -> None:
        self.code()

    def code(self) -> list[Any]:
        return [] if self._function is None else [getattr(self._function, "__wrapped__", self._function)]

    def releases(self, value: Any, seed: np.random.SeedSequence, count: int) -> Floats:
        """So many, a row each."""
        rng = np.random.default_rng(seed)
        if self._function is None:
            return as_rows(self.released.release(value, rng, count), count)
        try:
            return as_rows(self.released.release(value, rng, count), count)
        except EpsilometerError:
            raise
        except (Exception, SystemExit) as error:
            given = one_line(repr(value), limit=60)
            raise TrainingFailed(f"{explained(error, self.released.describe())} (it was given {given})") from None

    def run(
        self,
        insertions: Sequence[Insertion],
        seeds: Sequence[np.random.SeedSequence],
        observers: Sequence[Observer],
    ) -> None:
        for insertion, seed, observer in zip(insertions, seeds, observers, strict=True):
            observer.finish(self.releases(insertion.data, seed, self.block))

    def rehearse(self, data: Any, seeds: Sequence[np.random.SeedSequence], *, noiseless: bool = False) -> list[Any]:
        return [self.releases(data, seed, self.block) for seed in seeds]

    def ignores_its_seed(self, seed: np.random.SeedSequence) -> bool:
        """Whether two blocks with different seeds are exactly the same, and not because all releases are."""
        value = self.data.pair[0] if self.data.pair is not None else as_written(np.zeros(self.data.entries))
        first, second = (self.releases(value, one, min(self.block, 100)) for one in seed.spawn(2))
        alike = first.shape == second.shape and np.array_equal(first, second, equal_nan=True)
        return bool(alike) and len(np.unique(first, axis=0)) > 1


def as_written(value: Floats) -> Any:
    """As people write values: a number, or a list of them.

    >>> as_written(np.zeros(1)), as_written(np.ones(2))
    (0.0, [1.0, 1.0])
    """
    return value.tolist() if len(value) > 1 else float(value[0])


def require_data_sets(one: Any, other: Any, neighbours: Neighbours) -> None:
    """Refuse data sets (lists of records, or of other units) that differ in more than one of them."""
    relation, units = neighbours.relation, neighbours.units
    if not (isinstance(one, list) and isinstance(other, list)):
        remedy = f"state a sensitivity for values that are not lists of {units}"
        raise InvalidInput("neighbours", [one, other], f"two lists of {units}", remedy)
    counts = [Counter(json.dumps(record, sort_keys=True) for record in data) for data in (one, other)]
    gone, come = (sum((counts[i] - counts[1 - i]).values()) for i in (0, 1))
    allowed = {(0, 1), (1, 0)} if relation is Relation.ADD_REMOVE else {(1, 1)}
    if (gone, come) not in allowed:
        expected = "one to be added or removed" if relation is Relation.ADD_REMOVE else "one to be replaced"
        raise InvalidInput("neighbours", f"{gone} {units} gone and {come} new", f"{expected} ({neighbours})")
