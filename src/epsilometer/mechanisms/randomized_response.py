"""Randomized response (Warner 1965), for any number of answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.claims import CurveClaim
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms.mechanism import Domain, Mechanism, positive_epsilon
from epsilometer.mechanisms.sensitivity import RECORD, Sensitivity, numbers


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """One answer out of 0, …, `answers` − 1: the true one with probability e^ε/(e^ε + answers − 1), else any other.

    Its curve has one corner, δ(0) = (e^ε − 1)/(e^ε + answers − 1): with two answers it is all that (ε, 0) allows.

    >>> round(RandomizedResponse(epsilon=math.log(3)).truth, 6)
    0.75
    """

    epsilon: float
    answers: int = 2
    name: ClassVar[str] = "randomized-response"
    sensitivity: ClassVar[Sensitivity] = RECORD  # type: ignore[misc]

    def __post_init__(self) -> None:
        positive_epsilon(self.epsilon)
        validate.whole("answers", self.answers, least=2)

    @property
    def truth(self) -> float:
        """The probability of the true answer."""
        return 1.0 / (1.0 + (self.answers - 1) * math.exp(-self.epsilon))

    @property
    def claim(self) -> CurveClaim:
        apart = self.truth * -math.expm1(-self.epsilon)
        return CurveClaim((0.0, self.epsilon), (apart, 0.0), self.relation, self.describe(), self.unit)

    @property
    def domain(self) -> Domain:
        return Domain(1, 0, self.answers - 1, whole=True)

    def accept(self, value: Any) -> Floats:
        found = numbers("answer", value)
        if found.size != 1 or float(found.item()) not in range(self.answers):
            raise InvalidInput("answer", value, f"a whole number from 0 to {self.answers - 1}")
        return found.reshape(())

    def describe(self) -> str:
        return f"randomized response (ε = {self.epsilon:g}, {self.answers} answers)"

    def _releases(self, value: Floats, rng: np.random.Generator, size: int) -> NDArray[np.int64]:
        others = rng.integers(1, self.answers, size)
        moved = np.where(rng.random(size) < self.truth, 0, others)
        answers: NDArray[np.int64] = (int(value) + moved) % self.answers
        return answers
