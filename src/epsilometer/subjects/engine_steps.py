"""What the own DP-SGD offers: its noisy steps, its network at every model, and its recipe."""

from __future__ import annotations

import functools

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.data import Dataset
from epsilometer.subjects.capabilities import KnowsNetwork, KnowsRecipe, NoisySteps
from epsilometer.training import Array, Labels, ModuleNetwork, Network, Recipe, Watcher, network_for, train


class EngineSteps(NoisySteps, KnowsNetwork, KnowsRecipe):
    """All that the own DP-SGD offers to those who know its recipe and data.

    Its network is made when somebody asks for it: a plan asks what is offered before torch may be loaded.
    """

    def __init__(self, recipe: Recipe, data: Dataset) -> None:
        self.recipe, self._data = recipe, data
        self.clip_norm, self.noise_multiplier = recipe.clip_norm, recipe.noise_multiplier
        self.sample_rate, self.steps, self.sampling = recipe.sample_rate, recipe.steps, recipe.sampling

    @functools.cached_property
    def network(self) -> Network | ModuleNetwork:  # type: ignore[override]
        return network_for(self.recipe, self._data)

    @functools.cached_property
    def width(self) -> int:  # type: ignore[override]
        return self.network.parameters

    def logits(self, parameters: Array, x: Array) -> Array:
        return self.network.logits(parameters, x.astype(parameters.dtype, copy=False))

    def clipped_sum(self, parameters: Array, x: Array, y: Labels) -> Array:
        records = x.astype(parameters.dtype, copy=False)
        return self.network.clipped_gradient_sum(parameters, records, y, self.clip_norm, self.recipe.clipping)

    def clipped_products(self, parameters: Array, x: Array, y: Labels, along: Array) -> Floats:
        records = x.astype(parameters.dtype, copy=False)
        return self.network.clipped_products(parameters, records, y, along, self.clip_norm, self.recipe.clipping)

    def expected_sum(self, data: Dataset, parameters: Array) -> Array:
        return self.sample_rate * self.clipped_sum(parameters, data.x, data.y)

    def natural_movement(self, data: Dataset, seed: np.random.SeedSequence) -> Floats:
        movement = _Movement(self.width)
        train(self.recipe, data, seed, movement)
        return movement.total / self.steps


class _Movement(Watcher):
    """How much natural gradients move each parameter."""

    stepwise = True

    def __init__(self, parameters: int) -> None:
        self.total = np.zeros(parameters)

    def contribute(self, step: int, gradient_sum: Array) -> None:
        self.total += np.abs(gradient_sum)
