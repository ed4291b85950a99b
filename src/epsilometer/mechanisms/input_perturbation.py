"""Input perturbation: every record gets noise of its own before anything is computed (local differential privacy)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.claims import Claim, Relation
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms.gaussian import Gaussian
from epsilometer.mechanisms.laplace import Laplace
from epsilometer.mechanisms.mechanism import Domain, Mechanism
from epsilometer.mechanisms.sensitivity import RECORD, Sensitivity, numbers


@dataclass(frozen=True)
class InputPerturbation(Mechanism):
    """Numbers clipped to [low, high], each with noise; `query` is what is then computed of a row, if anything.

    One record replaced by another moves by high − low at most, which the noise must be made for. What is computed of
    noisy records costs nothing more: the mean of n of them has √n times the error of a noisy mean.

    >>> noise = Laplace(epsilon=1.0, sensitivity=10.0)
    >>> heights = InputPerturbation(noise, low=150, high=160)
    >>> heights.release([151.0, 220.0], np.random.default_rng(0)).shape
    (2,)
    """

    noise: Laplace | Gaussian
    low: float
    high: float
    query: Callable[[Floats], Any] | None = None
    name: ClassVar[str] = "input-perturbation"
    sensitivity: ClassVar[Sensitivity] = RECORD  # type: ignore[misc]

    def __post_init__(self) -> None:
        validate.real("low", self.low)
        validate.real("high", self.high, above=self.low)
        if self.noise.sensitivity.amount < self.high - self.low:
            expected = f"at least high - low = {self.high - self.low:g}, which replacing a record can change"
            raise InvalidInput("sensitivity of the noise", self.noise.sensitivity.amount, expected)

    @property
    def claim(self) -> Claim:
        """That of the noise; it speaks of a record that is replaced."""
        return replace(self.noise.claim, relation=Relation.REPLACE)

    @property
    def domain(self) -> Domain:
        return Domain(None, self.low, self.high)

    def accept(self, value: ArrayLike) -> Floats:
        return numbers("records", value, vector=True)

    def describe(self) -> str:
        return f"input perturbation of records in [{self.low:g}, {self.high:g}] by a {self.noise.describe()}"

    def _releases(self, value: Floats, rng: np.random.Generator, size: int) -> NDArray[Any]:
        noisy: Floats = self.noise.release(np.clip(value, self.low, self.high), rng, size)
        return noisy if self.query is None else np.array([self.query(row) for row in noisy])
