"""What a promise means for one person whose record is in the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims import Claim
from epsilometer.figures import Table

PRIORS = (0.5, 0.1, 0.01)
RATES = (0.01, 0.001)  # false-positive rates at which attacks are compared
_GRID = np.unique(np.concatenate([[0.0], np.geomspace(1e-9, 1e-3, 200), np.linspace(1e-3, 1.0, 2000)]))


def best_accuracy(claim: Claim, prior: float = 0.5) -> float:
    """How often the best attacker is right who thinks beforehand that the record is there with probability `prior`.

    >>> from epsilometer.claims import PointClaim
    >>> round(best_accuracy(PointClaim(math.log(3))), 4)  # e^ε/(1 + e^ε)
    0.75
    """
    rates = _GRID
    for _ in range(3):  # between the neighbours of the best one, once more
        right = _right(claim, rates, prior)
        best = int(np.argmax(right))
        rates = np.linspace(rates[max(best - 1, 0)], rates[min(best + 1, len(rates) - 1)], 200)
    return float(_right(claim, rates, prior).max())


def _right(claim: Claim, fpr: Floats, prior: float) -> Floats:
    return prior * claim.max_tpr(fpr) + (1.0 - prior) * (1.0 - fpr)


def believed(epsilon: float, prior: float) -> float:
    """What somebody may believe at most after seeing the outcome, who believed `prior` before; but for probability δ.

    >>> round(believed(math.log(3), 0.5), 4)
    0.75
    """
    if math.isinf(epsilon):
        return 1.0
    return prior / (prior + (1.0 - prior) * math.exp(-epsilon))


def means(label: str, claim: Claim, delta: float) -> dict[str, Any]:
    """All of it for one promise."""
    epsilon = claim.epsilon_at(delta)
    return {
        "label": label,
        "epsilon": epsilon,
        "accuracy": best_accuracy(claim),
        "odds": math.exp(epsilon) if epsilon < 700 else math.inf,
        "believed": [believed(epsilon, prior) for prior in PRIORS],
        "tpr": [float(claim.max_tpr(rate)) for rate in RATES],
    }


def promise_table(promises: Sequence[dict[str, Any]]) -> Table:
    """For people: a column for each promise, and what it allows at most, rounded up."""
    rows = [
        ("right at most, starting from 50 : 50, on average", *(_percent(one["accuracy"]) for one in promises)),
        ("odds, after the most telling outcome", *(f"1 : 1 → {_odds(float(one['odds']))} : 1" for one in promises)),
    ]
    for i, prior in enumerate(PRIORS):
        after = f"belief after the most telling outcome, from {100 * prior:g} %"
        rows.append((after, *(_percent(one["believed"][i]) for one in promises)))
    for i, rate in enumerate(RATES):
        rows.append((f"TPR at FPR {100 * rate:g} %", *(_percent(one["tpr"][i]) for one in promises)))
    return Table(("if this is promised", *(one["label"] for one in promises)), tuple(rows))


def _percent(share: float) -> str:
    """Rounded up, and 100 % only where nothing is left."""
    shown = math.ceil(share * 1000 - 1e-6) / 10
    return f"{shown:g} %" if shown < 100 or share >= 1.0 else "over 99.9 %"


def _odds(odds: float) -> str:
    return "∞" if math.isinf(odds) else f"{odds:.3g}" if odds < 1e6 else f"{odds:.1e}"
