"""What every mechanism here is: a random function of a value, what it takes, and what it promises."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.claims import Claim, CurveClaim
from epsilometer.mechanisms.sensitivity import Sensitivity, numbers
from epsilometer.neighbours import Neighbours, Relation

GRID = 20  # outputs are multiples of a power of two about 2^-20 of the noise's scale
POINTS = 200  # of a privacy profile


@dataclass(frozen=True)
class Domain:
    """The values that a mechanism takes: how many entries, between which numbers, whole or not."""

    entries: int | None = None  # any number, if nothing is said
    low: float = -math.inf
    high: float = math.inf
    whole: bool = False


class Mechanism(ABC):
    """A random function of a value. Subclasses are frozen dataclasses; randomness is passed in."""

    name: ClassVar[str]
    sensitivity: Sensitivity

    @property
    @abstractmethod
    def claim(self) -> Claim:
        """What it promises for values that differ by its sensitivity: a point, or its whole curve."""

    @abstractmethod
    def describe(self) -> str:
        """What it is, in one line."""

    @abstractmethod
    def _releases(self, value: Floats, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """So many releases; the first axis counts them."""

    @property
    def domain(self) -> Domain:
        return Domain()

    @property
    def has_sensitivity(self) -> bool:
        """Whether it says what one record can change; a function of the user's own need not."""
        return True

    @property
    def neighbours(self) -> Neighbours:
        """Of which values it makes a promise."""
        return self.sensitivity.neighbours

    @property
    def relation(self) -> Relation:
        return self.neighbours.relation

    @property
    def unit(self) -> str:
        return self.neighbours.unit

    def accept(self, value: Any) -> Floats:
        """The value as numbers, if the mechanism takes it."""
        return numbers("value", value)

    def release(self, value: Any, rng: np.random.Generator, size: int | None = None) -> Any:
        """One release, or `size` independent ones along a first axis."""
        count = 1 if size is None else validate.whole("size", size, least=1)
        found = self._releases(self.accept(value), rng, count)
        return found[0] if size is None else found


def on_grid(values: Floats, scale: float) -> Floats:
    """Rounded to a power of two far below the noise: the last bits of a sum tell what was added (Mironov 2012).

    >>> on_grid(np.array([0.1]), 1.0).item() == round(0.1 * 2**20) / 2**20
    True
    """
    step = 2.0 ** (math.floor(math.log2(scale)) - GRID)
    rounded: Floats = np.rint(values / step) * step
    return rounded


def positive_epsilon(value: float) -> float:
    """ε of a mechanism: with 0 nothing of use could be released, with infinity nothing is promised."""
    return validate.real("epsilon", value, above=0, remedy="a mechanism needs a finite ε > 0")


def profile(epsilon: float, delta_at: Any, neighbours: Neighbours, name: str) -> CurveClaim:
    """The curve of a mechanism with δ(ε') = `delta_at(ε')` for ε' from 0 to ε, and 0 at ε."""
    grid = np.linspace(0.0, epsilon, POINTS)
    deltas = np.clip(delta_at(grid), 0.0, 1.0)
    deltas[-1] = 0.0
    return CurveClaim(tuple(grid.tolist()), tuple(deltas.tolist()), neighbours.relation, name, neighbours.unit)
