"""What an adversary may see and do during a training."""

from __future__ import annotations

from typing import ClassVar

from epsilometer.claims import Floats
from epsilometer.training.models import Array


class Watcher:
    """Sees nothing and does nothing; adversaries override what their threat model grants.

    Two powers cost next to nothing, since compiled loops have them built in: `inserted`, a crafted gradient of
    norm ≤ clip_norm that is sampled like one more record, and `probe`, a direction on which every noisy sum is
    projected. So has `start`, the weights that the training starts from, where the adversary may choose them. A watcher
    that wants to act in every step says so (`stepwise`) and pays for it.
    """

    inserted: Array | None = None
    probe: Array | None = None
    start: Array | None = None
    replaced_row: int | None = None
    stepwise: ClassVar[bool] = False

    def replace_record(self, step: int, parameters: Array) -> tuple[int, Array, int] | None:
        """Before a step (if `stepwise`): a row, and the record and label to put there from now on; or nothing.

        With `replaced_row`, only before steps whose batch has that row: nobody looks at it in others.
        """
        return None

    def contribute(self, step: int, gradient_sum: Array) -> None:
        """Before the noise (if `stepwise`): may change the sum of clipped gradients, in place."""

    def observe(self, step: int, noisy_sum: Array, parameters: Array) -> bool:
        """After a step (if `stepwise`): the noisy sum and the new model; True ends the training here.

        Both are views: copy what you keep.
        """
        return False

    def finish(self, parameters: Array, projections: Floats) -> None:
        """The final model (a view), and ⟨noisy sum, probe⟩ of every step (empty without a probe)."""
