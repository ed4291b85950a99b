"""Where noise comes from: standard normal numbers for many releases at once, whoever draws them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special

from epsilometer.arrays import Floats


class Draws(Protocol):
    """Randomness of `count` releases. What each step draws is independent of all other steps."""

    @property
    def count(self) -> int: ...

    def normals(self, step: int, numbers: int) -> Floats:
        """Standard normal numbers, a row a release."""


@dataclass(frozen=True, eq=False)
class GeneratorDraws:
    """From a numpy generator; steps must be asked for in order."""

    rng: np.random.Generator
    count: int = 1

    def normals(self, step: int, numbers: int) -> Floats:
        return self.rng.standard_normal((self.count, numbers))


def long_tailed(normals: Floats) -> Floats:
    """Vectors b with density ∝ e^{−‖b‖}, from one normal number more than they have: direction and length.

    In one dimension this is Laplace's law; in p the length has a Gamma(p) law (Chaudhuri et al. 2011).

    >>> rng = np.random.default_rng(0)
    >>> long_tailed(rng.standard_normal((100_000, 4))).std(axis=0).round(2)  # √(p + 1) each
    array([2., 2., 2.])
    """
    directions = normals[:, :-1]
    size = directions.shape[1]
    lengths = special.gammainccinv(size, special.ndtr(-normals[:, -1]))
    norms = np.linalg.norm(directions, axis=1)
    found: Floats = directions * (lengths / np.maximum(norms, 1e-300))[:, None]
    return found
