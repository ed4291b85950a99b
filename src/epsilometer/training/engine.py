"""DP-SGD, plain and exact: one training, top to bottom."""

from __future__ import annotations

import numpy as np

from epsilometer.data import Dataset
from epsilometer.errors import EpsilometerError
from epsilometer.training.models import Array32, Network
from epsilometer.training.recipe import Recipe
from epsilometer.training.watchers import Watcher


class TrainingDiverged(EpsilometerError):
    """Parameters are no longer finite."""


def network_for(recipe: Recipe, data: Dataset) -> Network:
    """The recipe's model for this data."""
    hidden = (recipe.hidden,) if recipe.model == "two-layer" else ()
    return Network((data.x.shape[1], *hidden, data.classes))


def initial_parameters(recipe: Recipe, data: Dataset, rng: np.random.Generator) -> Array32:
    """Where the training starts: the same for every trial, or drawn from the trial's own randomness."""
    source = np.random.default_rng(recipe.init_seed) if recipe.initialisation == "fixed" else rng
    return network_for(recipe, data).initial(source, recipe.init_scale)


def train(
    recipe: Recipe,
    data: Dataset,
    rng: np.random.Generator,
    watcher: Watcher | None = None,
    noise_scale: float = 1.0,
) -> Array32:
    """Train once and return the flat parameters. All randomness comes from `rng`.

    `noise_scale` is a fault to inject: it multiplies the noise that is really added, and nothing else.
    """
    watcher = watcher or Watcher()
    network = network_for(recipe, data)
    parameters = initial_parameters(recipe, data, rng)
    spread = np.float32(recipe.noise_multiplier * recipe.clip_norm * noise_scale)
    rate = np.float32(recipe.learning_rate / recipe.expected_batch)
    with np.errstate(over="ignore", invalid="ignore"):  # divergence is looked for at the end
        for step in range(recipe.steps):
            sample = poisson_sample(rng, len(data), recipe.sample_rate)
            total = network.clipped_gradient_sum(parameters, data.x[sample], data.y[sample], recipe.clip_norm)
            watcher.contribute(step, total, rng)
            total += spread * rng.standard_normal(total.shape, dtype=np.float32)
            watcher.observe(step, total)
            parameters -= rate * total
    if not np.isfinite(parameters).all():
        raise TrainingDiverged(
            f"learning_rate = {recipe.learning_rate:g}: the training diverged; lower the learning rate"
        )
    watcher.finish(parameters)
    return parameters


def poisson_sample(rng: np.random.Generator, records: int, sample_rate: float) -> np.ndarray:
    """Each record independently with probability `sample_rate`; possibly none."""
    return np.flatnonzero(rng.random(records) < sample_rate)
