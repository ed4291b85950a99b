"""Five sparse vector techniques that are not private, four of them as published (Lyu, Su & Li 2017 list them)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Floats
from epsilometer.mechanisms.above_threshold import AboveThreshold
from epsilometer.mechanisms.mechanism import on_grid

SAID_BELOW, SAID_NOTHING = -np.inf, np.nan


@dataclass(frozen=True)
class SaysAnswers(AboveThreshold):
    """Says the noisy number where it is above: so the threshold's noise is known to be smaller (their Algorithm 3).

    −inf stands for below, NaN for what is not asked any more.
    """

    name: ClassVar[str] = "sparse-vector-3"

    @property
    def answer_scale(self) -> float:
        return super().answer_scale / 2.0

    def _releases(self, value: Floats, rng: np.random.Generator, size: int) -> NDArray[Any]:
        above, noisy = self.compared(value, rng, size)
        return np.where(self.asked(above), np.where(above, on_grid(noisy, self.answer_scale), SAID_BELOW), SAID_NOTHING)


@dataclass(frozen=True)
class NoiseWithoutCount(AboveThreshold):
    """A quarter of ε for the threshold, and noise that does not grow with how many may be above (Algorithm 4)."""

    name: ClassVar[str] = "sparse-vector-4"

    @property
    def threshold_scale(self) -> float:
        return 4.0 * self.sensitivity.amount / self.epsilon

    @property
    def answer_scale(self) -> float:
        return 4.0 / 3.0 * self.sensitivity.amount / self.epsilon


@dataclass(frozen=True)
class NoAnswerNoise(AboveThreshold):
    """Noise on the threshold only, and no end (Algorithm 5)."""

    name: ClassVar[str] = "sparse-vector-5"

    @property
    def answer_scale(self) -> float:
        return 0.0

    def asked(self, above: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.ones_like(above)


@dataclass(frozen=True)
class NoEnd(AboveThreshold):
    """However many are above, it goes on (Algorithm 6)."""

    name: ClassVar[str] = "sparse-vector-6"

    @property
    def answer_scale(self) -> float:
        return 2.0 * self.sensitivity.amount / self.epsilon

    def asked(self, above: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.ones_like(above)


@dataclass(frozen=True)
class NoThresholdNoise(AboveThreshold):
    """The threshold has no noise: every number below costs as much as one above."""

    name: ClassVar[str] = "sparse-vector-bare"

    @property
    def threshold_scale(self) -> float:
        return 0.0
