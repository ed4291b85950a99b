"""What an adversary may see and do during a training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.training.models import Array, Labels


class Poisoner(Protocol):
    """Makes the record of one row anew before every step whose batch has it, for many trainings at once."""

    row: int

    def records(self, steps: NDArray[np.int64], parameters: Array) -> tuple[Array, Labels]:
        """A record and a label for each of several trainings, which are before these steps and at these models (rows).

        None may depend on the others: which trainings stand side by side is chance.
        """


class Watcher:
    """Sees nothing and does nothing; adversaries override what their threat model grants.

    Two powers cost next to nothing, since compiled loops have them built in: `inserted`, a crafted gradient of
    norm ≤ clip_norm that is sampled like one more record, and `probe`, a direction on which every noisy sum is
    projected. So has `start`, the weights that the training starts from, where the adversary may choose them, and
    `rows`, those records of the data that the training has, in this order (left out: all). A watcher
    that wants to act in every step says so (`stepwise`) and pays for it; only such a one may have a `poisoner`, which
    is shared by the watchers of all trainings that it makes records for.
    """

    inserted: Array | None = None
    probe: Array | None = None
    start: Array | None = None
    rows: NDArray[np.int64] | None = None
    poisoner: Poisoner | None = None
    stepwise: bool = False

    def before(self, step: int, parameters: Array) -> None:
        """Before a step (if `stepwise`): the model at which its gradients will be taken (a view)."""

    def contribute(self, step: int, gradient_sum: Array) -> None:
        """Before the noise (if `stepwise`): may change the sum of clipped gradients, in place."""

    def observe(self, step: int, noisy_sum: Array, parameters: Array) -> bool:
        """After a step (if `stepwise`): the noisy sum and the new model; True ends the training here.

        Both are views: copy what you keep.
        """
        return False

    def finish(self, parameters: Array, projections: Floats) -> None:
        """The final model (a view), and ⟨noisy sum, probe⟩ of every step (empty without a probe)."""


class Every(Watcher):
    """Shows the model after every `steps` steps to somebody: `look(steps taken, parameters)`, which are a view."""

    stepwise = True

    def __init__(self, steps: int, look: Callable[[int, Array], None]) -> None:
        self._steps, self._look = validate.whole("steps", steps, least=1), look

    def observe(self, step: int, noisy_sum: Array, parameters: Array) -> bool:
        if (step + 1) % self._steps == 0:
            self._look(step + 1, parameters)
        return False
