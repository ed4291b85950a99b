"""Tests of whole curves: how many in-scores lie above each of many planned out-scores, weighed and added up.

A curve promises something at every false-positive rate at once, so the sharpest test of it adds up what all ranks show.
In the words of rank_pairs.py: N₍a₎, the number of in-scores above the a-th highest out-score, is the number of uniform
V below ROC(U₍a₎). Every statistic here grows with each N₍a₎. With the same U and V a larger ROC gives larger
N, so the worlds whose ROC is the claim's g are the least favourable, whatever the weights: the statistic's law
at ROC = g bounds its law under every training that keeps the claim. That law is simulated (spacings of U, then a
binomial number of V in each) at a cost that does not depend on the number of trials.

What is looked at, each on its own scale of −ln p and with its share of the level:

- *everywhere*: Σ N₍a₎·Δg, the sum over in-scores of 1 − g(u), u their place among the out-scores. Under the claim
  g(u) is uniform, so this is Wilcoxon's rank sum on the claim's own scale;
- the *top* and the *bottom*: the same near the highest out-scores, or the lowest in-scores, for rare leaks;
- the *highest* out-score, and the *lowest* in-score alone, for leaks in a training that otherwise leaks little.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from epsilometer.arrays import Floats
from epsilometer.claims import Claim, CurveClaim, GaussianClaim, PointClaim
from epsilometer.evidence import PairedRuns

Integers = NDArray[np.int64]
_KINDS = (PointClaim, GaussianClaim, CurveClaim)
_Result = TypeVar("_Result")

ENDS, MIDDLE = 26, 9
LOWEST = (1, 2, 4, 7)
RARE = 6.0  # scores beyond the rank at which sums of rare leaks weigh most
PARTS = ("everywhere", "top", "highest", "bottom", "lowest")
SHARES = np.array([0.52, 0.10, 0.20, 0.07, 0.11])
FEW = 400.0  # with fewer trials rare leaks cannot be seen anyway: less of the level is spent on them
_SCALING = 4000  # simulations that put the parts on one scale; they decide no p-value
SEEN = 16  # of those, as many as a tail probability rests on at least


@dataclass(frozen=True, eq=False)
class _Scale:
    """A part's values and −ln of their tail probabilities, as simulated; beyond them, a straight line."""

    values: Floats
    logs: Floats

    @classmethod
    def of(cls, drawn: Floats) -> _Scale:
        values, ordered = np.unique(drawn), np.sort(drawn)
        tails = (len(drawn) - np.searchsorted(ordered, values, side="left")) / len(drawn)
        seen = tails >= SEEN / len(drawn)
        return cls(values[seen], -np.log(tails[seen]))

    def __call__(self, raw: Floats) -> Floats:
        """Never falls as `raw` grows: that is all that validity needs."""
        middle = int(np.searchsorted(self.logs, -math.log(0.5)))
        start = min(middle, len(self.logs) - 2)
        slope = 0.0
        if start >= 0:
            slope = (self.logs[-1] - self.logs[start]) / (self.values[-1] - self.values[start])
        found: Floats = np.interp(raw, self.values, self.logs) + slope * np.maximum(raw - self.values[-1], 0.0)
        return found


