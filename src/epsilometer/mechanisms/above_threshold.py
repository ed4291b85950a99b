"""Above threshold, the sparse vector technique (Dwork & Roth 2014; Lyu, Su & Li 2017, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.claims import PointClaim
from epsilometer.mechanisms.mechanism import Mechanism, positive_epsilon
from epsilometer.mechanisms.sensitivity import UNIT, Sensitivity, numbers

NOT_ASKED, BELOW, ABOVE = -1, 0, 1


@dataclass(frozen=True)
class AboveThreshold(Mechanism):
    """Which of a sequence of numbers are above a threshold, until `count` of them were.

    The threshold gets noise of scale 2Δ/ε once, every number noise of scale 4·count·Δ/ε, and nothing but BELOW (0) or
    ABOVE (1) is said of each; NOT_ASKED (−1) after the last. However many are below, they cost nothing: only because
    the threshold's noise is drawn once, each number has its own, and the numbers themselves are never said.

    >>> rng = np.random.default_rng(0)
    >>> AboveThreshold(epsilon=1.0, threshold=50.0).release([0.0, 0.0, 100.0, 0.0], rng).tolist()
    [0, 0, 1, -1]
    """

    epsilon: float
    sensitivity: Sensitivity = UNIT["linf"]
    threshold: float = 0.0
    count: int = 1
    name: ClassVar[str] = "above-threshold"

    def __post_init__(self) -> None:
        positive_epsilon(self.epsilon)
        object.__setattr__(self, "sensitivity", Sensitivity.of(self.sensitivity, "linf"))
        validate.real("threshold", self.threshold)
        validate.whole("count", self.count, least=1)

    @property
    def threshold_scale(self) -> float:
        return 2.0 * self.sensitivity.amount / self.epsilon

    @property
    def answer_scale(self) -> float:
        return 4.0 * self.count * self.sensitivity.amount / self.epsilon

    @property
    def claim(self) -> PointClaim:
        return PointClaim(self.epsilon, 0.0, self.relation, self.unit)

    def accept(self, value: ArrayLike) -> Floats:
        return numbers("answers", value, vector=True)

    def describe(self) -> str:
        return (
            f"above threshold (ε = {self.epsilon:g}, until {self.count} above, noise of scale {self.answer_scale:.4g})"
        )

    def compared(self, value: Floats, rng: np.random.Generator, size: int) -> tuple[NDArray[np.bool_], Floats]:
        """Which noisy numbers are above the noisy threshold, and the noisy numbers, a row a release."""
        thresholds = self.threshold + _laplace(rng, self.threshold_scale, (size, 1))
        noisy = value + _laplace(rng, self.answer_scale, (size, len(value)))
        return noisy >= thresholds, noisy

    def asked(self, above: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which numbers are looked at before enough were above."""
        so_far: NDArray[np.int64] = np.cumsum(above, axis=1)
        return np.less(so_far - above, self.count)

    def _releases(self, value: Floats, rng: np.random.Generator, size: int) -> NDArray[np.int64]:
        above, _ = self.compared(value, rng, size)
        return np.where(self.asked(above), np.where(above, ABOVE, BELOW), NOT_ASKED)


def _laplace(rng: np.random.Generator, scale: float, shape: tuple[int, ...]) -> Floats:
    return rng.laplace(0.0, scale, shape) if scale > 0 else np.zeros(shape)
