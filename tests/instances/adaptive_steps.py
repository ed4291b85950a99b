"""Two steps with a truth: noise on a record's value, then noise on one that depends on what the first step showed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from epsilometer.arrays import Floats


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

    def epsilon(self, delta: float) -> float:
        """ε at δ of both steps, the larger of both directions: what is left to the second step, by the first one."""
        y = np.linspace(-12, 12, 4_001)
        strengths = np.maximum(self.seconds(y), 1e-6)
        with_it, without = stats.norm.logpdf(y, self.first), stats.norm.logpdf(y)

        def surplus(log_p: Floats, log_q: Floats, epsilon: float) -> float:
            left = epsilon - (log_p - log_q)
            above = stats.norm.cdf(strengths / 2 - left / strengths)
            below = np.exp(np.minimum(left + stats.norm.logcdf(-strengths / 2 - left / strengths), 0.0))
            return float(np.exp(log_p) @ np.maximum(above - below, 0.0) * (y[1] - y[0]))

        def beyond(epsilon: float) -> float:
            return max(surplus(with_it, without, epsilon), surplus(without, with_it, epsilon)) - delta

        return float(optimize.brentq(beyond, 0.0, 60.0)) if beyond(0.0) > 0 else 0.0

    def paths(self, released: Floats):
        """What trainings with the record cost in both steps, at any order; a column, or as many as there are."""
        columns = released.reshape(len(released), -1)

        def summed(order: float) -> Floats:
            return self.moment(self.first, order) + self.moment(self.seconds(columns), order)

        return summed

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


@dataclass(frozen=True)
class SlopingSteps(AdaptiveSteps):
    """The second step is the stronger, the larger the first release was: from `low` to `high`, reached at `threshold`
    standard deviations."""

    def seconds(self, released: Floats) -> Floats:
        return np.clip(self.low + (self.high - self.low) * np.abs(released) / self.threshold, self.low, self.high)
