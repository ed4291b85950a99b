"""DP-SGD in plain numpy: the slow, obvious twin of the compiled loop, and its stand-in where numba is missing."""

from __future__ import annotations

import numpy as np

from epsilometer.claims import Floats
from epsilometer.data import Dataset
from epsilometer.training import threefry
from epsilometer.training.models import Array, Network
from epsilometer.training.modules import ModuleNetwork
from epsilometer.training.optimizers import Optimizer
from epsilometer.training.recipe import Recipe
from epsilometer.training.sampling import sample
from epsilometer.training.threefry import Words
from epsilometer.training.watchers import Watcher


def train_one(
    recipe: Recipe,
    network: Network | ModuleNetwork,
    data: Dataset,
    key: Words,
    start: Array,
    watcher: Watcher,
    noise_scale: float,
) -> tuple[Array, Floats]:
    """One training: final parameters and projections."""
    parameters, optimizer = start.copy(), Optimizer(recipe, start)
    x, y = data.x.astype(parameters.dtype), data.y.copy()
    spread = parameters.dtype.type(recipe.noise_multiplier * recipe.clip_norm * noise_scale)
    projections = np.zeros(recipe.steps if watcher.probe is not None else 0)
    for step in range(recipe.steps):
        rows = sample(recipe, key, step, len(data))
        asked = watcher.stepwise and (watcher.replaced_row is None or watcher.replaced_row in rows)
        if asked and (replaced := watcher.replace_record(step, parameters)) is not None:
            row = replaced[0]
            x[row], y[row] = replaced[1:]
        total = network.clipped_gradient_sum(parameters, x[rows], y[rows], recipe.clip_norm, recipe.clipping)
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
