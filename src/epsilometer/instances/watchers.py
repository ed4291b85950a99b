"""What is noted while the own engine trains: norms of clipped gradients, models on the way, batches' own means."""

from __future__ import annotations

from typing import cast

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.data import Dataset
from epsilometer.training import Array, ModuleNetwork, Network, Recipe, Watcher, record_losses
from epsilometer.training.sampling import sample
from epsilometer.training.threefry import trial_key


class ClippedNorms(Watcher):
    """‖clipped gradient‖ / C of some records at the model before every step, or every few; sampled or not, since a
    record's cost is counted for the coin that might have taken it. Of the last layer only it is cheaper, and less."""

    stepwise = True

    def __init__(
        self,
        recipe: Recipe,
        network: Network | ModuleNetwork,
        records: Dataset,
        every: int = 1,
        last_layer: bool = False,
    ) -> None:
        self._recipe, self._network, self._records, self._every = recipe, network, records, every
        self._x, self._last_layer = records.x.astype(recipe.precision), last_layer
        self._rows: list[Floats] = []
        self._losses, self._right = np.zeros(len(records)), np.zeros(len(records))

    def before(self, step: int, parameters: Array) -> None:
        if step % self._every == 0:
            self._rows.append(np.minimum(self._norms(parameters) / self._recipe.clip_norm, 1.0))

    def _norms(self, parameters: Array) -> Array:
        recipe, network = self._recipe, self._network
        if self._last_layer and network.fully_connected:
            return cast(Network, network).last_layer_norms(parameters, self._x, self._records.y)
        return network.clipped_norms(parameters, self._x, self._records.y, recipe.clip_norm, recipe.clipping)

    def finish(self, parameters: Array, projections: Floats) -> None:
        self._losses, self._right = losses_and_right(self._recipe, self._network, parameters, self._records)

    @property
    def shares(self) -> Floats:
        """A row a step that was looked at, a column a record."""
        return np.array(self._rows)

    @property
    def end(self) -> Floats:
        """Of the final model: each record's loss, and 1 where it gets the record right."""
        return np.array([self._losses, self._right])


class MeanUpdates(Watcher):
    """Divides the sum of a batch by the batch's own size before noise is added, and keeps models on the way."""

    stepwise = True

    def __init__(self, recipe: Recipe, records: int, seed: np.random.SeedSequence, every: int) -> None:
        self._recipe, self._records, self._key, self._every = recipe, records, trial_key(seed), every
        self.models: list[Array] = []

    def before(self, step: int, parameters: Array) -> None:
        if step % self._every == 0:
            self.models.append(parameters.copy())

    def contribute(self, step: int, gradient_sum: Array) -> None:
        size = len(sample(self._recipe, self._key, step, self._records))
        gradient_sum /= max(size, 1)


def losses_and_right(
    recipe: Recipe, network: Network | ModuleNetwork, parameters: Array, records: Dataset
) -> tuple[Floats, Floats]:
    """Each record's loss, and whether the model gets it right."""
    logits = network.logits(parameters, records.x.astype(parameters.dtype))
    losses = record_losses(logits, records.y, recipe.loss)
    return losses, (np.argmax(logits, axis=1) == records.y).astype(np.float64)
