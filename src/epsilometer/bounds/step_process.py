"""A verdict from one training: an e-process over its steps, valid whenever one looks.

A training that states its mechanism says of each step, given all before it: a record that the step uses for sure is no
easier to tell than N(0, 1) from N(μ, 1). Each step's coins are bet on (see `step_bets`) and the wealth is multiplied by
what that pays. Under the claim it is a non-negative supermartingale, within a training and from one to the next, so it
ever reaches 1/α with probability at most α (Ville). Nothing is assumed about canaries of one step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.bounds.step_bets import FINE, Bet, RightCounts, right_so_far, tuned
from epsilometer.claims import LARGEST_MU, Claim, GaussianClaim, StepClaim
from epsilometer.errors import InvalidInput
from epsilometer.evidence import PerStep, as_coins, as_scores
from epsilometer.neighbours import require_same_neighbours

_WEAKEST, _STRONGEST = 1e-4, 1e3  # what bets are tuned to; claims beyond are tested with the nearest
_APART = 1.1
MOST_CANARIES = 65_535
COARSE = 25  # strengths to a factor of e that bets for limits are tuned to
LARGEST_TRUTH = 1e3  # beyond it no guess is wrong


@dataclass(frozen=True)
class Slot:
    """A share of the wealth, and what its bets are tuned to: `noise` times the noise that is stated, held against
    `against` times that noise."""

    share: float
    noise: float
    against: float = 1.0

    def bet(self, mu: float, canaries: int, fine: int = FINE) -> Bet:
        stated = min(max(mu, _WEAKEST), _STRONGEST)
        return tuned(stated / self.against, self.against / self.noise, canaries, fine)


# A claim is tested with bets tuned to missing noise, most of the wealth where it grows slowly. A tenth of it is for
# trainings that keep their claim: how much noise they have at most.
SLOTS = (
    *(Slot(*pair) for pair in ((0.09, 0.5), (0.135, 0.7), (0.18, 0.8), (0.225, 0.9), (0.27, 0.95))),
    *(Slot(share, noise, noise * _APART) for share, noise in ((0.06, 1.0), (0.02, 1.5), (0.02, 2.5))),
)
# Factors below 1 are tested with bets tuned to as much noise, against a tenth more.
_LESS = (0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.25, 0.3, 0.36, 0.43, 0.5, 0.57, 0.65, 0.73, 0.81, 0.9)
LIMITING = tuple(Slot(1 / len(_LESS), noise, noise * _APART) for noise in _LESS)


@dataclass(frozen=True)
class StepWealth:
    """What betting on steps has won: the largest e-value so far, and when the claim was refuted."""

    steps: int
    canaries: int  # in the step with most
    log_e_value: float
    refuted_at: int | None  # step, counted from 1 over all trainings
    noise_factor: float | None = None  # true noise is at most so many times the noise that is stated

    @property
    def p_value(self) -> float:
        """Under the claim an e-value is ever so large with at most this probability."""
        return math.exp(-max(self.log_e_value, 0.0))

    def __str__(self) -> str:
        at = f", over 1/α from step {self.refuted_at} on" if self.refuted_at else ""
        canaries = "1 canary" if self.canaries == 1 else f"{self.canaries} canaries"
        found = f"an e-value of {e_value(self.log_e_value)} in {self.steps} steps of {canaries}{at}"
        factor = "any" if self.noise_factor is None else f"at most {self.noise_factor:.3g} times the stated"
        return f"{found}; it allows {factor} noise"

    def to_dict(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "canaries": self.canaries,
            "log_e_value": self.log_e_value,
            "refuted_at": self.refuted_at,
            "noise_factor": self.noise_factor,
            "p_value": self.p_value,
        }


class StepProcess:
    """Bets on one step after another, as they come.

    >>> rng = np.random.default_rng(0)
    >>> process = StepProcess()
    >>> for _ in range(20):  # σ = 1 is stated, and half of it is there
    ...     coins = rng.random(200) < 0.5
    ...     process.add(coins + rng.normal(0, 0.5, 200), coins, noise_multiplier=1.0)
    >>> process.refuted_at
    3
    >>> round(process.noise_factor(), 2)
    0.6
    """

    def __init__(self, confidence: float = 0.95) -> None:
        self._needed = -math.log1p(-validate.confidence(confidence))
        self._seen: list[tuple[RightCounts, float]] = []  # right guesses among the clearest, and the strength stated
        self._logs = np.log([slot.share for slot in SLOTS])
        self._highest = 0.0
        self._canaries = 0
        self.refuted_at: int | None = None

    def add(
        self,
        scores: ArrayLike,
        coins: ArrayLike,
        noise_multiplier: float | None = None,
        *,
        mu: float | None = None,
        middle: float | None = 0.5,
    ) -> None:
        """One step: what its output shows of each canary, and who was in.

        By default scores are in units of the clip norm: 0 without and 1 with the canary, were there no noise. `middle`
        is half way between; none: the median of the step. Stated is a noise multiplier (μ = 1/σ), or μ itself; a step
        that states no noise (μ = ∞) promises nothing, and is counted only.
        """
        values = as_scores("scores", scores)
        tossed = as_coins("coins", coins, len(values))
        if len(values) > MOST_CANARIES:
            raise InvalidInput("scores", f"{len(values)} scores", f"at most {MOST_CANARIES} of one step")
        if (mu is None) == (noise_multiplier is None):
            raise InvalidInput("noise_multiplier", noise_multiplier, "either a noise multiplier or mu")
        if mu is None:
            mu = 1.0 / validate.real("noise_multiplier", noise_multiplier, above=0)
        strength = validate.real("mu", mu, above=0, closed="[]")
        if math.isfinite(strength) and strength > LARGEST_MU:
            raise InvalidInput("mu", strength, f"at most {LARGEST_MU:g}, or infinity")
        at = np.array(np.median(values) if middle is None else validate.real("middle", middle))
        counts = right_so_far(values, tossed, at)
        gains = np.zeros(len(SLOTS))
        if math.isfinite(strength):
            for place, slot in enumerate(SLOTS):
                bet = slot.bet(strength, len(values))
                gains[place] = bet.log_payoffs(strength, len(values))[counts[bet.guesses]]
        self._seen.append((counts, strength))
        self._canaries = max(self._canaries, len(values))
        self._logs += gains
        self._highest = max(self._highest, self.log_e_value)
        if self.refuted_at is None and self._highest >= self._needed:
            self.refuted_at = self.steps

    @property
    def steps(self) -> int:
        return len(self._seen)

    @property
    def refuted(self) -> bool:
        return self.refuted_at is not None

    @property
    def log_e_value(self) -> float:
        """Of now; it may have been larger before."""
        return float(np.logaddexp.reduce(self._logs))

    def noise_factor(self) -> float:
        """With the same confidence at any time, true noise is at most so many times the noise that is stated.

        Every factor has one test: from 1 on the bets of the claim itself, so that the limit is below 1 only if the
        claim is refuted; below 1 bets of their own. The same bets are held against all factors of a kind. A larger one
        is a stronger promise and never pays less, so what is refuted is all above a limit, which is found by halving.
        """
        if not self.refuted:
            return self._largest_unrefuted(SLOTS, FINE, 1.0, 1e3)
        return self._largest_unrefuted(LIMITING, COARSE, 1e-3, 1.0)

    def _largest_unrefuted(self, slots: Sequence[Slot], fine: int, low: float, high: float) -> float:
        groups: dict[tuple[float, int], list[tuple[int, RightCounts]]] = {}
        for step, (counts, strength) in enumerate(self._seen):
            if math.isfinite(strength):
                groups.setdefault((strength, len(counts) - 1), []).append((step, counts))
        steps = {key: (np.array([s for s, _ in seen]), np.array([c for _, c in seen])) for key, seen in groups.items()}
        shares = np.log([slot.share for slot in slots])

        def refuted(factor: float) -> bool:
            logs = np.zeros((self.steps, len(slots)))
            for (strength, canaries), (places, counts) in steps.items():
                for place, slot in enumerate(slots):
                    bet = slot.bet(strength, canaries, fine)
                    logs[places, place] = bet.log_payoffs(strength / factor, canaries)[counts[:, bet.guesses]]
            wealth = np.logaddexp.reduce(np.cumsum(logs, axis=0) + shares, axis=1)
            return bool(wealth.size and wealth.max() >= self._needed)

        if not refuted(high):
            return math.inf if high > 1.0 else high
        if refuted(low):
            return low
        while high / low > 1.001:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if refuted(middle) else (middle, high)
        return high

    def wealth(self) -> StepWealth:
        factor = self.noise_factor()
        return StepWealth(
            self.steps, self._canaries, self._highest, self.refuted_at, factor if math.isfinite(factor) else None
        )


def e_value(log: float) -> str:
    """A number for people.

    >>> e_value(3.0), e_value(2000.0)
    ('20.1', '10^869')
    """
    return f"{math.exp(log):.3g}" if log < 600 else f"10^{log / math.log(10):.0f}"


def bet_on_steps(evidence: PerStep, claim: StepClaim, *, confidence: float = 0.95) -> StepWealth:
    """What bets against a claim about steps have won on all of them, one after another."""
    require_same_neighbours("the claim", claim.neighbours, "the evidence", evidence.neighbours)
    if evidence.group_size != 1:
        raise InvalidInput("group_size", evidence.group_size, f"1: a canary is one {evidence.unit}")
    process = StepProcess(confidence)
    steps = list(evidence.by_step())
    for (scores, coins), mu in zip(steps, claim.strengths(len(steps)), strict=True):
        process.add(scores, coins, mu=float(mu), middle=evidence.middle)
    return process.wealth()


def log_wealth(counts: RightCounts, mu: float) -> Floats:
    """The logarithm of the wealth after each step (last but one axis) of trainings, against steps of one strength."""
    canaries = counts.shape[-1] - 1
    bets = [slot.bet(mu, canaries) for slot in SLOTS]
    logs = np.stack([bet.log_payoffs(mu, canaries)[counts[..., bet.guesses]] for bet in bets], axis=-1)
    shares = np.log([slot.share for slot in SLOTS])
    wealth: Floats = np.logaddexp.reduce(np.cumsum(logs, axis=-2) + shares, axis=-1)
    return wealth


def share_refuted_in_steps(
    claim: StepClaim, truth: Claim, steps: int, canaries: int, confidence: float, repetitions: int = 100, seed: int = 0
) -> float:
    """The share of simulated trainings with independent canaries, each as strong as `truth`, that refute `claim`.

    Scores are Gaussian if `truth` is. Otherwise guesses are right as often as `truth` allows where both errors are as
    frequent, clear ones and others: randomized response.
    """
    if math.isinf(claim.strongest.mu):
        return 0.0
    rng, mu = np.random.default_rng(seed), claim.strongest.mu
    wrong, refuted = _equal_errors(truth), 0
    for _ in range(repetitions):
        coins = rng.random((steps, canaries)) < 0.5
        if isinstance(truth, GaussianClaim):
            scores = rng.normal((coins - 0.5) * min(truth.mu, LARGEST_TRUTH), 1.0)
        else:
            guesses = np.where(rng.random(coins.shape) < wrong, ~coins, coins)
            scores = np.where(guesses, 1.0, -1.0) * rng.random(coins.shape)
        counts = right_so_far(scores, coins, np.zeros(steps))
        refuted += bool(log_wealth(counts, mu).max() >= -math.log1p(-confidence))
    return refuted / repetitions


def _equal_errors(truth: Claim) -> float:
    """The false-positive rate at which the false-negative rate is the same."""
    low, high = 0.0, 0.5
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if float(truth.min_fnr(middle)) > middle else (low, middle)
    return high
