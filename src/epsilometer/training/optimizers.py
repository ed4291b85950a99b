"""What is done with a noisy mean gradient. All of it is post-processing: it costs no privacy."""

from __future__ import annotations

import numpy as np

from epsilometer.training.models import Array
from epsilometer.training.recipe import Recipe

ADAM_BETAS, ADAM_STABILITY = (0.9, 0.999), 1e-8


class Optimizer:
    """A recipe's optimizer, with its memory; the slow, obvious twin of compiled.noisy_step."""

    def __init__(self, recipe: Recipe, parameters: Array) -> None:
        self._recipe, self._rates = recipe, recipe.learning_rates()
        self._first, self._second = np.zeros_like(parameters), np.zeros_like(parameters)

    def step(self, step: int, parameters: Array, noisy_sum: Array) -> None:
        """Change the parameters in place."""
        recipe, real = self._recipe, parameters.dtype.type
        gradient = noisy_sum * real(1.0 / recipe.expected_batch) + real(recipe.weight_decay) * parameters
        if recipe.optimizer == "momentum":
            self._first = real(recipe.momentum) * self._first + gradient
            gradient = self._first
        elif recipe.optimizer == "adam":
            one, two = ADAM_BETAS
            self._first = real(one) * self._first + real(1 - one) * gradient
            self._second = real(two) * self._second + real(1 - two) * gradient * gradient
            mean, square = self._first / real(1 - one ** (step + 1)), self._second / real(1 - two ** (step + 1))
            gradient = mean / (np.sqrt(square) + real(ADAM_STABILITY))
        parameters -= real(self._rates[step]) * gradient
