"""What a training promises, in one object: ε at any δ, its whole curve, the same with another noise, and in words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from epsilometer.accounting.accountants import ACCOUNTANTS, account, compare
from epsilometer.accounting.events import Composition
from epsilometer.accounting.heterogeneous import pld_curve
from epsilometer.accounting.mechanism import DpSgd, UpperBound
from epsilometer.accounting.pld import curve
from epsilometer.claims import Claim
from epsilometer.errors import InvalidInput
from epsilometer.neighbours import AnyNeighbours, Neighbours, Relation, require_same_neighbours

ITS_OWN = "its own proof"  # in place of an accountant's name


@dataclass(frozen=True)
class Promise(ABC):
    """What a subject promises of every pair of neighbours; `caveat` says why that may not hold for it, if so."""

    caveat: str = field(default="", kw_only=True)

    @abstractmethod
    def upper_bound(
        self, delta: float, neighbours: AnyNeighbours = Relation.ADD_REMOVE, accountant: str = "pld"
    ) -> UpperBound | None:
        """What theory says at δ, with the caveat; none if it says nothing."""

    @abstractmethod
    def curve(self, neighbours: AnyNeighbours = Relation.ADD_REMOVE) -> Claim | None:
        """All of it as a claim; none where nothing is promised of such neighbours."""

    @abstractmethod
    def describe(self) -> str:
        """In words."""

    def epsilon_at(
        self, delta: float, neighbours: AnyNeighbours = Relation.ADD_REMOVE, accountant: str = "pld"
    ) -> float | None:
        """ε at δ; none where nothing is promised."""
        bound = self.upper_bound(delta, neighbours, accountant)
        return None if bound is None else bound.epsilon

    @property
    def steps(self) -> DpSgd | None:
        """The training as Gaussian steps of Poisson samples, if it is promised to be that."""
        return None

    @property
    def noise_multiplier(self) -> float | None:
        """The noise that is promised, in clip norms, if one number says it."""
        return None if self.steps is None else self.steps.noise_multiplier

    def with_noise(self, noise_multiplier: float) -> Promise | None:
        """The same training with another noise, where that makes sense."""
        return None

    def curve_with_noise(self, neighbours: AnyNeighbours, noise_multiplier: float) -> Claim:
        """Its curve, of a promise that has one: for whoever tries many."""
        other = self.with_noise(noise_multiplier)
        found = None if other is None else other.curve(neighbours)
        if found is None:
            raise InvalidInput("promise", self.describe(), "noisy steps, which have a curve for any noise")
        return found

    def by_accountants(self, delta: float, neighbours: AnyNeighbours = Relation.ADD_REMOVE) -> tuple[UpperBound, ...]:
        """What each of our own accountants says, of those that can say something."""
        return ()

    def require(self, delta: float, neighbours: AnyNeighbours, accountant: str) -> None:
        """Refuse, before anything is trained, what would be refused once the promise is asked for."""


@dataclass(frozen=True)
class NoPromise(Promise):
    """Nothing is promised, or nobody knows what."""

    words: str = "nothing"

    def upper_bound(
        self, delta: float, neighbours: AnyNeighbours = Relation.ADD_REMOVE, accountant: str = "pld"
    ) -> UpperBound | None:
        return None

    def curve(self, neighbours: AnyNeighbours = Relation.ADD_REMOVE) -> Claim | None:
        return None

    def describe(self) -> str:
        return self.words


@dataclass(frozen=True)
class StepsPromise(Promise):
    """DP-SGD: noisy steps, which accountants add up.

    >>> promise = StepsPromise(DpSgd(sample_rate=0.01, noise_multiplier=4.0, steps=10_000))
    >>> round(promise.epsilon_at(1e-5), 3), round(promise.with_noise(8.0).epsilon_at(1e-5), 3)
    (0.947, 0.437)
    """

    mechanism: DpSgd

    def upper_bound(
        self, delta: float, neighbours: AnyNeighbours = Relation.ADD_REMOVE, accountant: str = "pld"
    ) -> UpperBound:
        return _noted(account(self.mechanism, delta, neighbours, accountant), self.caveat)

    def curve(self, neighbours: AnyNeighbours = Relation.ADD_REMOVE) -> Claim:
        return curve(self.mechanism, neighbours)

    @property
    def steps(self) -> DpSgd:
        return self.mechanism

    def with_noise(self, noise_multiplier: float) -> StepsPromise:
        return replace(self, mechanism=replace(self.mechanism, noise_multiplier=noise_multiplier))

    def by_accountants(self, delta: float, neighbours: AnyNeighbours = Relation.ADD_REMOVE) -> tuple[UpperBound, ...]:
        return compare(self.mechanism, delta, neighbours)

    def describe(self) -> str:
        return self.mechanism.describe()


@dataclass(frozen=True)
class PartsPromise(Promise):
    """Whatever dp-accounting composes: unlike parts, one after another.

    >>> from dp_accounting import ComposedDpEvent, GaussianDpEvent, LaplaceDpEvent
    >>> promise = PartsPromise.of(ComposedDpEvent([GaussianDpEvent(8.0), LaplaceDpEvent(4.0)]))
    >>> promise.describe(), round(promise.epsilon_at(1e-5), 2)
    ('GaussianDpEvent(8.0), LaplaceDpEvent(4.0)', 0.66)
    >>> round(promise.curve().epsilon_at(1e-5), 2)
    0.66
    """

    parts: Composition

    @classmethod
    def of(cls, event: Any, count: int = 1, *, caveat: str = "") -> PartsPromise:
        """An event of dp-accounting, so many times."""
        return cls(Composition.of(event, count), caveat=caveat)

    def upper_bound(
        self, delta: float, neighbours: AnyNeighbours = Relation.ADD_REMOVE, accountant: str = "pld"
    ) -> UpperBound:
        return _noted(account(self.parts, delta, neighbours, accountant), self.caveat)

    def curve(self, neighbours: AnyNeighbours = Relation.ADD_REMOVE) -> Claim:
        alike = self.parts.dp_sgd
        return pld_curve(self.parts, neighbours) if alike is None else curve(alike, neighbours)

    def by_accountants(self, delta: float, neighbours: AnyNeighbours = Relation.ADD_REMOVE) -> tuple[UpperBound, ...]:
        return tuple(self._accounted(delta, neighbours))

    def _accounted(self, delta: float, neighbours: AnyNeighbours) -> Iterator[UpperBound]:
        for name in ACCOUNTANTS.own:
            with suppress(InvalidInput):  # not every accountant takes every part
                yield account(self.parts, delta, neighbours, name)

    def require(self, delta: float, neighbours: AnyNeighbours, accountant: str) -> None:
        self.upper_bound(delta, neighbours, accountant)

    def describe(self) -> str:
        return self.parts.describe()


@dataclass(frozen=True)
class ClaimPromise(Promise):
    """A point or a curve for which there is a proof of another kind, of the neighbours that it names."""

    claim: Claim

    def upper_bound(
        self, delta: float, neighbours: AnyNeighbours = Relation.ADD_REMOVE, accountant: str = "pld"
    ) -> UpperBound:
        claim, asked = self.claim, Neighbours(Neighbours.of(neighbours).unit, self.claim.relation)
        require_same_neighbours("the claim", asked, "what it promises", claim.neighbours)
        epsilon = claim.epsilon_at(delta)
        return _noted(UpperBound(epsilon, delta, claim.relation, ITS_OWN, claim, unit=claim.unit), self.caveat)

    def epsilon_at(
        self, delta: float, neighbours: AnyNeighbours = Relation.ADD_REMOVE, accountant: str = "pld"
    ) -> float | None:
        """None of other neighbours than those that the claim names: a bare number could not say so."""
        claim = self.curve(neighbours)
        return None if claim is None else claim.epsilon_at(delta)

    def curve(self, neighbours: AnyNeighbours = Relation.ADD_REMOVE) -> Claim | None:
        return self.claim if self.claim.neighbours == Neighbours.of(neighbours) else None

    def describe(self) -> str:
        return self.claim.describe()


def _noted(bound: UpperBound, caveat: str) -> UpperBound:
    return replace(bound, caveat=caveat) if caveat else bound