@dataclass(frozen=True, eq=False)
class RankSums:
    """A statistic for n out-scores and m in-scores, made for one claim. It may test any other as well."""

    n: int
    m: int
    ranks: Integers  # from the top of the out-scores
    weights: Integers  # (sums, ranks), none below 0
    scales: tuple[_Scale, ...]  # of each part
    log_shares: Floats
    usual: tuple[Floats, Floats]  # mean and spread of each rank's count, under the claim that it is made for
    of_family: bool = False  # whether other claims will be tested by it, too

    def shown(self, evidence: PairedRuns) -> Integers:
        """What the scores show, as `simulated` has it; one row."""
        outs, ins = np.sort(evidence.out_scores), np.sort(evidence.in_scores)
        above = self.m - np.searchsorted(ins, outs[self.n - self.ranks], side="right")
        below = np.searchsorted(outs, ins[0], side="left")
        row: Integers = np.r_[above, below].astype(np.int64)[None, :]
        return row

    def simulated(self, claim: Claim, group_size: int, simulations: int, seed: list[int]) -> Integers:
        """What audits show in which the ROC is the claim's."""
        return _simulated(claim, group_size, self.n, self.m, self.ranks, simulations, seed)

    def most_telling(self, shown: Integers) -> int:
        """The planned rank whose count is furthest above what is usual, by its spread."""
        mean, spread = self.usual
        return int(np.argmax((shown[0, :-1] - mean) / (spread + 1.0)))  # where counts hardly vary, little is seen

    def decided_by(self, shown: Integers) -> str:
        return PARTS[0 if self.of_family else int(np.argmax(self.parts(shown)[0]))]

    def parts(self, shown: Integers) -> Floats:
        """−ln p of each part, about, plus the logarithm of its share; one row for each audit."""
        raw = _raw_parts(shown, self.weights, self.m)
        scaled = np.stack([scale(raw[:, i]) for i, scale in enumerate(self.scales)], axis=1)
        parts: Floats = scaled + self.log_shares
        return parts

    def statistic(self, shown: Integers) -> Floats:
        """What decides; of a family of claims the sum everywhere, which no claim however far makes flat."""
        if self.of_family:
            return _raw_parts(shown, self.weights, self.m)[:, 0]
        best: Floats = self.parts(shown).max(axis=1)
        return best


def _raw_parts(shown: Integers, weights: Integers, m: int) -> Floats:
    counts, below_all = shown[:, :-1], shown[:, -1]
    sums = counts @ weights.T  # of whole numbers: rounding that differs between one audit and many would refute falsely
    # The s-th lowest in-score lies above so many planned out-scores, which are evenly spaced in the logarithm there.
    below = sum(np.count_nonzero(counts > m - s, axis=1) for s in LOWEST)
    return np.column_stack([sums[:, 0], sums[:, 1], counts[:, 0], below, below_all]).astype(np.float64)


def _remembered(size: int) -> Callable[[Callable[..., _Result]], Callable[..., _Result]]:
    """A cache for claims of our own kinds. Others might be equal and promise different things, or have no hash."""

    def decorate(function: Callable[..., _Result]) -> Callable[..., _Result]:
        cached = functools.lru_cache(maxsize=size)(function)

        @functools.wraps(function)
        def call(*args: Any) -> _Result:
            ours = all(type(value) in _KINDS for value in args if isinstance(value, Claim))
            return cached(*args) if ours else function(*args)

        return call

    return decorate


@_remembered(16)
def rank_sums(claim: Claim, group_size: int, n: int, m: int, seed: int, of_family: bool = False) -> RankSums:
    """The statistic that is made for a claim: chosen without any score."""
    ranks = _planned(n)
    u = ranks / (n + 1.0)
    g = claim.max_tpr(u, group_size)
    weights = np.stack([
        _whole(np.diff(np.r_[0.0, (g[1:] + g[:-1]) / 2, 1.0])),
        _whole(_bump(g, min(RARE / m, 0.5))),
    ])  # fmt: skip
    drawn = _simulated(claim, group_size, n, m, ranks, _SCALING, [seed, 3])
    scales = tuple(_Scale.of(column) for column in _raw_parts(drawn, weights, m).T)
    shares = SHARES.copy()
    shares[1:] *= min(1.0, min(n, m) / FEW)
    counts = drawn[:, :-1]
    usual = counts.mean(axis=0), counts.std(axis=0)
    return RankSums(n, m, ranks, weights, scales, np.log(shares), usual, of_family)


def _whole(weights: Floats) -> Integers:
    """Weights in millionths of their sum; none at all where a claim promises nothing."""
    whole: Integers = np.rint(np.maximum(weights, 0.0) * (1e6 / max(weights.sum(), 1e-300))).astype(np.int64)
    return whole


