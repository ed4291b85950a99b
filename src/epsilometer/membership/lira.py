"""LiRA: a likelihood ratio for each record, from models that had it and models that had not (Carlini et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import unknown_name
from epsilometer.evidence import Coins
from epsilometer.membership.attack import Attack, Seen
from epsilometer.membership.signals import MINUS_LOSS

VARIANCES = {
    "fixed": "one variance for all records, within records and about their means: for few references",
    "record": "each record's own: for many references (64, say)",
}
_LEAST_SPREAD = 1e-3  # of the common one: two references may agree by chance

STATISTIC = ("log_odds", MINUS_LOSS)  # whose law over models is taken to be normal


@dataclass(frozen=True)
class Lira(Attack):
    """ln N(φ; μ_in, σ_in) − ln N(φ; μ_out, σ_out) with φ = ln p_y − ln Σ_{j≠y} p_j, by record (online).

    Means are over the references that had the record, and those that had not.
    """

    variance: str = "fixed"
    name: ClassVar[str] = "lira"
    summary: ClassVar[str] = "likelihood ratio of a record's log-odds, with and without it (Carlini et al. 2022)"
    least_references: ClassVar[int] = 4
    reads: ClassVar[tuple[str, ...]] = STATISTIC

    def __post_init__(self) -> None:
        if self.variance not in VARIANCES:
            raise unknown_name("variance", self.variance, VARIANCES)

    def scores(self, seen: Seen) -> Floats:
        odds, reference_odds = seen.target.first_of(*STATISTIC), seen.references.first_of(*STATISTIC)
        inside, outside = (_fitted(reference_odds, side, self.variance) for side in (seen.member, ~seen.member))
        return _log_density(odds, *inside) - _log_density(odds, *outside)


@dataclass(frozen=True)
class OfflineLira(Attack):
    """(φ − μ_out)/σ_out: how unlikely so large a φ is of a model without the record (offline).

    The paper's score is Φ of it, which orders records in the same way but cannot tell the largest apart.
    """

    variance: str = "fixed"
    name: ClassVar[str] = "lira-offline"
    summary: ClassVar[str] = "LiRA with references that never had the record"
    least_references: ClassVar[int] = 4
    reads: ClassVar[tuple[str, ...]] = STATISTIC

    def __post_init__(self) -> None:
        if self.variance not in VARIANCES:
            raise unknown_name("variance", self.variance, VARIANCES)

    def scores(self, seen: Seen) -> Floats:
        mean, spread = _fitted(seen.references.first_of(*STATISTIC), ~seen.member, self.variance)
        scores: Floats = (seen.target.first_of(*STATISTIC) - mean) / spread
        return scores


def _fitted(odds: Floats, side: Coins, variance: str) -> tuple[Floats, Floats]:
    """Mean and deviation of each record's log-odds over the references of one side."""
    count = side.sum(axis=0)
    mean = np.where(side, odds, 0.0).sum(axis=0) / count
    squares = np.where(side, (odds - mean) ** 2, 0.0).sum(axis=0)
    freedom = int(np.maximum(count - 1, 0).sum())
    common = np.sqrt(squares.sum() / max(freedom, 1))
    floor = max(float(_LEAST_SPREAD * common), 1e-12)
    if variance == "fixed":
        return mean, np.full(len(mean), max(float(common), floor))
    return mean, np.maximum(np.sqrt(squares / np.maximum(count - 1, 1)), floor)


def _log_density(values: Floats, mean: Floats, spread: Floats) -> Floats:
    """Of a normal distribution, less ln √(2π)."""
    density: Floats = -0.5 * ((values - mean) / spread) ** 2 - np.log(spread)
    return density
