"""How good a reconstruction is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput
from epsilometer.figures import Drawable, Pictures


@dataclass(frozen=True, eq=False)
class Reconstruction(Drawable):
    """A record beside what an attack made of it; `shape` is that of a picture, if it is one."""

    original: Floats
    estimate: Floats
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("original", "estimate"):
            object.__setattr__(self, name, np.array(getattr(self, name), np.float64))
        if self.original.ndim != 1 or self.original.shape != self.estimate.shape:
            shapes = f"shapes {self.original.shape} and {self.estimate.shape}"
            raise InvalidInput("original, estimate", shapes, "two records of one kind")

    def __repr__(self) -> str:
        return f"Reconstruction({len(self.original)} features, mean squared error {self.mse:.3g})"

    @property
    def mse(self) -> float:
        """The mean over features of the squared error."""
        return float(np.mean((self.estimate - self.original) ** 2))

    def within(self, low: float, high: float) -> Reconstruction:
        """The same with features cut to a range that all records are known to have: no longer unbiased, and better."""
        return Reconstruction(self.original, np.clip(self.estimate, low, high), self.shape)

    def finds(self, candidates: Floats, row: int) -> bool:
        """Whether the record at `row` is nearer to the estimate than all other candidates."""
        distances = np.sum((np.asarray(candidates, np.float64) - self.estimate) ** 2, axis=1)
        own = distances[row]
        return bool(np.count_nonzero(distances <= own) == 1)

    def figure(self) -> Pictures:
        if not self.shape:
            raise InvalidInput("shape", self.shape, "a picture's", "give the shape that records have as pictures")
        records = [("original", self.original), ("reconstruction", self.estimate)]
        return Pictures.of("A record and its reconstruction", records, self.shape, 0.0, float(self.original.max()))
