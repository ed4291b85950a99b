"""Simulated audits: scores of two worlds whose ROC curve is a given claim's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epsilometer.claims import Claim
from epsilometer.evidence import PairedRuns

if TYPE_CHECKING:
    from epsilometer.bounds.method import Method


def draw_worlds(
    truth: Claim, out_trials: int, in_trials: int, rng: np.random.Generator, group_size: int = 1
) -> PairedRuns:
    """Scores of an attack that attains `truth` exactly: each is minus the false-positive rate beyond it.

    Out-scores are uniform; an in-score lies where the ROC reaches a uniform number. Claims are symmetric, so that
    the inverse of g is u = 1 − g(1 − v).

    >>> from epsilometer.claims import PointClaim
    >>> draw_worlds(PointClaim(1.0), 3, 2, np.random.default_rng(0))
    PairedRuns(3 out, 2 in, add-remove)
    """
    out = rng.random(out_trials)
    member = 1.0 - truth.max_tpr(1.0 - rng.random(in_trials))
    return PairedRuns(-out, -member, truth.neighbours, group_size)


def share_refuted(
    method: Method,
    claim: Claim,
    truth: Claim,
    out_trials: int,
    in_trials: int,
    confidence: float,
    group_size: int,
    repetitions: int = 200,
    seed: int = 0,
) -> float:
    """The share of simulated audits of an attack that attains `truth` in which `method` refutes `claim`."""
    rng = np.random.default_rng(seed)
    refuted = sum(
        method.test(draw_worlds(truth, out_trials, in_trials, rng, group_size), claim, confidence=confidence).refuted
        for _ in range(repetitions)
    )
    return refuted / repetitions
