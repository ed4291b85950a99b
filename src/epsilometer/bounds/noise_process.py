"""Is there too little noise where it can be seen? An e-process over steps, valid whenever one looks.

A step states that its noise is independent and Gaussian, of deviation 1 in the units given here. Against a smaller
deviation s the likelihood ratio of n values with sum of squares q is s⁻ⁿ·exp(−½(s⁻² − 1)q); its mean is 1 under the
statement, and less if the noise is wider (it falls in q). So the average over some s is a supermartingale, and ever
reaches 1/α with probability at most α (Ville).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from epsilometer import validate
from epsilometer.errors import InvalidInput
from epsilometer.evidence import as_scores

SMALLER = np.array([0.02, 0.1, 0.3, 0.5, 0.7, 0.8, 0.88, 0.94, 0.975])
SMALLER_SHARES = np.array([0.01, 0.01, 0.01, 0.02, 0.03, 0.08, 0.24, 0.25, 0.35])  # most where evidence grows slowly


class NoiseProcess:
    """Takes the noise of one step after another, in units of the deviation that is stated.

    >>> rng = np.random.default_rng(0)
    >>> process = NoiseProcess()
    >>> for _ in range(10):
    ...     process.add(rng.normal(0, 0.9, 200))
    >>> process.refuted_at
    2
    """

    def __init__(self, confidence: float = 0.95) -> None:
        self._needed = -math.log1p(-validate.confidence(confidence))
        self._logs = np.log(SMALLER_SHARES)
        self.steps = 0
        self.refuted_at: int | None = None

    def add(self, noise: ArrayLike) -> None:
        """One step; of one in which nothing was seen there are no values."""
        values = as_scores("noise", noise) if np.size(noise) else np.zeros(0)
        if not np.isfinite(values).all():  # one infinity would blind it for ever
            raise InvalidInput("noise", "infinity", "finite numbers", "leave that step out: add([])")
        self.steps += 1
        squares = float(values @ values)
        self._logs += -len(values) * np.log(SMALLER) - 0.5 * (SMALLER**-2 - 1.0) * squares
        if self.refuted_at is None and self.log_e_value >= self._needed:
            self.refuted_at = self.steps

    @property
    def log_e_value(self) -> float:
        """Of now; it may have been larger before."""
        return float(np.logaddexp.reduce(self._logs))
