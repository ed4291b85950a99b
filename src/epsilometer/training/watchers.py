"""What an adversary may see and do during a training."""

from __future__ import annotations

from typing import ClassVar

from epsilometer.claims import Floats
from epsilometer.training.models import Array


class Watcher:
    """Sees nothing and does nothing; adversaries override what their threat model grants.

    Two powers cost next to nothing, since compiled loops have them built in: `inserted`, a crafted gradient of
    norm ≤ clip_norm that is sampled like one more record, and `probe`, a direction on which every noisy sum is
    projected. A watcher that wants to act in every step says so (`stepwise`) and pays for it.
    """

    inserted: Array | None = None
    probe: Array | None = None
    stepwise: ClassVar[bool] = False

    def contribute(self, step: int, gradient_sum: Array) -> None:
        """Before the noise (if `stepwise`): may change the sum of clipped gradients, in place."""

    def observe(self, step: int, noisy_sum: Array) -> None:
        """After the noise (if `stepwise`): what follows from two successive models. A view: copy what you keep."""

    def finish(self, parameters: Array, projections: Floats) -> None:
        """The final model (a view), and ⟨noisy sum, probe⟩ of every step (empty without a probe)."""
