"""What an adversary may see and do during a training."""

from __future__ import annotations

import numpy as np

from epsilometer.training.models import Array32


class Watcher:
    """Sees nothing and does nothing; adversaries override what their threat model grants."""

    def contribute(self, step: int, gradient_sum: Array32, rng: np.random.Generator) -> None:
        """Before the noise: may add a crafted gradient of norm ≤ clip_norm to the sum, in place."""

    def observe(self, step: int, noisy_sum: Array32) -> None:
        """After the noise: what an observer of the training can compute from two successive models."""

    def finish(self, parameters: Array32) -> None:
        """The final model."""
