"""Regularised empirical risk of a linear model, on records whose size is stated and enforced.

F(θ) = (1/n)Σ L(θ·x_i, y_i) + ½λ‖θ‖². Records are clipped to `data_norm` (and targets of regressions to `target_norm`):
limits that are known beforehand, never taken from the data. A model with an intercept has one more feature, which is
the same for all records and **regularised like the others**: with a free intercept F is not strongly convex, and no
limit on what a record can do follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms.erm.losses import Loss

LARGEST = 1e100  # of norms and λ: products of a few of them are numbers yet


@dataclass(frozen=True)
class Problem:
    """Loss, λ, and how large records can be; `intercept` is the value of the constant feature, 0 for none.

    >>> from epsilometer.mechanisms.erm import Logistic
    >>> problem = Problem(Logistic(), regularisation=0.1, data_norm=3.0, intercept=4.0)
    >>> problem.record_norm, problem.lipschitz(), problem.smoothness
    (5.0, 5.0, 6.25)
    """

    loss: Loss
    regularisation: float
    data_norm: float = 1.0
    target_norm: float = math.inf
    intercept: float = 0.0

    def __post_init__(self) -> None:
        validate.instance("loss", self.loss, Loss, "a loss such as Logistic()")
        validate.real("regularisation", self.regularisation, above=0, below=LARGEST, closed="[")
        remedy = "it is known beforehand, and records are clipped to it"
        validate.real("data_norm", self.data_norm, above=0, below=LARGEST, remedy=remedy)
        validate.real("target_norm", self.target_norm, above=0, closed="]", remedy="inf, if the loss needs no limit")
        validate.real("intercept", self.intercept, above=0, below=LARGEST, closed="[")

    @property
    def record_norm(self) -> float:
        """The largest norm of a row, its constant feature included."""
        return math.hypot(self.data_norm, self.intercept)

    def lipschitz(self, radius: float = math.inf) -> float:
        """How long the gradient of one record's loss can be, at models of norm `radius` at most."""
        return self.loss.steepest(self.record_norm * radius, self.target_norm) * self.record_norm

    @property
    def smoothness(self) -> float:
        """How fast that gradient can change: the largest curvature of one record's loss."""
        return self.loss.curvature_limit * self.record_norm**2

    def optimum_norm(self) -> float:
        """A limit on the norm of the optimum, from F(optimum) ≤ F(0); infinite if there is none."""
        if self.regularisation == 0:
            return math.inf
        most = float(self.loss.value(np.zeros(1), np.array([1.0 if self.loss.classifies else self.target_norm]))[0])
        return math.sqrt(2.0 * most / self.regularisation)

    def bounded(self, x: ArrayLike, y: ArrayLike, *, clip: bool = True) -> tuple[Floats, Floats]:
        """Rows, clipped and with their constant feature, and targets; `clip = False` is a flaw (see flaws.py)."""
        rows, targets = _numbers("x", x), _numbers("y", y)
        if rows.ndim != 2 or 0 in rows.shape:
            raise InvalidInput("x", f"array of shape {rows.shape}", "a table: at least one row and one column")
        if targets.shape != (len(rows),):
            raise InvalidInput("y", f"array of shape {targets.shape}", f"one target for each of {len(rows)} rows of x")
        if self.loss.classifies and not np.isin(targets, (-1.0, 1.0)).all():
            found = targets[~np.isin(targets, (-1.0, 1.0))][0]
            raise InvalidInput("y", float(found), "labels −1 and 1", "estimators take any two labels")
        if clip:
            rows = clipped(rows, self.data_norm)
            targets = targets if self.loss.classifies else np.clip(targets, -self.target_norm, self.target_norm)
        if self.intercept:
            rows = np.column_stack([rows, np.full(len(rows), self.intercept)])
        return rows, targets


def clipped(rows: Floats, norm: float) -> Floats:
    """Rows that are longer than `norm` are shortened to it.

    >>> clipped(np.array([[3.0, 4.0], [0.0, 0.5], [0.0, 0.0]]), 1.0).round(9).tolist()
    [[0.6, 0.8], [0.0, 0.5], [0.0, 0.0]]
    """
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=1e-300)  # squares of huge numbers are none
    norms = largest * np.linalg.norm(rows / largest, axis=1, keepdims=True)
    return np.where(norms > norm, rows / largest * (largest / np.maximum(norms, norm)) * norm, rows)


def _numbers(argument: str, values: ArrayLike) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(argument, values, "numbers") from None
    if not np.isfinite(numbers).all():
        raise InvalidInput(argument, "NaN or infinity", "finite numbers", "leave such records out, or fill them in")
    return numbers
