"""Two steps with a truth: noise on a record's value, then noise on one that depends on what the first step showed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from epsilometer.claims import Floats


@dataclass(frozen=True)
class AdaptiveSteps:
    """Step 1 releases N(first, 1) with the record and N(0, 1) without it; step 2 has N(high or low, 1) instead of
    N(0, 1), high if the first release was above `threshold`."""

    first: float
    low: float
    high: float
    threshold: float

    def seconds(self, released: Floats) -> Floats:
        return np.where(released > self.threshold, self.high, self.low)

    def moment(self, strength: Floats | float, order: float) -> Floats:
        return np.asarray(order * (order - 1.0) * np.square(strength) / 2.0)

    def truth(self, order: float, direction: str) -> float:
        """(α−1)·D_α of both steps, by integration over the first release."""
        y = np.linspace(-40, 40, 400_001)
        x, z = (self.first, 0.0) if direction == "with-without" else (0.0, self.first)
        logs = order * stats.norm.logpdf(y, x) + (1 - order) * stats.norm.logpdf(y, z)
        return float(np.logaddexp.reduce(logs + self.moment(self.seconds(y), order)) + np.log(y[1] - y[0]))

    def step(self, released: Floats):
        """Of trainings with the record whose first step released this."""

        def log_moments(step: int, order: float) -> Floats:
            if step == 0:
                return np.full((len(released), 1), self.moment(self.first, order))
            return self.moment(self.seconds(released), order)[:, None]

        return log_moments

    def worst(self, order: float) -> float:
        return float(self.moment(max(self.first, self.high, self.low), order))

    def trainings(self, count: int, rng: np.random.Generator | None = None) -> Floats:
        """First releases, with the record; without a generator, quantiles."""
        if rng is None:
            return self.first + stats.norm.ppf((np.arange(count) + 0.5) / count)
        return self.first + rng.standard_normal(count)
