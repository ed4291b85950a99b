"""The sum rule: Rényi moments of one step of DP-SGD for a record whose clipped gradient is known."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput

MOST_ORDER = 512  # of a moment; larger ones count as infinite
LEVELS = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 1023)])  # of ‖clipped gradient‖ / C, in a table
_ROUNDING = 1e-6  # by which norms in single precision may be too small

Levels = NDArray[np.int16]


@dataclass(frozen=True)
class StepMoments:
    """ln E (P/Q)^α of one step, the larger of both directions, for a record of which one knows ‖clipped gradient‖ / C.

    P is the step's noisy sum with the record and Q the one without it, at one model. Whatever the other records add,
    the divergence is at most that of (1−q)·N(0, σ²) + q·N(s, σ²) and N(0, σ²), by joint convexity, s being the
    record's share of the clip norm; at whole orders its moment is a sum (Mironov, Talwar & Zhang 2019, section 3.3),
    and the opposite direction has the smaller one (Theorem 5 there). ln E (P/Q)^α is convex in α and 0 at α = 1, so a
    line between whole orders lies above it.

    >>> step = StepMoments(sample_rate=1.0, noise_multiplier=2.0)
    >>> step.log_moments([0.5, 1.0], 8.0).tolist()  # α(α − 1)s²/2σ²
    [1.75, 7.0]
    """

    sample_rate: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        validate.real("sample_rate", self.sample_rate, above=0, below=1, closed="]")
        validate.real("noise_multiplier", self.noise_multiplier, above=0, remedy="without noise no record has an ε")

    def log_moments(self, shares: ArrayLike, order: float) -> Floats:
        """For each share of the clip norm (0 to 1), at an order ≥ 1."""
        given = np.asarray(shares, np.float64)
        if given.size and not (given.min() >= 0 and given.max() <= 1 + _ROUNDING):
            raise InvalidInput(
                "shares", f"{given.min():g} to {given.max():g}", "norms of clipped gradients / C, 0 to 1"
            )
        return self._interpolated(lambda whole: self._at_whole(np.minimum(given, 1.0), whole), given.shape, order)

    def levels(self, shares: ArrayLike) -> Levels:
        """Shares, each rounded up to one of `LEVELS`: what follows from these are upper bounds still."""
        return np.searchsorted(LEVELS, np.minimum(np.asarray(shares) * (1 + _ROUNDING), 1.0)).astype(np.int16)

    def of_levels(self, order: float) -> Floats:
        """Log-moments of all `LEVELS`."""
        return self._interpolated(lambda whole: _table(self, whole), LEVELS.shape, order)

    def _interpolated(self, at_whole: Callable[[int], Floats], shape: tuple[int, ...], order: float) -> Floats:
        validate.real("order", order, above=1, closed="[")
        below = int(order)
        if order > MOST_ORDER:
            return np.full(shape, np.inf)
        lower = at_whole(below) if below > 1 else np.zeros(shape)
        if order == below:
            return lower
        part = order - below
        return (1.0 - part) * lower + part * at_whole(below + 1)

    def _at_whole(self, shares: Floats, order: int) -> Floats:
        """ln(1 + Σ_{j ≥ 2} C(α,j)(1−q)^{α−j}q^j·(exp(s²j(j−1)/2σ²) − 1)): exact near 1 too."""
        j = np.arange(2, order + 1)
        q = self.sample_rate
        binomial = special.gammaln(order + 1) - special.gammaln(j + 1) - special.gammaln(order - j + 1)
        log_weights = binomial + special.xlog1py(order - j, -q) + j * np.log(q)
        exponents = np.square(shares / self.noise_multiplier)[..., None] * (0.5 * j * (j - 1))
        with np.errstate(divide="ignore"):
            log_gains = exponents + np.log(-np.expm1(-exponents))
        moments: Floats = np.logaddexp(0.0, special.logsumexp(log_weights + log_gains, axis=-1))
        return moments


@functools.lru_cache(maxsize=1024)
def _table(moments: StepMoments, order: int) -> Floats:
    return moments._at_whole(LEVELS, order)
