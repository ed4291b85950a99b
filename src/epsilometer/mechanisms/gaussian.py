"""The Gaussian mechanism: classic calibration (Dwork & Roth 2014, Theorem A.1) and analytic (Balle & Wang 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.claims import GaussianClaim
from epsilometer.mechanisms.mechanism import Mechanism, on_grid
from epsilometer.mechanisms.sensitivity import UNIT, Sensitivity

_REMEDY = "Gaussian noise has no ε at δ = 0; a common choice is 1e-5"


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """A number or vector with normal noise on every entry; the sensitivity is that in l2.

    It promises a whole Gaussian curve with μ = Δ/σ, exactly. Calibrated to a point (ε, δ):

    >>> round(Gaussian.classic(1.0, 1e-5).noise_std, 3), round(Gaussian.analytic(1.0, 1e-5).noise_std, 3)
    (4.845, 3.731)
    """

    noise_std: float
    sensitivity: Sensitivity = UNIT["l2"]
    name: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        validate.real("noise_std", self.noise_std, above=0)
        object.__setattr__(self, "sensitivity", Sensitivity.of(self.sensitivity, "l2"))

    @classmethod
    def classic(cls, epsilon: float, delta: float, sensitivity: Sensitivity | float = UNIT["l2"]) -> Gaussian:
        """σ = √(2 ln(1.25/δ))·Δ/ε, proved for ε ≤ 1."""
        remedy = "the classic calibration is proved for ε ≤ 1 only; Gaussian.analytic takes any"
        validate.real("epsilon", epsilon, above=0, below=1, closed="]", remedy=remedy)
        validate.real("delta", delta, above=0, below=1, remedy=_REMEDY)
        stated = Sensitivity.of(sensitivity, "l2")
        return cls(math.sqrt(2.0 * math.log(1.25 / delta)) * stated.amount / epsilon, stated)

    @classmethod
    def analytic(cls, epsilon: float, delta: float, sensitivity: Sensitivity | float = UNIT["l2"]) -> Gaussian:
        """The least noise that keeps (ε, δ), for all ε."""
        validate.real("epsilon", epsilon, above=0, remedy="a mechanism needs a finite ε > 0")
        validate.real("delta", delta, above=0, below=1, remedy=_REMEDY)
        stated = Sensitivity.of(sensitivity, "l2")
        return cls(stated.amount / GaussianClaim.through(epsilon, delta).mu, stated)

    @property
    def claim(self) -> GaussianClaim:
        return GaussianClaim(self.sensitivity.amount / self.noise_std, self.relation, self.unit)

    def describe(self) -> str:
        return f"Gaussian mechanism (σ = {self.noise_std:.4g} for Δ = {self.sensitivity.amount:g})"

    def _releases(self, value: Floats, rng: np.random.Generator, size: int) -> Floats:
        return on_grid(value + rng.normal(0.0, self.noise_std, (size, *value.shape)), self.noise_std)
