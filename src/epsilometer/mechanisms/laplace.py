"""The Laplace mechanism (Dwork, McSherry, Nissim & Smith 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims import CurveClaim
from epsilometer.mechanisms.mechanism import Mechanism, on_grid, positive_epsilon, profile
from epsilometer.mechanisms.sensitivity import UNIT, Sensitivity


@dataclass(frozen=True)
class Laplace(Mechanism):
    """A number or vector with Laplace noise of scale Δ/ε on every entry, Δ being the l1 sensitivity.

    It promises the whole curve δ(ε') = 1 − e^{(ε' − ε)/2}, exact for one number; in more dimensions too, because a
    change of length Δ is a way of smaller changes whose curves add up to that of the whole.

    >>> Laplace(epsilon=0.5, sensitivity=1.0).scale
    2.0
    >>> round(Laplace(epsilon=1.0).claim.max_tpr(0.5).item(), 3)  # e^-ε/2 is missed
    0.816
    """

    epsilon: float
    sensitivity: Sensitivity = UNIT["l1"]
    name: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        positive_epsilon(self.epsilon)
        object.__setattr__(self, "sensitivity", Sensitivity.of(self.sensitivity, "l1"))

    @property
    def scale(self) -> float:
        return self.sensitivity.amount / self.epsilon

    @property
    def claim(self) -> CurveClaim:
        return laplace_curve(self.epsilon, self.sensitivity, self.describe())

    def describe(self) -> str:
        return f"Laplace mechanism (ε = {self.epsilon:g}, scale {self.scale:.4g})"

    def _releases(self, value: Floats, rng: np.random.Generator, size: int) -> Floats:
        return on_grid(value + rng.laplace(0.0, self.scale, (size, *value.shape)), self.scale)


def laplace_curve(epsilon: float, sensitivity: Sensitivity, name: str) -> CurveClaim:
    """What Laplace noise of scale Δ/ε promises."""
    return profile(epsilon, lambda e: -np.expm1((e - epsilon) / 2.0), sensitivity.neighbours, name)
