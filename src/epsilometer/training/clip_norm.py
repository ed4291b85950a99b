"""How to choose a clip norm (Abadi et al. 2016, section 5): the median of unclipped gradient norms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.training.engine import initial_parameters, network_for
from epsilometer.training.optimizers import Optimizer
from epsilometer.training.recipe import Recipe
from epsilometer.training.sampling import sample
from epsilometer.training.threefry import trial_key


def median_gradient_norm(recipe: Recipe, data: Dataset, seed: np.random.SeedSequence) -> float:
    """The median, over a training without clipping and noise, of all sampled records' gradient norms.

    It looks at the data without any noise, which no accountant counts: use public data, or say so, as the paper does.
    """
    network = network_for(recipe, data)
    key = trial_key(seed)
    parameters = initial_parameters(recipe, network, key)
    optimizer = Optimizer(replace(recipe, weight_decay=0.0), parameters)
    x, norms = data.x.astype(parameters.dtype), []
    with np.errstate(over="ignore", invalid="ignore"):  # divergence is looked for just below
        for step in range(recipe.steps):
            rows = sample(recipe, key, step, len(data))
            norms.append(network.gradient_norms(parameters, x[rows], data.y[rows]))
            optimizer.step(step, parameters, network.clipped_gradient_sum(parameters, x[rows], data.y[rows], np.inf))
    seen = np.concatenate(norms)
    if not seen.size:
        raise InvalidInput("sample_rate", recipe.sample_rate, "a rate at which some record is sampled", "raise it")
    median = float(np.median(seen))
    if not 0 < median < np.inf:
        expected = f"a rate with which gradients stay finite and do not vanish, unclipped (median {median:g})"
        raise InvalidInput("learning_rate", recipe.learning_rate, expected, "lower it, or say the clip norm")
    return median
