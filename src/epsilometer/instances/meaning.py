"""What an ε of one's own means for a record: how well it can be told, guessed, and forgotten."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from epsilometer import validate
from epsilometer.arrays import Floats

CANDIDATES = 100  # an attacker who sees nothing names the record once in so many times
UNLEARNED = 1.0  # ε up to which a model may pass for one that never saw the record


def most_accurate(epsilons: ArrayLike, delta: float) -> Floats:
    """How often an attacker is right at most who asks whether the record was there, if both were equally likely.

    >>> float(most_accurate(np.log(3.0), 0.0))
    0.75
    """
    return 0.5 + 0.5 * most_memorised(epsilons, delta)


def most_memorised(epsilons: ArrayLike, delta: float) -> Floats:
    """By how much the record's own presence can change how often a model gets it right, or any other score in [0, 1]:
    the total variation that (ε, δ) leaves, (e^ε − 1 + 2δ)/(e^ε + 1) (Kairouz et al. 2015). Feldman (2020) calls that
    change memorisation."""
    given = np.asarray(epsilons, np.float64)
    validate.delta(delta)
    return np.asarray(np.minimum(np.tanh(given / 2.0) + 2.0 * delta / (np.exp(np.minimum(given, 700.0)) + 1.0), 1.0))


def most_reconstructed(epsilons: ArrayLike, delta: float, candidates: int = CANDIDATES) -> Floats:
    """How often an attacker names the record at most who would name it once in m times if it had not been there:
    e^ε/m + δ. If all of m equally likely candidates have at most this ε, it is how often the right one is picked (Balle
    et al. 2022); the record's own ε alone does not say that."""
    validate.whole("candidates", candidates, least=1)
    grown = np.exp(np.minimum(np.asarray(epsilons, np.float64), 700.0))
    return np.asarray(np.minimum(grown / candidates + delta, 1.0))


def unlearned_for_free(epsilons: ArrayLike, limit: float = UNLEARNED) -> float:
    """The share of records whose removal needs no training at all: the model is (limit, δ)-close in law to one that was
    trained without the record. For others, unlearning costs a training, or steps until ε is as low."""
    return float(np.mean(np.asarray(epsilons) <= validate.epsilon(limit)))
