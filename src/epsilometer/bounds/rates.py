"""Limits on error rates, and the ε that a pair of rates implies."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.claims import group_max_tpr
from epsilometer.errors import InvalidInput


def upper_limit(successes: ArrayLike, trials: int, alpha: float) -> Floats:
    """Clopper–Pearson: a rate above which the truth lies with probability at most `alpha`.

    The same number is the (1−α)-quantile of Beta(successes + 1, trials − successes), which is the law of the
    tail probability beyond the (successes + 1)-th largest of `trials` scores: limits hold for a threshold
    fixed beforehand and, equally, for one that is a fixed rank of the scores.

    >>> upper_limit(0, 1000, 0.025).round(5).item()
    0.00368
    """
    k = np.asarray(successes, dtype=np.float64)
    if trials < 1 or np.any(~((k >= 0) & (k <= trials))):
        raise InvalidInput("successes", successes, f"between 0 and {trials} successes of at least 1 trial")
    every = k >= trials
    limits = special.betainccinv(k + 1.0, np.where(every, 1.0, trials - k), alpha)
    result: Floats = np.where(every, 1.0, limits)
    return result


def epsilon_from_rates(fpr: ArrayLike, fnr: ArrayLike, delta: float = 0.0, group_size: int = 1) -> Floats:
    """The smallest ε at which (ε, δ)-DP allows these exact rates, for worlds that differ in `group_size` records.

    For one record: max(0, ln((1 − FNR − δ)/FPR), ln((1 − FPR − δ)/FNR)), both inequalities of Kairouz et al.
    (2015), which is to say the set {score > t} and its complement. For more records the claim's limit is
    applied once a record (`Claim.max_tpr`), which gives more than ln((1 − FNR)/FPR)/k when the rates lie on
    both sides of the middle: 2 records with FPR and FNR .01 need ε = ln 50, not ln(99)/2.

    >>> epsilon_from_rates(0.02, 0.03, 1e-5).round(3).item()
    3.882
    >>> epsilon_from_rates(0.01, 0.01, group_size=2).round(3).item()
    3.912
    """
    validate.delta(delta)
    u, w = np.broadcast_arrays(np.asarray(fpr, np.float64), np.asarray(fnr, np.float64))
    if np.any(~((u >= 0) & (u <= 1) & (w >= 0) & (w <= 1))):
        raise InvalidInput("fpr, fnr", (fpr, fnr), "rates in [0, 1]")
    with np.errstate(divide="ignore", invalid="ignore"):
        direct = np.log(np.maximum(1.0 - w - delta, 0.0)) - np.log(u)
        complement = np.log(np.maximum(1.0 - u - delta, 0.0)) - np.log(w)
    single: Floats = np.fmax(0.0, np.fmax(direct, complement))  # fmax: 0/0 says nothing
    if validate.group_size(group_size) == 1:
        return single
    low = np.zeros_like(single)
    high = np.minimum(single, 700.0)  # one record needs at least as much as each of several
    for _ in range(48):
        middle = (low + high) / 2
        reach = group_max_tpr(u, middle, delta, group_size)
        needs_more = reach < 1.0 - w
        low, high = np.where(needs_more, middle, low), np.where(needs_more, high, middle)
    return np.where(low >= 699.0, np.inf, low)


def gaussian_strength(fpr: Floats, fnr: Floats) -> Floats:
    """−Φ⁻¹(FNR) − Φ⁻¹(FPR): the μ of the Gaussian curve on which the rates lie.

    >>> gaussian_strength(np.array(0.05), np.array(0.74)).round(2).item()
    1.0
    """
    with np.errstate(invalid="ignore"):
        strength = -special.ndtri(fnr) - special.ndtri(fpr)
    result: Floats = np.nan_to_num(strength, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return result
