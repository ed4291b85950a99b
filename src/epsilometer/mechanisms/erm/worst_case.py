"""Neighbours that a private ERM tells apart as well as any: how much of a sensitivity is real.

For the smoothed hinge and Huber's loss 2L/(nλ) is reached exactly: a lone record on an axis of its own, with one label
or the other, pulls the optimum by L/(nλ) to either side while its slope stays at its steepest. The logistic loss is
nowhere that steep on both sides: with opposite records its slopes add up to 1 instead of 2. But two records at an
obtuse angle can both be far on the wrong side, if others pull the model there; `saturated_pair` comes near 2L/(nλ)
with that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms.erm.losses import Logistic
from epsilometer.mechanisms.erm.problem import Problem
from epsilometer.mechanisms.erm.solvers import Risk, optimum


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Records, and what takes the place of the first of them."""

    x: Floats
    y: Floats
    other_x: Floats
    other_y: float

    def replaced(self) -> tuple[Floats, Floats]:
        """The other world's records."""
        x, y = self.x.copy(), self.y.copy()
        x[0], y[0] = self.other_x, self.other_y
        return x, y


def lone_pair(problem: Problem, records: int, features: int = 1) -> Neighbours:
    """One record of full norm among zeros, with either label (for regressions, a target of 1 or −1).

    >>> from epsilometer.mechanisms.erm import OutputPerturbation, SmoothedHinge
    >>> private = OutputPerturbation(Problem(SmoothedHinge(), 0.1), epsilon=1.0)
    >>> pair = lone_pair(private.problem, records=50)
    >>> (private.fit(pair.x, pair.y) - private.fit(*pair.replaced())).round(6).item(), round(private.sensitivity(50), 6)
    (0.4, 0.4)
    """
    n, size = validate.whole("records", records, least=1), validate.whole("features", features, least=1)
    x = np.zeros((n, size))
    x[0, 0] = problem.data_norm
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return Neighbours(x, y, x[0].copy(), -1.0)


def saturated_pair(problem: Problem, records: int) -> Neighbours:
    """Two features; all records but one are small and lie along the first, and the two that differ lie at an angle to
    it.

    >>> from epsilometer.mechanisms.erm import OutputPerturbation
    >>> private = OutputPerturbation(Problem(Logistic(), 0.001), epsilon=1.0)
    >>> pair = saturated_pair(private.problem, records=2000)
    >>> moved = np.linalg.norm(private.fit(pair.x, pair.y) - private.fit(*pair.replaced()))
    >>> bool(moved > 0.9 * private.sensitivity(2000))
    True
    """
    if problem.loss.name != Logistic.name or problem.intercept:
        raise InvalidInput("problem", problem.loss.name, "the logistic loss without intercept", "use lone_pair")
    n = validate.whole("records", records, least=2)
    norm, best = problem.data_norm, (0.0, 1.0, 0.0)
    for size in np.geomspace(1e-3, 1.0, 31):
        for cosine in np.linspace(0.0, 0.98, 50):
            moved = _separation(problem, n, norm * size, cosine)
            best = max(best, (moved, norm * size, cosine))
    _, small, cosine = best
    x = np.tile([-small, 0.0], (n, 1))  # with label 1: they pull the first coefficient below 0
    sine = math.sqrt(1.0 - cosine**2)
    x[0] = norm * cosine, norm * sine
    return Neighbours(x, np.ones(n), np.array([norm * cosine, -norm * sine]), 1.0)


def _separation(problem: Problem, records: int, small: float, cosine: float) -> float:
    """How far apart the two optima are; they mirror each other."""
    point = problem.data_norm * np.array([cosine, math.sqrt(1.0 - cosine**2)])
    rows, weights = np.array([[-small, 0.0], point]), np.array([records - 1.0, 1.0])
    risk = Risk.of(problem.loss, rows, np.ones(2), np.full(2, problem.regularisation), weights=weights)
    return 2.0 * abs(float(optimum(risk, 1e-9 * problem.lipschitz())[0, 1]))
