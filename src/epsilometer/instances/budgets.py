"""Certified: what a record pays in all trainings but so rare ones that δ covers them (Feldman & Zrnic 2021).

Give a record a budget B(a) for each of some orders a, and stop a training before the first step that would make its
cost Σ ln M_t(a) exceed the budget at any of them. The stopped training has (a−1)·D_a ≤ B(a) in both directions: with
the indicators ξ_t of steps that are made, which the past decides, Π (r_t^a / M_t(a))^ξ_t is a supermartingale that
starts at 1, and Σ ξ_t ln M_t(a) ≤ B(a). So it is (ε, δ_B(ε))-private for this record, δ_B by conversion. It is the
real training unless it was stopped, and both worlds agree on when that is. Hence, with η the probability that a
training *with* the record is stopped, for every event A:

- P_X(A) ≤ P_X(A, not stopped) + η ≤ e^ε·P_Y(A) + δ_B(ε) + η;
- P_Y(A) ≤ e^ε·P_X(A) + δ_B(ε) + P_Y(stopped), where being stopped is itself something that the stopped training shows:
  P_Y(stopped) ≤ e^ε'·η + δ_B(ε') for every ε'.

η is a share of trainings, which is known from n of them to about 3/n. No other assumption is made. It takes some
e^ε'/δ trainings, as it must if anything may happen in one that nobody saw.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from epsilometer.accounting import converted
from epsilometer.arrays import Floats
from epsilometer.instances.paths import Paths

ORDERS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0)
MARGIN = 1.1  # by which a budget is above the largest cost of the pilot: too low a budget is exceeded, too high costs ε
PILOT = 4  # one training in so many chooses budgets, and the others certify them
_FIRST_EPSILONS = np.concatenate([np.linspace(0.0, 4.0, 81), np.linspace(4.25, 20.0, 64)])  # ε' that are tried


def budgets_of(pilot: Paths) -> Floats:
    """B(a) of each record from what it cost in other trainings: orders × records."""
    return MARGIN * np.array([pilot(a).max(axis=0) for a in ORDERS])


def exceeded(paths: Paths, budgets: Floats) -> NDArray[np.int64]:
    """In how many trainings each record cost more than its budget at some order."""
    over = [paths(a) > budget for a, budget in zip(ORDERS, budgets, strict=True)]
    return np.asarray(np.any(over, axis=0).sum(axis=0), np.int64)


def stopped_at_most(count: NDArray[np.int64] | int, trainings: int, confidence: float) -> Floats:
    """Upper confidence limit on η (Clopper & Pearson 1934)."""
    seen = np.asarray(count)
    limit = stats.beta.ppf(confidence, seen + 1, np.maximum(trainings - seen, 1))
    return np.where(seen >= trainings, 1.0, limit)


def epsilons_within(budgets: Floats, stopped: Floats, delta: float) -> Floats:
    """ε at δ of records with these budgets, if trainings are stopped with these probabilities; infinite if δ is less
    than what the stopped ones take of it.

    >>> budgets = np.array(ORDERS)[:, None] * (np.array(ORDERS)[:, None] - 1.0) * 0.02  # of a Gaussian with μ = 0.2
    >>> [epsilons_within(budgets, np.array([eta]), 1e-2).round(2).tolist() for eta in (0.0, 1e-3, 1e-2)]
    [[0.35], [0.37], [inf]]
    """
    spilled: Floats = np.asarray(np.inf)
    for epsilon in _FIRST_EPSILONS:
        spilled = np.minimum(spilled, np.exp(epsilon) * stopped + _deltas(budgets, epsilon))
    spilled = np.where(stopped > 0, spilled, 0.0)
    orders = np.array(ORDERS)[:, None]
    return converted(np.array(ORDERS), budgets / (orders - 1.0), np.maximum(delta - spilled, 0.0))


def certified_epsilons(pilot: Paths, rest: Paths, trainings: int, delta: float, confidence: float) -> Floats:
    """ε of each record, each with this confidence; `pilot` and `rest` are of disjoint trainings, the latter so many."""
    budgets = budgets_of(pilot)
    stopped = stopped_at_most(exceeded(rest, budgets), trainings, confidence)
    return epsilons_within(budgets, stopped, delta)


def trainings_wanted(pilot: Paths, delta: float, confidence: float, worst: float) -> int | None:
    """About how many trainings could certify an ε below the worst case for half of the records, if none of those costs
    more than the pilot's; none if a million millions could not."""
    budgets = budgets_of(pilot)
    for doublings in range(1, 41):
        trainings = 1 << doublings
        stopped = np.full(budgets.shape[1:], stopped_at_most(0, trainings - trainings // PILOT, confidence))
        if np.median(epsilons_within(budgets, stopped, delta)) < worst:
            return trainings
    return None


def _deltas(budgets: Floats, epsilon: float) -> Floats:
    """δ_B(ε): the conversion the other way round, the least over orders."""
    orders = np.array(ORDERS)[:, None]
    logs = budgets + (orders - 1.0) * (np.log1p(-1.0 / orders) - epsilon) - np.log(orders)
    return np.asarray(np.exp(np.minimum(logs.min(axis=0), 0.0)))
