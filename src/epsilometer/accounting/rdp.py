"""Rényi differential privacy (Mironov 2017), with the improved and with the classic conversion to (ε, δ)."""

from __future__ import annotations

import functools
import logging
import math

import numpy as np

from epsilometer.accounting.mechanism import DpSgd
from epsilometer.accounting.renyi import log_moment
from epsilometer.arrays import Floats
from epsilometer.claims import Relation

# The orders that Opacus and dp-accounting use; every set of orders gives a valid bound.
ORDERS = np.array([1 + x / 10 for x in range(1, 110)] + [float(a) for a in range(12, 64)] + [128.0, 256.0, 512.0])


@functools.lru_cache(maxsize=64)
def _divergences(mechanism: DpSgd, relation: Relation) -> tuple[np.ndarray, np.ndarray]:
    """Orders, and the exact Rényi divergence of the whole training at each."""
    q, sigma = mechanism.sample_rate, mechanism.noise_multiplier
    orders = ORDERS[max(2.0, 1500.0 * sigma) >= ORDERS]  # with little noise only small orders matter
    moments = np.array([log_moment(float(a), q, sigma, relation) for a in orders])
    return orders, mechanism.steps * moments / (orders - 1.0)


def epsilon(mechanism: DpSgd, delta: float, relation: Relation) -> float:
    """ε by the improved conversion (Canonne, Kamath & Steinke 2020), as dp-accounting does it."""
    if delta == 0 or mechanism.noise_multiplier == 0:
        return math.inf
    import dp_accounting  # half a second: only when it is needed
    from dp_accounting import rdp

    if relation is Relation.REPLACE:  # which dp-accounting's RDP does not know for Poisson samples
        return float(rdp.compute_epsilon(*_divergences(mechanism, relation), delta)[0])
    logging.getLogger("absl").setLevel(logging.ERROR)  # it warns of every order that it leaves out
    accountant = rdp.RdpAccountant()
    event = dp_accounting.GaussianDpEvent(mechanism.noise_multiplier)
    if mechanism.sample_rate < 1:
        event = dp_accounting.PoissonSampledDpEvent(mechanism.sample_rate, event)
    accountant.compose(event, mechanism.steps)
    return float(accountant.get_epsilon(delta))


def epsilon_classic(mechanism: DpSgd, delta: float, relation: Relation) -> float:
    """ε = min over orders a of rdp(a) + ln(1/δ)/(a − 1) (Mironov 2017), as papers before 2020 state it.

    From exact divergences: dp-accounting's carry some slack at fractional orders (7.968 for 7.964 here).

    >>> round(epsilon_classic(DpSgd(250 / 6000, 1.01, 576), 1e-5, Relation.ADD_REMOVE), 3)
    7.964
    """
    if delta == 0:
        return math.inf
    orders, divergences = _divergences(mechanism, relation)
    return float(np.min(divergences + math.log(1.0 / delta) / (orders - 1.0)))


def converted(orders: Floats, divergences: Floats, delta: float | Floats) -> Floats:
    """ε at δ from Rényi divergences, orders along the first axis, by the improved conversion; for many at once, which
    may have a δ each.

    >>> sigma, orders = 1.0, np.arange(2.0, 64.0)
    >>> converted(orders, orders[:, None] * np.array([[1.0, 0.25]]) / (2 * sigma**2), 1e-5).round(3).tolist()
    [4.753, 2.168]
    """
    a = np.asarray(orders, np.float64).reshape(-1, *[1] * (np.ndim(divergences) - 1))
    with np.errstate(divide="ignore"):  # δ = 0 has no finite ε
        epsilons = divergences + np.log1p(-1.0 / a) - (np.log(delta) + np.log(a)) / (a - 1.0)
    best: Floats = np.maximum(np.min(epsilons, axis=0), 0.0)
    return best
