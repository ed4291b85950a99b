"""DP-SGD in plain numpy: the slow, obvious twin of the compiled loop, and its stand-in where numba is missing."""

from __future__ import annotations

import numpy as np

from epsilometer.data import Dataset
from epsilometer.training import threefry
from epsilometer.training.models import Array, Network
from epsilometer.training.modules import ModuleNetwork
from epsilometer.training.optimizers import Optimizer
from epsilometer.training.recipe import Recipe
from epsilometer.training.sampling import sample
from epsilometer.training.side_by_side import Training
from epsilometer.training.threefry import Words
from epsilometer.training.watchers import Watcher


class PortableTrainer:
    """Trains by a recipe, one model at a time or several in turns."""

    def __init__(self, recipe: Recipe, noise_scale: float) -> None:
        self._recipe = recipe
        self._spread = recipe.noise_multiplier * recipe.clip_norm * noise_scale

    def train(
        self, network: Network | ModuleNetwork, data: Dataset, key: Words, start: Array, watcher: Watcher
    ) -> Training:
        """One training; waits for a record wherever a batch has the poisoner's row."""
        recipe, poisoner = self._recipe, watcher.poisoner
        parameters, optimizer = start.copy(), Optimizer(recipe, start)
        spread = parameters.dtype.type(self._spread)
        projections = np.zeros(recipe.steps if watcher.probe is not None else 0)
        for step in range(recipe.steps):
            if watcher.stepwise:
                watcher.before(step, parameters)
            rows = sample(recipe, key, step, len(data if watcher.rows is None else watcher.rows))
            rows = rows if watcher.rows is None else watcher.rows[rows]
            x, y = data.x[rows].astype(parameters.dtype), data.y[rows]
            if poisoner is not None and poisoner.row in rows:
                x[rows == poisoner.row], y[rows == poisoner.row] = yield step, parameters
            total = network.clipped_gradient_sum(parameters, x, y, recipe.clip_norm, recipe.clipping)
            if watcher.inserted is not None and threefry.tossed(key, step, recipe.sample_rate):
                total += watcher.inserted
            if watcher.stepwise:
                watcher.contribute(step, total)
            total += spread * threefry.normals(key, step, len(total)).astype(parameters.dtype)
            if watcher.probe is not None:
                projections[step] = total.astype(np.float64) @ watcher.probe
            optimizer.step(step, parameters, total)
            if watcher.stepwise and watcher.observe(step, total, parameters):
                break
        return parameters, projections
