"""Mechanisms with one fault each, which claim what the right ones keep: examples of what an audit must find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsilometer.arrays import Floats
from epsilometer.claims import PointClaim
from epsilometer.mechanisms.exponential import Exponential
from epsilometer.mechanisms.laplace import Laplace
from epsilometer.mechanisms.mechanism import Domain, Mechanism, on_grid, positive_epsilon
from epsilometer.mechanisms.noisy_max import ReportNoisyMax
from epsilometer.mechanisms.pca import DpPca
from epsilometer.mechanisms.sensitivity import RECORD, Sensitivity, numbers


@dataclass(frozen=True)
class HalfLaplace(Laplace):
    """Half of the noise."""

    name: ClassVar[str] = "laplace-half"

    @property
    def scale(self) -> float:
        return super().scale / 2.0


@dataclass(frozen=True)
class FloatingLaplace(Laplace):
    """Inversion of one uniform number, and a sum that is not rounded: which doubles can come out depends on the value,
    and their last bits tell it (Mironov 2012)."""

    name: ClassVar[str] = "laplace-float"

    def _releases(self, value: Floats, rng: np.random.Generator, size: int) -> Floats:
        u = rng.random((size, *value.shape)) - 0.5
        noisy: Floats = value - self.scale * np.sign(u) * np.log1p(-2.0 * np.abs(u))
        return noisy


@dataclass(frozen=True)
class HalfPca(DpPca):
    """Half of the noise."""

    name: ClassVar[str] = "gaussian-pca-half"

    @property
    def noise_std(self) -> float:
        return super().noise_std / 2.0


@dataclass(frozen=True)
class NoisyMaxValue(ReportNoisyMax):
    """The largest noisy score is said, and not only its place."""

    name: ClassVar[str] = "noisy-max-value"

    def _releases(self, value: Floats, rng: np.random.Generator, size: int) -> NDArray[Any]:
        return on_grid(np.max(self.noisy(value, rng, size), axis=1), self.scale)


@dataclass(frozen=True)
class NoisyMaxScale(ReportNoisyMax):
    """Noise for monotonic scores, on scores that are not."""

    name: ClassVar[str] = "noisy-max-scale"

    @property
    def scale(self) -> float:
        return super().scale / 2.0


@dataclass(frozen=True)
class PricesFromBids(Mechanism):
    """The exponential mechanism over prices that are the bids themselves: a price that nobody bids is never drawn.

    The value is a bid for each buyer, from 0 to `highest`; what one item brings is the score (`one_item_profit`).
    """

    epsilon: float
    highest: float = 10.0
    name: ClassVar[str] = "exponential-data-outputs"
    sensitivity: ClassVar[Sensitivity] = RECORD  # type: ignore[misc]

    def __post_init__(self) -> None:
        positive_epsilon(self.epsilon)

    @property
    def claim(self) -> PointClaim:
        return PointClaim(self.epsilon, 0.0, self.relation, self.unit)

    @property
    def domain(self) -> Domain:
        return Domain(None, 0.0, self.highest)

    def accept(self, value: ArrayLike) -> Floats:
        return np.clip(numbers("bids", value, vector=True), 0.0, self.highest)

    def describe(self) -> str:
        return f"exponential mechanism over the bids themselves (ε = {self.epsilon:g})"

    def _releases(self, value: Floats, rng: np.random.Generator, size: int) -> Floats:
        chosen = Exponential(self.epsilon, Sensitivity(self.highest, "linf")).release(value, rng, size)  # bid = profit
        prices: Floats = value[chosen]
        return prices
