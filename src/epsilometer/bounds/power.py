"""Planning: what a number of trials can prove, and how many trials a proof needs."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from epsilometer import validate
from epsilometer.bounds.clopper_pearson import clopper_pearson
from epsilometer.bounds.exact_rank import ExactRank
from epsilometer.bounds.method import Method
from epsilometer.bounds.rank_pairs import Single, p_values
from epsilometer.claims import Claim
from epsilometer.evidence import Counts, PairedRuns
from epsilometer.neighbours import require_same_neighbours

MOST_TRIALS = 10**8
DEFAULT = ExactRank()


def eps_opt(
    trials: int, confidence: float = 0.95, delta: float = 0.0, k: int = 1, method: Method | None = None
) -> float:
    """The largest ε that `trials` perfect trials per world can prove, for worlds that differ in k records.

    Jagielski et al. (2020) call it ε_OPT, for a threshold known beforehand and Clopper–Pearson limits, as here
    unless a `method` is given. An exact rank test proves more with the same trials.

    >>> round(eps_opt(500, confidence=0.99), 3)
    4.542
    >>> round(eps_opt(500, confidence=0.99, method=ExactRank()), 3)
    5.328
    """
    validate.whole("trials", trials, least=1)
    if method is None:
        perfect = Counts(tp=trials, fp=0, fn=0, tn=trials, group_size=k)
        return clopper_pearson(perfect, delta=delta, confidence=confidence).epsilon
    separated = PairedRuns([0.0] * trials, [1.0] * trials, group_size=k)
    return method.bound(separated, delta=delta, confidence=confidence).epsilon


def blind_spot(
    claim: Claim, out_trials: int, in_trials: int, *, confidence: float = 0.95, group_size: int = 1, seen: float = 0.8
) -> float:
    """The share of trainings in which everything must leak for the leak to be seen with probability `seen`.

    What gives everything away in rare trainings, and nothing in the others, shows in the highest scores only. This
    is what a test of nothing but the highest out-score needs; tests that look elsewhere as well need about as much
    or more. 1 where so many trials never refute the claim.

    >>> from epsilometer.claims import PointClaim
    >>> round(blind_spot(PointClaim(1.0, 1e-5), 500, 500), 3)
    0.025
    """
    alpha = 1.0 - validate.confidence(confidence)
    low, high = 0, in_trials + 1  # the fewest in-scores above all out-scores that refute the claim
    while high - low > 1:
        middle = (low + high) // 2
        pair = np.ones(1), np.array([float(middle)])
        refuted = p_values(*pair, out_trials, in_trials, Single(claim, group_size), 0.0)[0] <= alpha
        low, high = (low, middle) if refuted else (middle, high)
    return 1.0 if high > in_trials else float(special.betaincinv(high, in_trials - high + 1, seen))


def refutation_power(
    claim: Claim,
    truth: Claim,
    trials: int,
    *,
    confidence: float = 0.95,
    method: Method = DEFAULT,
    group_size: int = 1,
) -> float:
    """The probability that `trials` trials per world refute `claim` when the attacker attains the curve `truth`.

    `group_size` is the number of units (records, users) in which the worlds differ; `truth` is what the attacker
    attains between these worlds.

    >>> from epsilometer.claims import GaussianClaim
    >>> round(refutation_power(GaussianClaim(0.5), GaussianClaim(1.0), trials=150), 2)
    0.9...
    """
    require_same_neighbours("the claim", claim.neighbours, "the truth", truth.neighbours)
    validate.whole("trials", trials, least=1)
    return method.power(claim, truth, out_trials=trials, in_trials=trials, confidence=confidence, group_size=group_size)


def trials_to_refute(
    claim: Claim,
    truth: Claim,
    *,
    confidence: float = 0.95,
    power: float = 0.95,
    method: Method = DEFAULT,
    group_size: int = 1,
) -> int | None:
    """The trials per world with which `truth` refutes `claim` with probability `power`, to 1 %; None if over 10^8.

    `truth` is the curve that the attacker attains: `PointClaim(ε', δ)` for a perfect attacker on a training
    that leaks exactly (ε', δ), `PointClaim(inf)` for one that is always right, `GaussianClaim(μ)` for one
    who sees Gaussian scores.

    >>> from epsilometer.claims import PointClaim
    >>> trials_to_refute(PointClaim(4.0, 1e-5), PointClaim(math.inf, 1e-5)) < 204  # by Clopper–Pearson
    True
    """
    validate.real("power", power, above=0, below=1)

    def enough(trials: int) -> bool:
        reached = refutation_power(claim, truth, trials, confidence=confidence, method=method, group_size=group_size)
        return reached >= power

    low, high = 0, 16
    while not enough(high):
        if high == MOST_TRIALS:
            return None
        low, high = high, min(4 * high, MOST_TRIALS)
    while high - low > max(1, low // 100):  # power is not quite monotone: a finer answer means nothing
        middle = (low + high) // 2 if high < 4 * max(low, 1) else int(math.sqrt(max(low, 1) * high))
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
