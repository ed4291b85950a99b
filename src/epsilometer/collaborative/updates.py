"""What a participant shares of a batch: its mean gradient, with noise that hides a record or the whole participant."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.training import Array, Labels, Network

LEVELS = {
    "none": "the mean gradient as it is",
    "record": "each record's gradient clipped to C, noise of σ·C on their sum: DP-SGD",
    "participant": "the mean gradient clipped to C, noise of σ·C on it: whatever the batch is, it is hidden",
}


@dataclass(frozen=True)
class Updates:
    """How a batch becomes an update; `level` says what its noise hides."""

    level: str = "none"
    noise_multiplier: float = 0.0
    clip_norm: float = 1.0

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise unknown_name("level", self.level, LEVELS)
        validate.real("noise_multiplier", self.noise_multiplier, above=0, below=math.inf, closed="[")
        validate.real("clip_norm", self.clip_norm, above=0, below=math.inf)
        if self.level == "none" and self.noise_multiplier:
            expected = "0, as nothing is clipped"
            raise InvalidInput("noise_multiplier", self.noise_multiplier, expected, "say what it hides: level")

    def clean(self, network: Network, parameters: Array, x: Array, y: Labels) -> Floats:
        """The update of a batch before its noise."""
        each = self.clip_norm if self.level == "record" else math.inf
        total = network.clipped_gradient_sum(parameters, np.asarray(x, parameters.dtype), y, each)
        mean: Floats = total.astype(np.float64) / len(x)
        if self.level == "participant":
            mean *= min(1.0, self.clip_norm / max(float(np.linalg.norm(mean)), 1e-300))
        return mean

    def noisy(self, clean: Floats, batch: int, rng: np.random.Generator) -> Floats:
        """The update as it is shared, of a batch of that size."""
        noise_std = self.noise_multiplier * self.clip_norm / (batch if self.level == "record" else 1)
        return clean + noise_std * rng.standard_normal(len(clean))
