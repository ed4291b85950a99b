"""Logistic regression with a ridge penalty that is chosen on held-out examples, by Newton's method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from epsilometer.arrays import Floats

PENALTIES, FOLDS, NEWTON_STEPS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0), 5, 15


def fitted_logistic(x: Floats, worlds: NDArray[np.int64]) -> Floats:
    """Weights, the intercept last; examples of both worlds must alternate."""
    held_out = np.arange(len(worlds)) // 2 % FOLDS == 0  # pairs of both worlds
    best = min(PENALTIES, key=lambda penalty: _loss(x, worlds, held_out, penalty))
    return logistic_weights(x, worlds, best)


def _loss(x: Floats, worlds: NDArray[np.int64], held_out: NDArray[np.bool_], penalty: float) -> float:
    """Of a model that was fitted on the rest."""
    weights = logistic_weights(x[~held_out], worlds[~held_out], penalty)
    margins = (x[held_out] @ weights[:-1] + weights[-1]) * (2 * worlds[held_out] - 1)
    return float(np.mean(np.logaddexp(0.0, -margins)))


def logistic_weights(x: Floats, worlds: NDArray[np.int64], penalty: float) -> Floats:
    """Weights for one penalty, the intercept last."""
    wide = np.column_stack([x, np.ones(len(x))])
    weights, ridge = np.zeros(wide.shape[1]), penalty * len(x) * np.eye(wide.shape[1])
    for _ in range(NEWTON_STEPS):
        chance = special.expit(wide @ weights)
        slope = wide.T @ (chance - worlds) + ridge @ weights
        curvature = (wide.T * (chance * (1.0 - chance) + 1e-9)) @ wide + ridge
        weights -= np.linalg.solve(curvature, slope)
    return weights
