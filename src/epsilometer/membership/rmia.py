"""RMIA: a record against records of the population (Zarifzadeh, Liu & Shokri 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.evidence import Coins
from epsilometer.membership.attack import Attack, Seen


@dataclass(frozen=True)
class Rmia(Attack):
    """The share of population records z with (p_θ(x)/p(x))/(p_θ(z)/p(z)) > γ.

    p(·) = ((1 + a)/2)·(mean over references without the record) + (1 − a)/2 (offline); with `online`, the mean over
    references with and without it, as many of each. A record of the population is in no reference.
    """

    gamma: float = 1.0
    a: float = 0.3
    online: bool = False
    name: ClassVar[str] = "rmia"
    summary: ClassVar[str] = "how many records of the population it beats (Zarifzadeh et al. 2024)"
    least_references: ClassVar[int] = 2
    least_population: ClassVar[int] = 1
    reads: ClassVar[tuple[str, ...]] = ("log_chance",)

    def __post_init__(self) -> None:
        validate.real("gamma", self.gamma, above=0, remedy="1 is usual")
        validate.real("a", self.a, above=0, below=1, closed="[]", remedy="0.3 is usual")

    def scores(self, seen: Seen) -> Floats:
        chance, population = np.exp(seen.references["log_chance"]), np.exp(seen.reference_population["log_chance"])
        outside = _mean(chance, ~seen.member)
        usual = 0.5 * (_mean(chance, seen.member) + outside) if self.online else self._usual(outside)
        usual_z = population.mean(axis=0) if self.online else self._usual(population.mean(axis=0))
        ratio = seen.target["log_chance"] - _log(usual)
        ratio_z = np.sort(seen.population["log_chance"] - _log(usual_z))
        beaten = np.searchsorted(ratio_z, ratio - np.log(self.gamma), side="left")
        scores: Floats = beaten / len(ratio_z)
        return scores

    def _usual(self, outside: Floats) -> Floats:
        usual: Floats = 0.5 * (1 + self.a) * outside + 0.5 * (1 - self.a)
        return usual


def _mean(chance: Floats, side: Coins) -> Floats:
    """Over the references of one side, by record."""
    means: Floats = np.where(side, chance, 0.0).sum(axis=0) / side.sum(axis=0)
    return means


def _log(chance: Floats) -> Floats:
    logs: Floats = np.log(np.maximum(chance, np.finfo(float).tiny))
    return logs
