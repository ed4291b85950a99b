"""An ε that DP-SGD really has: from below, where accountants come from above.

Who may only see in which interval the output of a step lies sees less than who sees the output: a post-processing, with
which a training is at least as private. Its privacy loss has as many values as there are intervals, and these are made
so that each value is a multiple of one width. They compose exactly; nothing is rounded but the last bits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import optimize

from epsilometer.accounting import pld
from epsilometer.accounting.mechanism import DpSgd
from epsilometer.claims import Relation

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

_FAR, _NOTHING = 7.7, 1e-15  # deviations below which, and mass above which, a tail is one interval
_FARTHEST = 37.0  # deviations beyond which masses are no floats any more
_TAIL = 100.0  # large losses are put together in a hundredth of themselves: they are rare, and would be many
_LAST_BITS = 1e-12  # more than what masses of an interval, and so its loss, are wrong by


def epsilon_floor(mechanism: DpSgd, delta: float, relation: Relation) -> float:
    """Not above the ε that the mechanism has at δ, for records whose gradients are as large as the clip norm; 0 where
    the noise is so little that bins would not fit.

    >>> round(epsilon_floor(DpSgd(250 / 6000, 1.01, 576), 1e-5, Relation.ADD_REMOVE), 2)
    6.49
    """
    padded = delta + 2.0 * pld.round_off(mechanism)  # what transforms can lose
    if padded >= 1.0:
        return 0.0
    if mechanism.sample_rate == 1.0:
        return (1.0 - 1e-9) * pld.epsilon(mechanism, padded, relation)  # in closed form
    if pld.unsampled(mechanism, relation) is not None:
        return 0.0
    found = pld.epsilon_at(_distribution(mechanism, relation), padded)
    return min(max(0.0, found - _LAST_BITS * mechanism.steps), pld.LARGEST_EPSILON)  # beyond it sums overflow


@functools.lru_cache(maxsize=64)
def _distribution(mechanism: DpSgd, relation: Relation) -> PrivacyLossDistribution:
    pld.require_affordable(mechanism)
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution  # half a second: only when it is needed

    width = _width(mechanism)
    step = _Step(mechanism.sample_rate, 1.0 / mechanism.noise_multiplier, relation is Relation.REPLACE)
    losses, masses = map(np.array, zip(*_intervals(step, width), strict=True))
    probabilities = np.zeros(losses[-1] - losses[0] + 1)
    np.add.at(probabilities, losses - losses[0], masses)
    pmf = pld_pmf.DensePLDPmf(width, int(losses[0]), probabilities, 0.0, False)
    return privacy_loss_distribution.PrivacyLossDistribution(pmf.self_compose(mechanism.steps))


def _width(mechanism: DpSgd) -> float:
    """Fine beside the loss of a step; wider, which is as sound and says less, where there would be too many bins."""
    q, sigma = mechanism.sample_rate, mechanism.noise_multiplier
    largest_step, total = 10.0 / sigma + 1.0 / sigma**2, mechanism.steps * q / sigma**2
    usual = mechanism.steps * q * max(0.0, 0.5 / sigma**2 + math.log(q))
    return max(min(q / (40.0 * sigma), 1e-3), largest_step / 1e6, total / 1e7, min(usual / 4e4, pld.WIDEST_BIN))


class _Step(NamedTuple):
    """The worst pair of outputs of a step along a record's gradient, in deviations of the noise: with the record, which
    is drawn with this rate, and without it; or, replaced, with its opposite."""

    rate: float
    mu: float
    replaced: bool

    def loss(self, x: float) -> float:
        """Rises with x."""
        there = _log_mixed(self.rate, self.mu * x - self.mu**2 / 2)
        return there - _log_mixed(self.rate, -self.mu * x - self.mu**2 / 2) if self.replaced else there

    def masses(self, low: float, high: float) -> tuple[float, float]:
        """Of an interval, in both worlds."""
        none = _mass(low, high)
        first = (1.0 - self.rate) * none + self.rate * _mass(low - self.mu, high - self.mu)
        if not self.replaced:
            return first, none
        return first, (1.0 - self.rate) * none + self.rate * _mass(low + self.mu, high + self.mu)

    def mean_loss(self, low: float, high: float) -> float:
        """What seeing the interval alone tells; it rises with both ends."""
        first, second = self.masses(low, high)
        return math.log(first / second)


def _intervals(step: _Step, width: float) -> Iterator[tuple[int, float]]:
    """From the least loss to the largest: each interval's loss as a multiple of `width`, and its mass."""
    low, mass = -_FAR, step.masses(-math.inf, -_FAR)[0]
    yield math.floor(step.mean_loss(-math.inf, low) / width), mass
    while True:
        reached = step.loss(low)
        multiple = math.ceil((reached + max(width, abs(reached) / _TAIL) / 2) / width)
        wanted = (multiple + 1e-9) * width  # a little above, so that rounding cannot get it below
        rest = step.masses(low, math.inf)[0]
        if rest < _NOTHING or step.mean_loss(low, _FARTHEST) <= wanted:
            yield math.floor(step.mean_loss(low, math.inf) / width), rest
            return
        high = _end(step, low, wanted)
        yield min(multiple, math.floor(step.mean_loss(low, high) / width)), step.masses(low, high)[0]
        low = high


def _end(step: _Step, low: float, wanted: float) -> float:
    """Where the interval from `low` ends whose loss is wanted."""
    short = optimize.brentq(lambda x: step.loss(x) - wanted, low, _FARTHEST)  # all of the interval loses less
    long = short
    while step.mean_loss(low, long) < wanted:
        long = min(_FARTHEST, long + (long - low))
    return float(optimize.brentq(lambda x: step.mean_loss(low, x) - wanted, short, long, xtol=1e-13))


def _log_mixed(rate: float, exponent: float) -> float:
    """The logarithm of 1 − q + q·e^exponent."""
    if exponent > 700.0:
        return math.log(rate) + exponent
    return math.log1p(rate * math.expm1(exponent))


def _mass(low: float, high: float) -> float:
    """Of the standard normal law, to the last digits in both tails."""
    if low > 0:
        low, high = -high, -low
    return 0.5 * (math.erfc(-high / math.sqrt(2.0)) - math.erfc(-low / math.sqrt(2.0)))
