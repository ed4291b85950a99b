"""The exponential mechanism (McSherry & Talwar 2007): one of several outputs, the better ones more often."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.claims import CurveClaim, Neighbours
from epsilometer.mechanisms.mechanism import Mechanism, positive_epsilon, profile
from epsilometer.mechanisms.sensitivity import UNIT, Sensitivity, numbers


@dataclass(frozen=True)
class Exponential(Mechanism):
    """The place of an output, drawn with probability ∝ exp(score·ε/2Δ); the value is a score for each output.

    Which outputs there are must not depend on the data. Δ is how much one record can change any score (linf). Where one
    record moves all scores in the same direction (counts, say), they are `monotonic`, and the 2 can be spared.

    Logarithms of probabilities move within a range of ε (Dong, Durfee & Rogers 2020), which promises more than (ε, 0):
    δ(ε') = (1 − e^{(ε' − ε)/2})²/(1 − e^{−ε}). The course's hair colours (Bellet): 500 dark, at most 399 of any other.

    >>> hair = Exponential(epsilon=0.1)
    >>> round(1 - hair.failure(gap=100, outputs=4), 3)
    0.973
    >>> hair.probabilities([500, 399, 399, 399])[0].round(3).item()
    0.981
    """

    epsilon: float
    sensitivity: Sensitivity = UNIT["linf"]
    monotonic: bool = False
    name: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        positive_epsilon(self.epsilon)
        object.__setattr__(self, "sensitivity", Sensitivity.of(self.sensitivity, "linf"))

    @property
    def claim(self) -> CurveClaim:
        return bounded_range_curve(self.epsilon, self.neighbours, self.describe())

    @property
    def rate(self) -> float:
        """By how much a score of 1 more raises the logarithm of a probability."""
        return self.epsilon / ((1.0 if self.monotonic else 2.0) * self.sensitivity.amount)

    def probabilities(self, scores: ArrayLike) -> Floats:
        """Of each output."""
        chances: Floats = special.softmax(self.rate * self.accept(scores))
        return chances

    def utility_gap(self, beta: float, outputs: int, best: int = 1) -> float:
        """With probability ≥ 1 − β the score is at most this much below the best: ln(|O|/(β|O*|))·2Δ/ε.

        `outputs` is |O|; `best` is |O*|, how many outputs have the best score.

        >>> round(Exponential(epsilon=0.1).utility_gap(4 * math.exp(-5), outputs=4), 6)
        100.0
        """
        validate.real("beta", beta, above=0, below=1, closed="]")
        _require_outputs(outputs, best)
        return max(0.0, math.log(outputs / (beta * best)) / self.rate)

    def failure(self, gap: float, outputs: int, best: int = 1) -> float:
        """The same theorem the other way round: a limit on the probability of a score lower by `gap` or more."""
        validate.real("gap", gap, above=0, closed="[")
        _require_outputs(outputs, best)
        return min(1.0, outputs / best * math.exp(-self.rate * gap))

    def accept(self, value: ArrayLike) -> Floats:
        return numbers("scores", value, vector=True)

    def describe(self) -> str:
        kind = ", monotonic scores" if self.monotonic else ""
        return f"exponential mechanism (ε = {self.epsilon:g}, Δ = {self.sensitivity.amount:g}{kind})"

    def _releases(self, value: Floats, rng: np.random.Generator, size: int) -> NDArray[np.int64]:
        edges = np.cumsum(self.probabilities(value))
        drawn: NDArray[np.int64] = np.searchsorted(edges[:-1], rng.random(size) * edges[-1], side="right")
        return drawn


def bounded_range_curve(epsilon: float, neighbours: Neighbours, name: str) -> CurveClaim:
    """What holds if log-probabilities of all outputs move within a range of ε, whatever its place.

    The worst pair has two losses, t and t − ε, and t = (ε + ε')/2 is the worst t at ε'.
    """
    return profile(epsilon, lambda e: np.expm1((e - epsilon) / 2.0) ** 2 / -np.expm1(-epsilon), neighbours, name)


def one_item_profit(offers: ArrayLike, prices: ArrayLike) -> Floats:
    """What one item brings at each price: the price, if some buyer offers as much; at most the largest price changes.

    The course's example: close prices can have very different profits, so noise on the best price is of no use.

    >>> one_item_profit(offers=[3, 4], prices=[3, 3.01, 4, 4.01]).tolist()
    [3.0, 3.01, 4.0, 0.0]
    """
    bids, asked = numbers("offers", offers), numbers("prices", prices, vector=True)
    highest = bids.max() if bids.size else -np.inf
    return np.where(asked <= highest, asked, 0.0)


def _require_outputs(outputs: int, best: int) -> None:
    validate.whole("outputs", outputs, least=1)
    validate.whole("best", best, least=1, most=outputs)
