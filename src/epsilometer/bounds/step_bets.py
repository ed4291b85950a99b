"""Bets on the coins of one step: what a claim about the step lets nobody win.

In a step each of m canaries is in by a fair coin of its own. The n clearest of m guesses are bet on: which ones, and
what is guessed, is a function of the step's output. A right guess pays its stake, a wrong one costs κ times its stake;
the stake a(r) ∈ [0, 1] of a guess depends on how many of the *other* n − 1 guesses are right. It is thus a function of
the output and the other coins, for which a claim with δ(ln κ) = d says E[h | in] − κ·E[h | out] ≤ d, and the same with
in and out exchanged. So what a guess wins is d/2 + d/2 on average, at most, and

    Z = (1/m)·(R·a(R−1) − κ·(n−R)·a(R)),   R = number of right guesses,   has E[Z | past] ≤ d,

however the canaries depend on each other. If Z ≥ −c always, (c + Z)/(c + d) is never negative and has mean ≤ 1: it is a
factor of a test martingale. Given c, the largest stakes that keep Z ≥ −c follow from one another:

    a(R) = min(1, (c·m + R·a(R−1)) / (κ·(n−R))).

They grow like e^{R²/…} while guesses come right, so that c may be small: a few thousandths of what a linear rise needs.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from epsilometer.arrays import Floats
from epsilometer.claims import LARGEST_MU, GaussianClaim

RightCounts = NDArray[np.uint16]
LEAST = 1e-12  # of d: a claim that promises more is tested as if it promised this
_ODDS = np.r_[1.002, 1.005, 1.01, np.geomspace(1.02, 60.0, 22)]
_FLOORS = np.geomspace(0.02, 8.0, 13)  # c, in units of d
_WAGERS = np.array([0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.85, 0.95])
_COUNTS = 18  # numbers of guesses that are tried
_MANY = 1000  # canaries: for more, the bet for so many is taken, with as large a share of guesses
FINE = 100  # strengths are tuned for on a grid of so many to a factor of e


@dataclass(frozen=True)
class Bet:
    """How to bet in a step; any values in these ranges are sound."""

    guesses: int  # n, of the clearest, from 1 to the number of canaries
    odds: float  # κ ≥ 1
    floor: float  # c > 0
    wager: float  # the share of the wealth that is at stake, below 1

    def log_payoffs(self, mu: float, canaries: int) -> Floats:
        """The logarithm of the factor for 0 to n right guesses, against steps of strength μ."""
        return _log_payoffs(self, mu, canaries)


@functools.lru_cache(maxsize=4096)
def _log_payoffs(bet: Bet, mu: float, canaries: int) -> Floats:
    n, odds = bet.guesses, np.array([bet.odds])
    limit = np.array([_limit(mu, bet.odds)])
    factors = _factors(canaries, n, odds, np.array([bet.floor]), limit)[:, 0]
    logs = np.log1p(bet.wager * (factors - 1.0))
    logs.flags.writeable = False
    return logs


def tuned(mu: float, ratio: float, canaries: int, fine: int = FINE) -> Bet:
    """The bet whose wealth grows fastest against steps of strength μ if canaries are independent and of strength
    `ratio`·μ. The μ that is tuned for is rounded: a bet for a neighbour is as sound and nearly as good.
    """
    bet = _tuned(math.exp(round(math.log(mu) * fine) / fine), ratio, min(canaries, _MANY))
    return bet if canaries <= _MANY else replace(bet, guesses=round(bet.guesses / _MANY * canaries))


@functools.lru_cache(maxsize=4096)
def _tuned(mu: float, ratio: float, canaries: int) -> Bet:
    truth = ratio * mu
    limits = np.array([_limit(mu, kappa) for kappa in _ODDS])
    odds, floors = (grid.ravel() for grid in np.meshgrid(_ODDS, _FLOORS, indexing="ij"))
    limits = np.repeat(limits, len(_FLOORS))
    floors = floors * limits
    best, growth = Bet(1, 2.0, 1.0, 0.5), -math.inf
    for n in np.unique(np.geomspace(1, canaries, _COUNTS).round().astype(int)).tolist():
        chance = _chances(n, right_among(n / canaries, truth))
        factors = _factors(canaries, n, odds, floors, limits)
        for wager in _WAGERS:
            rates = chance @ np.log1p(wager * (factors - 1.0))
            at = int(np.argmax(rates))
            if rates[at] > growth:
                growth, best = rates[at], Bet(n, float(odds[at]), float(floors[at]), float(wager))
    return best


def _chances(n: int, p: float) -> Floats:
    """Of 0 to n right guesses (scipy.stats has it too, and takes a second to load)."""
    k = np.arange(n + 1.0)
    ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    chances: Floats = np.exp(ways + special.xlogy(k, p) + special.xlog1py(n - k, -p))
    return chances


def right_among(share: float, mu: float) -> float:
    """The probability that a guess is right, if it is one of that share of clearest guesses about N(±μ/2, 1)."""
    low, high = 0.0, 10.0 + mu
    for _ in range(60):
        edge = (low + high) / 2
        right, wrong = special.ndtr(mu / 2 - edge), special.ndtr(-mu / 2 - edge)
        low, high = (edge, high) if right + wrong > share else (low, edge)
    return float(right / max(right + wrong, 1e-300))


def right_so_far(scores: Floats, coins: NDArray[np.bool_], middle: Floats) -> RightCounts:
    """How many of the 0, 1, …, m clearest guesses of each step (last axis) are right.

    A guess is "in" above the middle; its clearness is the distance from there. Of equally clear ones the wrong come
    first: no order that knew nothing of coins has fewer right.
    """
    with np.errstate(invalid="ignore"):  # infinite scores
        aside = scores - middle[..., None]
    right = (aside > 0) == coins
    order = np.lexsort((right, -np.abs(aside)), axis=-1)
    right = np.take_along_axis(right, order, -1)
    counts = np.zeros((*right.shape[:-1], right.shape[-1] + 1), dtype=np.uint16)
    np.cumsum(right, axis=-1, out=counts[..., 1:])
    return counts


def _limit(mu: float, odds: float) -> float:
    """d = δ(ln κ) of steps of that strength, rounded up."""
    return max(GaussianClaim(min(mu, LARGEST_MU)).delta_at(math.log(odds)) * (1.0 + 1e-9), LEAST)


def _factors(canaries: int, n: int, odds: Floats, floors: Floats, limits: Floats) -> Floats:
    """(c + Z)/(c + d) for 0 to n right guesses (first axis) and several odds, floors and limits (second)."""
    floor = floors * canaries
    rights = np.arange(n + 1.0)[:, None]
    won = np.zeros((n + 1, len(odds)))  # R·a(R − 1)
    lost = np.zeros((n + 1, len(odds)))  # κ·(n − R)·a(R)
    for right in range(n):
        costs = odds * (n - right)
        stake = np.minimum(1.0, (floor + won[right]) / costs)
        lost[right] = costs * stake
        won[right + 1] = rights[right + 1] * stake
    # Where a stake is not capped, floor + won and lost are the same number; rounding must not make it negative.
    return np.maximum(floor + won - lost, 0.0) / ((floors + limits) * canaries)
