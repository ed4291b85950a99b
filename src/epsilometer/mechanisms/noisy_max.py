"""Report noisy max: the place of the largest score, after noise (Dwork & Roth 2014, Claim 3.9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsilometer.arrays import Floats
from epsilometer.claims import PointClaim
from epsilometer.errors import unknown_name
from epsilometer.mechanisms.mechanism import Mechanism, positive_epsilon
from epsilometer.mechanisms.sensitivity import UNIT, Sensitivity, numbers

NOISES = ("laplace", "exponential")


@dataclass(frozen=True)
class ReportNoisyMax(Mechanism):
    """Noise of scale 2Δ/ε on every score, and only the place of the largest is released.

    Δ is how much one record can change any score (linf); for `monotonic` scores, which one record moves in the same
    direction, Δ/ε is enough. One-sided exponential noise keeps the same ε (Ding et al. 2021) and errs less. Gumbel
    noise would make it the exponential mechanism.

    >>> rng = np.random.default_rng(0)
    >>> ReportNoisyMax(epsilon=1.0).release([0.0, 50.0, 3.0], rng).item()
    1
    """

    epsilon: float
    sensitivity: Sensitivity = UNIT["linf"]
    noise: str = "laplace"
    monotonic: bool = False
    name: ClassVar[str] = "noisy-max"

    def __post_init__(self) -> None:
        positive_epsilon(self.epsilon)
        object.__setattr__(self, "sensitivity", Sensitivity.of(self.sensitivity, "linf"))
        if self.noise not in NOISES:
            raise unknown_name("noise", self.noise, NOISES)

    @property
    def scale(self) -> float:
        return (1.0 if self.monotonic else 2.0) * self.sensitivity.amount / self.epsilon

    @property
    def claim(self) -> PointClaim:
        return PointClaim(self.epsilon, 0.0, self.relation, self.unit)

    def accept(self, value: ArrayLike) -> Floats:
        return numbers("scores", value, vector=True)

    def describe(self) -> str:
        return f"report noisy max (ε = {self.epsilon:g}, {self.noise} noise of scale {self.scale:.4g})"

    def noisy(self, value: Floats, rng: np.random.Generator, size: int) -> Floats:
        """Scores with noise, a row a release; never released themselves."""
        draw = rng.laplace if self.noise == "laplace" else lambda _, scale, shape: rng.exponential(scale, shape)
        scores: Floats = value + draw(0.0, self.scale, (size, len(value)))
        return scores

    def _releases(self, value: Floats, rng: np.random.Generator, size: int) -> NDArray[np.int64]:
        places: NDArray[np.int64] = np.argmax(self.noisy(value, rng, size), axis=1)
        return places
