"""What every private ERM is: a problem, a promise, and releases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.claims import Claim, PointClaim, Relation
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms.erm.draws import Draws, GeneratorDraws
from epsilometer.mechanisms.erm.flaws import SOUND, Flaws
from epsilometer.mechanisms.erm.problem import Problem

if TYPE_CHECKING:
    from epsilometer.mechanisms.erm.worst_case import Neighbours


@dataclass(frozen=True)
class KnownLeak:
    """The exact ε of two neighbours, how far apart their models are, and how far they may be."""

    epsilon: float
    separation: float
    sensitivity: float


@dataclass(frozen=True)
class PrivateErm(ABC):
    """(ε, δ)-DP where one record has another value. How many records there are is public, and so is `problem`."""

    problem: Problem
    epsilon: float
    delta: float
    name: ClassVar[str]
    relation: ClassVar[Relation] = Relation.REPLACE

    def __post_init__(self) -> None:
        validate.instance("problem", self.problem, Problem, "a Problem(loss, regularisation)")
        validate.real("epsilon", self.epsilon, above=0)
        validate.delta(self.delta)

    @property
    def claim(self) -> PointClaim:
        """What is promised."""
        return PointClaim(self.epsilon, self.delta, self.relation)

    def curve(self, records: int) -> Claim:
        """All that is promised for so many records."""
        return self.claim

    def noise_multiplier(self, records: int) -> float | None:
        """Normal noise on what one record moves, in halves of the sensitivity: replacing a record moves a sum of
        gradients by twice the clip norm, so half of the sensitivity stands for that. None for another noise."""
        return None

    def known_leak(self, pair: Neighbours, flaws: Flaws = SOUND) -> KnownLeak | None:
        """What these neighbours leak, if that is known exactly."""
        return None

    @abstractmethod
    def releases(self, x: ArrayLike, y: ArrayLike, draws: Draws, flaws: Flaws = SOUND) -> Floats:
        """Independent private models, one a row; with an intercept, the last number is the constant feature's."""

    @abstractmethod
    def describe(self, records: int) -> str:
        """The mechanism in one line."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """All that decides a release besides the problem, as plain data."""

    def release(self, x: ArrayLike, y: ArrayLike, rng: np.random.Generator) -> Floats:
        """One private model."""
        model: Floats = self.releases(x, y, GeneratorDraws(rng))[0]
        return model

    def _penalty(self, features: int, regularisation: float, flaws: Flaws) -> Floats:
        penalty = np.full(features, regularisation)
        if flaws.free_intercept and self.problem.intercept:
            penalty[-1] = 0.0
        return penalty


def require_convexity(problem: Problem, remedy: str) -> None:
    """A sensitivity needs λ > 0."""
    validate.real("regularisation", problem.regularisation, above=0, remedy=remedy)


def require_lipschitz(problem: Problem, radius: float, remedy: str) -> float:
    """A sensitivity needs a loss that is nowhere too steep."""
    limit = problem.lipschitz(radius)
    if not limit < 1e200:
        raise InvalidInput("loss", problem.loss.name, "a loss of bounded slope here", remedy)
    return limit
