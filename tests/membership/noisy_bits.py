"""A training whose ε is known: its model has a bit for each record, turned with probability 1/(1 + e^ε)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilometer.data import Dataset
from epsilometer.subjects import Access, Insertion, Observer, Subject


def numbered(records: int) -> Dataset:
    """Records that are known by their number, all of class 1."""
    return Dataset("numbered", np.arange(records)[:, None], np.ones(records, int), 2)


@dataclass(frozen=True)
class Bits:
    """A record's class has a chance that says its bit."""

    bits: np.ndarray

    def logits(self, x: np.ndarray) -> np.ndarray:
        rows = x[:, 0].astype(int)
        said = np.where(rows < len(self.bits), self.bits[np.minimum(rows, len(self.bits) - 1)], 0.0)
        return np.stack([np.zeros(len(x)), said], axis=1)


@dataclass(frozen=True, eq=False)
class NoisyBits(Subject):
    """Randomized response on every coin, with a little noise of its own, so that references differ."""

    data: Dataset
    epsilon: float

    @property
    def grants(self) -> Access:
        return Access()

    def describe(self) -> str:
        return f"noisy bits, ε = {self.epsilon:g}"

    def identity(self) -> dict[str, Any]:
        return {"data": {"name": "numbered", "records": len(self.data), "sha256": ""}, "epsilon": self.epsilon}

    def run(
        self,
        insertions: Sequence[Insertion],
        seeds: Sequence[np.random.SeedSequence],
        observers: Sequence[Observer],
    ) -> None:
        for insertion, seed, observer in zip(insertions, seeds, observers, strict=True):
            rng = np.random.default_rng(seed)
            inside = np.zeros(len(self.data), bool)
            inside[insertion.data.x[:, 0].astype(int)] = True
            told = inside ^ (rng.random(len(inside)) < 1.0 / (1.0 + math.exp(self.epsilon)))
            observer.finish(Bits(told + 0.1 * rng.standard_normal(len(told))))

    def rehearse(self, data: Any, seeds: Any, *, noiseless: bool = False) -> list[Any]:
        raise NotImplementedError
