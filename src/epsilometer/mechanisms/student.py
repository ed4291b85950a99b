"""Student-t noise (Nasr, Shokri & Houmansadr 2020 add it to encoded gradients)."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import special

from epsilometer import validate
from epsilometer.accounting import StudentDpSgd
from epsilometer.arrays import Floats
from epsilometer.claims import CurveClaim
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms.mechanism import Mechanism, on_grid, positive_epsilon, profile
from epsilometer.mechanisms.sensitivity import UNIT, Sensitivity, numbers


@dataclass(frozen=True)
class Student(Mechanism):
    """A vector of `entries` numbers with spherical Student-t noise: normal noise, all of it divided by one √(χ²_ν/ν).

    The sensitivity Δ is that in l2. The loss is bounded, by (ν + d)·arsinh(Δ/(2s√ν)) with s the scale and d the
    entries, so there is an ε at δ = 0; it grows with d. The whole curve is exact for one number. For more, it is the
    least of that ε and of Gaussian noise whose scale is told (see accounting/student.py): the larger d, the less this
    adds to the truth.

    >>> round(Student(2.0).pure_epsilon, 3), round(Student(2.0, entries=100).pure_epsilon, 2)
    (0.669, 11.72)
    """

    scale: float
    freedom: float = 5.0
    entries: int = 1
    sensitivity: Sensitivity = UNIT["l2"]
    name: ClassVar[str] = "student"

    def __post_init__(self) -> None:
        validate.real("scale", self.scale, above=0)
        validate.whole("entries", self.entries, least=1)
        object.__setattr__(self, "sensitivity", Sensitivity.of(self.sensitivity, "l2"))
        self._step  # noqa: B018  checks the rest

    @classmethod
    def pure(cls, epsilon: float, sensitivity: Sensitivity | float = UNIT["l2"], freedom: float = 5.0) -> Student:
        """One number, with the least scale that keeps ε at δ = 0."""
        stated = Sensitivity.of(sensitivity, "l2")
        steepness = math.sinh(positive_epsilon(epsilon) / (freedom + 1.0))
        return cls(stated.amount / (2.0 * math.sqrt(freedom) * steepness), freedom, 1, stated)

    @property
    def _step(self) -> StudentDpSgd:
        return StudentDpSgd(1.0, self.scale / self.sensitivity.amount, 1, self.freedom)

    @property
    def pure_epsilon(self) -> float:
        """ε at δ = 0."""
        return self._step.pure_epsilon(self.entries)

    @property
    def claim(self) -> CurveClaim:
        pure = self.pure_epsilon
        if self.entries == 1:
            return profile(pure, self._exact, self.neighbours, self.describe())
        mixed = self._step.claim()
        points = [point for point in zip(mixed.epsilons, mixed.deltas, strict=True) if point[0] < pure]
        epsilons, deltas = zip(*points, (pure, 0.0), strict=True)
        return CurveClaim(epsilons, deltas, self.relation, self.describe(), self.unit)

    def _exact(self, epsilons: Floats) -> Floats:
        """δ(ε) = P(A) − e^ε Q(A) of one number, A being where P's density is over e^ε times Q's: an interval.

        The densities' ratio is ((ν + z²)/(ν + (z − Δ)²))^{(ν+1)/2} in units of the scale, so A's ends are the roots
        of a quadratic. A smaller change than Δ gives less: Student's law is self-decomposable (Halgreen 1979), so a
        shorter shift is a longer one shrunk with independent noise added.
        """
        nu, shift = self.freedom, self.sensitivity.amount / self.scale
        cdf = functools.partial(special.stdtr, nu)
        factor = np.exp(2.0 * np.asarray(epsilons) / (nu + 1.0))
        found = np.zeros(len(factor))
        for i, (k, epsilon) in enumerate(zip(factor, epsilons, strict=True)):
            if k == 1.0:  # the half-line beyond the middle
                found[i] = cdf(shift / 2.0) - cdf(-shift / 2.0)
                continue
            # (ν + z²) > k(ν + (z − Δ)²)
            inner = (k * shift) ** 2 - (k - 1.0) * (k * shift**2 + (k - 1.0) * nu)
            if inner <= 0:
                continue
            low, high = ((k * shift + sign * math.sqrt(inner)) / (k - 1.0) for sign in (-1.0, 1.0))
            with_shift, without = cdf(high - shift) - cdf(low - shift), cdf(high) - cdf(low)
            found[i] = with_shift - math.exp(epsilon) * without
        return np.maximum(found, 0.0)

    def describe(self) -> str:
        size = "" if self.entries == 1 else f" and {self.entries} entries"
        scale = f"scale {self.scale:.4g} for Δ = {self.sensitivity.amount:g}{size}"
        return f"Student-t mechanism (ν = {self.freedom:g}, {scale})"

    def accept(self, value: Any) -> Floats:
        found = numbers("value", value)
        if found.size != self.entries:
            raise InvalidInput("value", f"{found.size} numbers", f"{self.entries}: the promise depends on it")
        return found

    def _releases(self, value: Floats, rng: np.random.Generator, size: int) -> Floats:
        shared = (size, *[1] * value.ndim)  # one for all entries: each by its own would be another law
        spread = self.scale * np.sqrt(self.freedom / rng.chisquare(self.freedom, shared))
        return on_grid(value + spread * rng.standard_normal((size, *value.shape)), self.scale)
