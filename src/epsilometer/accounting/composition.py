"""Composition theorems from before the moments accountant: basic, and strong (Dwork et al. 2010)."""

from __future__ import annotations

import math

import numpy as np

from epsilometer.accounting.mechanism import DpSgd
from epsilometer.claims import GaussianClaim
from epsilometer.neighbours import Relation, sensitivity

STRONG_CAVEAT = "as Abadi et al. (2016) draw it: q·ε of a step is an approximation, not a proof, unless ε ≪ 1"


def basic_epsilon(mechanism: DpSgd, delta: float, relation: Relation) -> float:
    """T times the ε of a step: exact Gaussian mechanism, amplified by sampling, δ shared evenly.

    Amplification: ln(1 + q(e^ε − 1)) with qδ (Balle, Barthe & Gaboardi 2018); under `replace` it needs the
    step's ε for all of present/absent/replaced, which the doubled sensitivity covers.
    """
    q, steps = mechanism.sample_rate, mechanism.steps
    if mechanism.noise_multiplier == 0 or delta == 0:
        return math.inf
    step_delta = min(delta / (steps * q), 0.5)
    full = GaussianClaim(sensitivity(relation) / mechanism.noise_multiplier).epsilon_at(step_delta)
    amplified = full + math.log(q) if full > 700 else math.log1p(q * math.expm1(full))
    return steps * max(amplified, 0.0)


def strong_epsilon(mechanism: DpSgd, delta: float, relation: Relation) -> float:
    """ε√(2T ln 1/δ') + Tε(e^ε − 1) with ε = q·√(2 ln(1.25/δ₀))/σ a step, δ split between δ' and T·q·δ₀.

    >>> round(strong_epsilon(DpSgd(0.01, 4.0, 10_000), 1e-5, Relation.ADD_REMOVE), 3)
    9.353
    """
    q, sigma, steps = mechanism.sample_rate, mechanism.noise_multiplier, mechanism.steps
    if sigma == 0 or delta == 0:
        return math.inf
    share = np.linspace(0.0, 1.0, 2001)[1:-1]  # of δ, for δ'
    step_delta = np.minimum((1.0 - share) * delta / (steps * q), 1.0)
    step = q * sensitivity(relation) * np.sqrt(2.0 * np.log(1.25 / step_delta)) / sigma
    with np.errstate(over="ignore"):
        total = step * np.sqrt(2.0 * steps * np.log(1.0 / (share * delta))) + steps * step * np.expm1(step)
    return float(np.min(total))
