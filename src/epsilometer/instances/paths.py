"""Whole trainings composed by what they cost a record along their way: Hölder's inequality, used once.

Thudi et al. (2024) use it at every step, so that orders grow with each one, and every step has the trainings that cost
most *there* (`composition`). Once is enough. Let r_t be the ratio of densities of step t in both worlds (with the
record to without it), R their product, and M_t(a) ≥ 1 the moment of order a at the model before step t, the larger of
both directions: E_Y[r_t^a | past] ≤ M_t(a), and E_X[r_t^−a | past] ≤ M_t(a). With trainings X on the data with the
record, and 1/p + 1/p' = 1:

- from without to with: e^((α−1)·D_α(Y‖X)) = E_X[R^−α]. Let a = αp' and N = Π r_t^−a / M_t(a), a supermartingale under
  X that starts at 1, so E_X[N] ≤ 1. Since R^−α = N^(1/p') · Π M_t(a)^(1/p'), Hölder gives
  (α−1)·D_α(Y‖X) ≤ (1/p)·ln E_X[exp((p−1)·Σ_t ln M_t(a))];
- from with to without: e^((α−1)·D_α(X‖Y)) = E_X[R^(α−1)], and E_X[r_t^c | past] = E_Y[r_t^(c+1) | past] ≤ M_t(c + 1).
  The same with c = (α−1)p' has M_t at order 1 + (α−1)p' ≤ αp': the bound above holds for this direction too.

So trainings *with* the record bound both directions. If all trainings cost the record the same, the bound tends to that
cost with growing p: there is no price for the number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from epsilometer.accounting import converted
from epsilometer.arrays import Floats

Paths = Callable[[float], Floats]  # order → Σ_t ln M_t of each training: trainings × records
ORDERS = (*range(2, 17), 18, 20, 22, 24, 28, 32, 40, 48, 64, 96, 128, 192, 256)  # a, of moments of steps
POWERS = (1.25, 1.5, 2.0, 3.0, 5.0, 9.0, 17.0, 33.0, 65.0, 257.0, 1025.0)  # p
MOST_SPREAD = 1.0  # of what a mean is taken of: its standard deviation, divided by its mean


def expected_moments(costs: Floats, p: float) -> Floats:
    """(α−1)·D_α of the whole training, α = a·(p−1)/p, from what trainings with the record cost at order a.

    The mean over these trainings stands for the expectation, which makes it an estimate.

    >>> expected_moments(np.array([[2.0, 1.0], [2.0, 3.0]]), p=5.0).round(3).tolist()
    [1.6, 2.261]
    """
    found: Floats = (special.logsumexp((p - 1.0) * costs, axis=0) - math.log(len(costs))) / p
    return found


def spreads(costs: Floats, p: float) -> Floats:
    """How unlike each other the values are whose mean `expected_moments` takes: their standard deviation / mean.

    The mean of n values is known to about this, divided by √n. Where it is large, the mean is that of the one training
    that cost most, and says nothing about trainings that were not seen.
    """
    count = len(costs)
    if count == 1:
        return np.zeros(costs.shape[1:])  # nothing is known
    powers = (p - 1.0) * costs
    squares = special.logsumexp(2.0 * powers, axis=0) + math.log(count) - 2.0 * special.logsumexp(powers, axis=0)
    return np.asarray(np.sqrt(np.maximum(np.expm1(squares), 0.0) * count / (count - 1.0)))


def expected_epsilons(paths: Paths, delta: float, *, order: float | None = None, p: float | None = None) -> Floats:
    """ε of each record in expectation over trainings: an estimate, the least over orders and p; infinite if none does.

    Where p is searched, only those count whose mean is one of several trainings (`MOST_SPREAD`). Without that the
    search would always end at the largest p, where the mean of any number of trainings is the most costly one of them,
    and the estimate would promise that no other training ever costs more.
    """
    best: Floats = np.asarray(np.inf)
    for a, powers in _ways(order, p).items():
        costs = paths(a)
        for power in powers:
            found = _epsilons(a * (power - 1.0) / power, expected_moments(costs, power), delta)
            if p is None:
                found = np.where(spreads(costs, power) <= MOST_SPREAD, found, np.inf)
            best = np.minimum(best, found)
    return best


def _ways(order: float | None, p: float | None) -> dict[float, list[float]]:
    """Orders of steps, and p to each; α is above 1. What trainings cost at an order is summed up once for all p."""
    ways: dict[float, list[float]] = {}
    for power in POWERS if p is None else (p,):
        growth = power / (power - 1.0)
        for a in [float(a) for a in ORDERS if a > growth] if order is None else [order * growth]:
            ways.setdefault(a, []).append(power)
    return ways


def costliest_epsilons(paths: Paths, delta: float) -> Floats:
    """What the training cost each record that cost it most, of those seen: individual accounting of each of them."""
    each = [_epsilons(float(a), paths(float(a)), delta) for a in ORDERS]
    return np.asarray(np.min(each, axis=0).max(axis=0))


def _epsilons(order: float, log_moments: Floats, delta: float) -> Floats:
    return converted(np.array([order]), log_moments[None] / (order - 1.0), delta)