def _planned(n: int) -> Integers:
    """Ranks from both ends, closer together near the ends, where what is rare shows."""
    ends = np.unique(np.rint(np.geomspace(1.0, max(1.0, n / 3), ENDS)))
    middle = np.rint(np.linspace(0.0, 1.0, MIDDLE + 2)[1:-1] * (n + 1))
    ranks = np.unique(np.r_[ends, middle, n + 1 - ends])
    return ranks[(ranks >= 1) & (ranks <= n)].astype(np.int64)


def _bump(rates: Floats, centre: float) -> Floats:
    """Weights around a rate, by the normal quantile."""
    z = special.ndtri(np.clip(rates, 1e-12, 1.0 - 1e-12))
    far = (z - special.ndtri(centre)) / 0.5
    weights = np.abs(np.gradient(z)) if len(z) > 1 else np.ones(1)
    found: Floats = weights * np.exp(-0.5 * (far**2 - np.min(far**2)))  # the nearest rank weighs something
    return found


def _simulated(
    claim: Claim, group_size: int, n: int, m: int, ranks: Integers, simulations: int, seed: list[int]
) -> Integers:
    """Audits in which the ROC is the claim's, one row each: the in-scores above each planned out-score, and last the
    out-scores below all in-scores."""
    rng = np.random.default_rng([*seed, n, m])
    spacings = np.diff(np.r_[0, ranks, n + 1])
    sums = np.cumsum(rng.standard_gamma(spacings, (simulations, len(spacings))), axis=1)
    rates = np.column_stack([np.zeros(simulations), sums / sums[:, -1:]])  # U of the planned ranks, between 0 and 1
    allowed = np.column_stack([np.zeros(simulations), claim.max_tpr(rates[:, 1:-1], group_size), np.ones(simulations)])
    above = np.zeros((simulations, len(ranks) + 2), np.int64)
    for k in range(1, len(ranks) + 1):
        left, rest = m - above[:, k - 1], np.maximum(1.0 - allowed[:, k - 1], 1e-300)
        share = (allowed[:, k] - allowed[:, k - 1]) / rest
        above[:, k] = above[:, k - 1] + rng.binomial(left, np.clip(share, 0.0, 1.0))
    above[:, -1] = m
    return np.column_stack([above[:, 1:-1], _below_all(claim, group_size, ranks, n, rates, allowed, above, rng)])


def _below_all(
    claim: Claim, group_size: int, ranks: Integers, n: int, rates: Floats, allowed: Floats, above: Integers,
    rng: np.random.Generator,
) -> Integers:  # fmt: skip
    """How many out-scores lie below the lowest in-score, drawn between the planned ones around it."""
    last = np.argmax(above == above[:, -1:], axis=1)  # the first planned out-score that all in-scores are above

    def around(table: NDArray[np.generic]) -> tuple[Floats, Floats]:
        rows = np.arange(len(last))
        return table[rows, last - 1].astype(np.float64), table[rows, last].astype(np.float64)

    (u0, u1), (v0, v1), (k0, k1) = around(rates), around(allowed), around(above)
    lowest = v0 + (v1 - v0) * rng.random(len(last)) ** (1.0 / (k1 - k0))  # the largest of so many V
    place = np.clip(1.0 - claim.max_tpr(1.0 - np.clip(lowest, 0.0, 1.0), group_size), u0, u1)  # g⁻¹, as g is symmetric
    between = np.r_[0, np.diff(np.r_[0, ranks, n + 1]) - 1][last]
    share = (u1 - place) / np.maximum(u1 - u0, 1e-300)
    below: Integers = (n + 1 - np.r_[0, ranks, n + 1][last]) + rng.binomial(between, np.clip(share, 0.0, 1.0))
    return below


@_remembered(64)
def null_statistics(statistic: RankSums, claim: Claim, group_size: int, simulations: int, seed: int) -> Floats:
    """The statistic of simulated audits in which the ROC is the claim's, in rising order."""
    found = np.sort(statistic.statistic(statistic.simulated(claim, group_size, simulations, [seed, 4])))
    found.flags.writeable = False
    return found
