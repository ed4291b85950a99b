"""Noisy copies of records: what an attacker asks about who is told labels only (Choquette-Choo et al. 2021)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.seeds import Stream, seed_of
from epsilometer.training import Array, Labels


@dataclass(frozen=True)
class Queries:
    """`copies` of every record. Of features that are all 0 or 1, a share `noise` is turned; otherwise normal noise is
    added, `noise` times the deviation of all features. Every model is asked about the same copies."""

    copies: int = 16
    noise: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        validate.whole("copies", self.copies, least=1, most=1000)
        validate.real("noise", self.noise, above=0, below=1, remedy="0.1 is usual")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def robust(self, model: Any, x: Array, y: Labels) -> Floats:
        """The share of each record's copies that the model gives the record's label."""
        rng = np.random.default_rng(seed_of(self.seed, Stream.QUERYING, 0))
        binary, spread = bool(np.isin(x, (0.0, 1.0)).all()), float(np.std(x))
        right = np.zeros(len(x))
        for _ in range(self.copies):
            if binary:
                asked = np.abs(x - (rng.random(x.shape, np.float32) < self.noise))
            else:
                asked = x + np.float32(self.noise * spread) * rng.standard_normal(x.shape, np.float32)
            right += np.argmax(model.logits(asked.astype(np.float32)), axis=1) == y
        shares: Floats = right / self.copies
        return shares
