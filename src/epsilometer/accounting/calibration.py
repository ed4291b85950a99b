"""Which noise a promise needs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from epsilometer import validate
from epsilometer.accounting.accountants import account
from epsilometer.accounting.mechanism import DpSgd
from epsilometer.accounting.pld import LARGEST_EPSILON
from epsilometer.claims import GaussianClaim
from epsilometer.errors import InvalidInput
from epsilometer.neighbours import AnyNeighbours, Neighbours, Relation, sensitivity

LEAST, MOST = 1e-2, 5e5  # noise multipliers that are looked at
_SCOUTS = 8  # evaluations before the search, at most: an accountant may need seconds for each


def calibrate(
    *,
    epsilon: float,
    delta: float,
    sample_rate: float,
    steps: int,
    relation: AnyNeighbours = Relation.ADD_REMOVE,
    accountant: str = "pld",
    relative_tolerance: float = 1e-4,
) -> float:
    """The smallest noise multiplier (to `relative_tolerance`, from 0.01 on) with which the accountant proves (ε, δ).

    >>> round(calibrate(epsilon=4.0, delta=1e-5, sample_rate=1.0, steps=1), 3)
    1.081
    """
    validate.real("epsilon", epsilon, above=0, remedy="noise is calibrated to a finite ε > 0")
    validate.real("delta", delta, above=0, below=1, remedy="Gaussian noise needs δ > 0; a common choice is 1e-5")
    kept = Neighbours.of(relation).relation  # the unit decides no noise
    return _calibrated(epsilon, delta, sample_rate, steps, kept, accountant, relative_tolerance)


@functools.lru_cache(maxsize=256)
def _calibrated(
    epsilon: float,
    delta: float,
    sample_rate: float,
    steps: int,
    relation: Relation,
    accountant: str,
    relative_tolerance: float,
) -> float:
    def epsilon_of(sigma: float) -> float:
        return account(DpSgd(sample_rate, sigma, steps), delta, relation, accountant).epsilon

    reached = _Reached(epsilon_of, epsilon)
    reached.scout(_guess(epsilon, delta, sample_rate, steps, relation), relative_tolerance)
    high = 1.0
    while not reached(high):
        high *= 2
        if high > MOST:
            raise InvalidInput("epsilon", epsilon, f"a value that {accountant} can prove", "ask for a larger ε")
    low = high / 2
    while low > LEAST and reached(low):
        low, high = low / 2, low
    while high / low > 1.0 + relative_tolerance:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


class _Reached:
    """Whether a noise multiplier is enough. More noise is never worse, so most answers follow from others."""

    def __init__(self, epsilon_of: Callable[[float], float], wanted: float) -> None:
        self._epsilon_of, self._wanted = epsilon_of, wanted
        self._too_little, self._enough = 0.0, math.inf

    def __call__(self, sigma: float) -> bool:
        if self._too_little < sigma < self._enough:
            self._look(sigma)
        return sigma >= self._enough

    def scout(self, sigma: float, tolerance: float) -> None:
        """Narrow the question down around a guess, by secants: log ε is nearly straight in log σ, and falls."""
        slope, last = -1.0, None
        for _ in range(_SCOUTS):
            sigma = min(max(sigma, LEAST), MOST)
            narrow = self._enough <= (1.0 + tolerance) * self._too_little
            if narrow or not self._too_little < sigma < self._enough:
                return
            epsilon = self._look(sigma)
            if not 0 < epsilon < math.inf:
                return
            here = math.log(sigma), math.log(epsilon / self._wanted)
            if last is not None and here[0] != last[0]:
                slope = min((here[1] - last[1]) / (here[0] - last[0]), -0.1)
            last = here
            step = -here[1] / slope
            # A little beyond the goal, so that the next one bounds it from the other side.
            sigma *= math.exp(step + math.copysign(tolerance / 2, step))

    def _look(self, sigma: float) -> float:
        epsilon = self._epsilon_of(sigma)
        if epsilon <= self._wanted:
            self._enough = min(self._enough, sigma)
        else:
            self._too_little = max(self._too_little, sigma)
        return epsilon


def _guess(epsilon: float, delta: float, sample_rate: float, steps: int, relation: Relation) -> float:
    """By the central limit theorem for many small steps (Dong, Roth & Su 2022): μ = q·√(T(exp(1/σ²) − 1))."""
    validate.real("sample_rate", sample_rate, above=0, below=1, closed="]")
    validate.whole("steps", steps, least=1)
    mu = GaussianClaim.through(min(epsilon, LARGEST_EPSILON), delta).mu
    return sensitivity(relation) / math.sqrt(math.log1p((mu / sample_rate) ** 2 / steps))
