"""Minimisers of a regularised risk: Newton's method to a gradient of stated size, and gradient descent of stated
length.

Both give what a sensitivity can be proved for. A solver that stops when it likes (a number of iterations and a relative
tolerance on the objective) does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import EpsilometerError
from epsilometer.mechanisms.erm.losses import Loss

MOST_STEPS, HALVINGS = 500, 60
BLOCK = 2**20  # scores computed at a time


class NoOptimum(EpsilometerError):
    """No model with so small a gradient was found, and none may be released for it."""


@dataclass(frozen=True, eq=False)
class Risk:
    """Many objectives on the same records: (1/n)Σ w_i L(θ·x_i, y_i) + a·θ + ½Σ_j penalty_j θ_j².

    `weights` (how often a record occurs) and `linear` (a) have a row an objective, or one for all.
    """

    loss: Loss
    rows: Floats
    targets: Floats
    penalty: Floats  # of each coefficient
    weights: Floats
    linear: Floats

    @classmethod
    def of(
        cls,
        loss: Loss,
        rows: Floats,
        targets: Floats,
        penalty: Floats,
        *,
        weights: Floats | None = None,
        linear: Floats | None = None,
    ) -> Risk:
        counts = np.ones((1, len(rows))) if weights is None else np.atleast_2d(weights).astype(np.float64)
        shares = counts / counts.sum(axis=1, keepdims=True)
        slopes = np.zeros((1, rows.shape[1])) if linear is None else np.atleast_2d(linear)
        if weights is None and len(slopes) > 1:  # equal records are looked at once
            records, times = np.unique(np.column_stack([rows, targets]), axis=0, return_counts=True)
            rows, targets, shares = records[:, :-1], records[:, -1], times[None] / len(rows)
        return cls(loss, rows, targets, penalty, shares, slopes)

    def __len__(self) -> int:
        return max(len(self.weights), len(self.linear))

    def part(self, begin: int, end: int) -> Risk:
        weights = self.weights if len(self.weights) == 1 else self.weights[begin:end]
        linear = self.linear if len(self.linear) == 1 else self.linear[begin:end]
        return Risk(self.loss, self.rows, self.targets, self.penalty, weights, linear)

    def value(self, models: Floats) -> Floats:
        losses = self.loss.value(models @ self.rows.T, self.targets)
        linear = np.broadcast_to(self.linear, models.shape)
        total: Floats = (self.weights * losses).sum(1) + (linear * models + self.penalty * models**2 / 2.0).sum(1)
        return total

    def gradient(self, models: Floats) -> Floats:
        slopes = self.loss.slope(models @ self.rows.T, self.targets)
        found: Floats = (self.weights * slopes) @ self.rows + self.linear + self.penalty * models
        return found

    def hessian(self, models: Floats) -> Floats:
        curvatures = self.weights * self.loss.curvature(models @ self.rows.T, self.targets)
        size = len(self.penalty)
        if len(models) == 1 or len(self.rows) * size**2 > BLOCK:  # the products of all records would be too many
            return np.stack([(self.rows.T * one) @ self.rows for one in curvatures]) + np.diag(self.penalty)
        products = (self.rows[:, :, None] * self.rows[:, None, :]).reshape(len(self.rows), -1)
        return (curvatures @ products).reshape(-1, size, size) + np.diag(self.penalty)


def optimum(risk: Risk, tolerance: float) -> Floats:
    """A model an objective, at which the gradient's norm is `tolerance` at most."""
    block = max(1, BLOCK // len(risk.rows))
    parts = [_newton(risk.part(begin, begin + block), tolerance) for begin in range(0, len(risk), block)]
    return np.concatenate(parts)


def _newton(risk: Risk, tolerance: float) -> Floats:
    """Newton's method with halved steps, for all objectives at once; those that are done wait for the others."""
    models = np.zeros((len(risk), len(risk.penalty)))
    for _ in range(MOST_STEPS):
        gradients = risk.gradient(models)
        sizes = np.linalg.norm(gradients, axis=1)
        if (sizes <= tolerance).all():
            return models
        hessians = risk.hessian(models)
        jitter = 1e-14 * np.trace(hessians, axis1=1, axis2=2)[:, None, None] + 1e-14
        steps = np.linalg.solve(hessians + jitter * np.eye(models.shape[1]), gradients[:, :, None])[:, :, 0]
        models = _halved(risk, models, steps, gradients, sizes, sizes > tolerance)
    raise NoOptimum(
        f"the solver found no model with a gradient of norm {tolerance:.3g} ({sizes.max():.3g}, the last one): "
        "a larger regularisation or tolerance makes it possible"
    )


def _halved(risk: Risk, models: Floats, steps: Floats, gradients: Floats, sizes: Floats, moving: Floats) -> Floats:
    before, falls = risk.value(models), (gradients * steps).sum(axis=1)
    lengths = np.where(moving, 1.0, 0.0)
    for _ in range(HALVINGS):
        tried = models - lengths[:, None] * steps
        values = risk.value(tried)
        lower = values <= before - 1e-4 * lengths * falls
        # Near the optimum values are all the same to a computer, while gradients are not.
        same = values <= before + 1e-13 * (1.0 + np.abs(before))
        flatter = np.linalg.norm(risk.gradient(tried), axis=1) <= 0.5 * sizes
        wait = ~(lower | same & flatter) & (lengths > 0)
        if not wait.any():
            break
        lengths[wait] /= 2.0
    return models - lengths[:, None] * steps


def descended(risk: Risk, step_size: float, steps: int) -> Floats:
    """Gradient descent from 0, of so many steps and no fewer."""
    models = np.zeros((len(risk), len(risk.penalty)))
    for _ in range(steps):
        models = models - step_size * risk.gradient(models)
    return models
