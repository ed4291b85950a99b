"""Randomness that a bound adds of its own, and what it costs to rely on it."""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

SIGMAS = 3.0  # by how much simulated tail probabilities are taken as larger than they came out


def rng_for(seed: int, *values: NDArray[np.generic]) -> np.random.Generator:
    """A generator from the seed and the data themselves.

    With a generator from the seed alone, everybody's audit of one size would get the same draw, and a share of them
    an unlucky one in every audit.
    """
    digest = hashlib.blake2b(digest_size=16)
    for array in values:
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.random.default_rng([seed, *np.frombuffer(digest.digest(), np.uint32).tolist()])


def most_hits(simulations: int, alpha: float) -> int:
    """The most simulated audits that may cross for the true probability to be called α or less; −1 for none.

    The usual (1 + hits)/(1 + simulations) is valid on average over seeds. Here `SIGMAS` standard deviations are paid so
    that an unlucky seed does not matter either.

    >>> most_hits(19999, 0.05)
    904
    """
    expected = alpha * (1 + simulations) - 1.0
    allowed = expected - SIGMAS * math.sqrt(expected) if expected > 0 else -1.0
    return min(math.floor(allowed), simulations - 1) if allowed >= 0 else -1


def p_value(hits: int, simulations: int) -> float:
    """The same the other way round: it is at most α iff there are at most `most_hits`.

    >>> p_value(904, 19999) <= 0.05 < p_value(905, 19999)
    True
    """
    half = SIGMAS / 2
    return min(1.0, (1.0 + (math.sqrt(hits + half * half) + half) ** 2) / (1 + simulations))
