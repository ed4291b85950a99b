"""Lower bound on ε from one training with many canaries (Steinke, Nasr & Jagielski 2023)."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.bounds.result import Guesses, Kind, LowerBound
from epsilometer.claims import PointClaim
from epsilometer.errors import InvalidInput
from epsilometer.evidence import OneRun, require_evidence


@dataclass(frozen=True)
class Threshold:
    """Every canary is guessed: "in" iff its score is above `value`, which was chosen beforehand."""

    value: float
    name: ClassVar[str] = "threshold"

    def __post_init__(self) -> None:
        validate.real("threshold", self.value, closed="[]")

    def guessed(self, evidence: OneRun) -> list[tuple[Guesses, float]]:
        right = (evidence.scores > self.value) == evidence.member
        canaries = len(evidence.scores)
        return [(Guesses(canaries, canaries, int(right.sum())), 1.0)]


@dataclass(frozen=True)
class _Numbers:
    """The highest scores are guessed "in" and the lowest "out", as many as was said; or a grid that is paid for."""

    guesses: int | tuple[int, int] | None

    @property
    def name(self) -> str:
        return "union-bound" if self.guesses is None else "fixed"

    def guessed(self, evidence: OneRun) -> list[tuple[Guesses, float]]:
        """Equal scores must be guessed without knowledge of the coins, which the order of a file has if somebody sorted
        it by membership. A random choice among them would do, if it were drawn anew each time; but an audit must give
        the same result whenever it is judged. So nothing is drawn. Where the last guess falls among equal scores, so
        many of them count as right as a random choice exceeds with probability 1 − LUCK at least, and α shrinks to
        (1 − LUCK)·α: what is refuted then, random choices would refute with probability 1 − LUCK each time, and they
        err with that α at most. Where the order is known to have nothing to do with the coins (`in_order`), it decides.
        """
        canaries = len(evidence.scores)
        numbers = _numbers_of_guesses(self.guesses, canaries)
        if evidence.in_order:
            member = evidence.member[np.argsort(evidence.scores, kind="stable")]
            ins, outs = (np.concatenate([[0], np.cumsum(hits)]) for hits in (member[::-1], ~member))
            return [(Guesses(canaries, k + j, int(ins[k] + outs[j])), share) for (k, j), share in numbers.items()]
        ends = [_End(-evidence.scores, evidence.member), _End(evidence.scores, ~evidence.member)]
        found = []
        for pair, share in numbers.items():
            split = [end.splits(count) for end, count in zip(ends, pair, strict=True)]
            luck = LUCK / max(1, sum(split))
            right = sum(end.right(count, luck) for end, count in zip(ends, pair, strict=True))
            found.append((Guesses(canaries, sum(pair), right), (1.0 - LUCK) * share if any(split) else share))
        return found


# How many guesses; how many "in" and "out"; all, by a threshold; or a grid that is paid for.
Plan = int | tuple[int, int] | Threshold | None

# The shares of canaries that are guessed when nobody chose: as many "in" as "out"; or, for leaks of few canaries, which
# show at one end only, all "in" or all "out". And what each kind of guess gets of α.
BOTH, ONE_END = tuple(10.0 ** (-i / 2) for i in range(6)), tuple(10.0 ** (-i / 2) for i in range(2, 6))
PRICES = {"both": 0.6, "in": 0.3, "out": 0.1}
LUCK = 0.1  # see `guessed`
EXACT = 10_000  # equal scores, up to which the distribution of right guesses among them is worked out
FEWEST = 8  # even if all are right, fewer guesses prove next to nothing at a share of α


def one_run(
    evidence: OneRun,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    guesses: Plan = None,
) -> LowerBound:
    """The certified ε of guessing who was in: too many right guesses for (ε, δ)-DP (Theorem 5.2).

    The highest scores are guessed "in", the lowest "out", and the rest not at all. How many are guessed must not
    depend on who was in: `guesses` says it beforehand (a number, half of it on either side; a pair of numbers "in" and
    "out"; or a `Threshold`, by which all are guessed); without it a fixed grid of numbers is tried, some of them
    only "in" or only "out", each at its share of α.

    The coins are the only randomness that the theorem needs: canaries may depend on each other in any way.

    >>> run = OneRun(scores=np.arange(1000.0), member=np.arange(1000) >= 500)
    >>> print(one_run(run, delta=1e-5, guesses=1000))
    ε ≥ 5.782 at δ = 1e-05 (add-remove), certified, 0.95 confidence, one-run (fixed)
    """
    validate.delta(delta)
    alpha = 1.0 - validate.confidence(confidence)
    found = guessed("one_run", evidence, guesses)
    size = evidence.group_size
    values = [one_run_epsilon(g.canaries, g.guesses, g.correct, delta, share * alpha, size) for g, share in found]
    best = int(np.argmax(values))
    return LowerBound(
        epsilon=values[best],
        delta=delta,
        confidence=confidence,
        relation=evidence.relation,
        unit=evidence.unit,
        method=f"one-run ({strategy_name(guesses)})",
        kind=Kind.CERTIFIED,
        proof=found[best][0],
        group_size=size,
    )


def one_run_epsilon(
    canaries: int, guesses: int, correct: int, delta: float = 0.0, alpha: float = 0.05, group_size: int = 1
) -> float:
    """The largest ε that this many right guesses refute at level `alpha`; 0 if they refute none.

    >>> round(one_run_epsilon(canaries=1000, guesses=100, correct=100, delta=1e-5), 3)
    3.465
    """
    counts = check_counts(canaries, guesses, correct)
    validate.delta(delta)
    validate.real("alpha", alpha, above=0, below=1, remedy="0.05 means one false alarm in 20")
    return _epsilon(counts, float(delta), float(alpha), validate.group_size(group_size))


def one_run_p_value(
    canaries: int, guesses: int, correct: int, epsilon: float, delta: float = 0.0, group_size: int = 1
) -> float:
    """The largest probability of so many right guesses under (ε, δ)-DP: min(1, β + 2mδα') of Theorem 5.2.

    With W ~ Binomial(guesses, e^ε/(1 + e^ε)): β = P[W ≥ correct], α' = max over i of P[correct > W ≥ correct − i]/i.
    A canary that is a group of records is held to what (ε, δ) implies for such groups, `PointClaim.group`.

    >>> round(one_run_p_value(canaries=10, guesses=10, correct=10, epsilon=1.052), 3)
    0.05
    """
    counts = check_counts(canaries, guesses, correct)
    validate.delta(delta)
    return _p_value(counts, validate.epsilon(epsilon), float(delta), validate.group_size(group_size))


def check_counts(canaries: int, guesses: int, correct: int) -> Guesses:
    """The counts as one value, or an error about the first that cannot be."""
    validate.whole("canaries", canaries, least=1, most=10**12, remedy="each has its own coin")
    validate.whole("guesses", guesses, least=1, most=canaries, remedy="each canary is guessed at most once")
    validate.whole("correct", correct, least=0, most=guesses, remedy="no more can be right than are made")
    return Guesses(int(canaries), int(guesses), int(correct))


def _tail(least: int, trials: int, chance: float) -> float:
    """P[Binomial(trials, chance) ≥ least]."""
    return float(special.betainc(least, trials - least + 1, chance)) if least > 0 else 1.0


def _p_value(counts: Guesses, epsilon: float, delta: float, size: int) -> float:
    claim = PointClaim(epsilon, delta).group(size) if size > 1 else PointClaim(epsilon, delta)
    chance = float(special.expit(claim.epsilon))
    r, v = counts.guesses, counts.correct
    beta = _tail(v, r, chance)
    if claim.delta == 0 or v == 0:
        return beta

    def average(i: int) -> float:
        return (_tail(v - i, r, chance) - beta) / i

    # The average of a binomial's probabilities over v−i … v−1 rises with i and then falls, as they do themselves:
    # bisect for its peak. Ties count as rising, because far out in the tail all averages are 0 in floating point.
    low, high = 1, v
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if average(middle + 1) >= average(middle) else (low, middle)
    return min(1.0, beta + 2.0 * counts.canaries * claim.delta * average(low))


@functools.lru_cache(maxsize=4096)
def _epsilon(counts: Guesses, delta: float, alpha: float, size: int) -> float:
    # Without δ the theorem is the binomial test: ε is the logit of Clopper–Pearson's lower limit on the accuracy.
    if counts.correct == 0:
        return 0.0
    accuracy = special.betaincinv(counts.correct, counts.guesses - counts.correct + 1, alpha)
    high = max(0.0, float(special.logit(accuracy))) / size
    if delta == 0 or high == 0 or _p_value(counts, 0.0, delta, size) > alpha:
        return high if delta == 0 else 0.0
    # p = max over i of (1 − cᵢ)·P[W ≥ v] + cᵢ·P[W ≥ v−i] with cᵢ = 2mδ/i. While 2mδ ≤ 1 these are averages of two
    # probabilities that grow with ε, so p grows too and bisection is sound; beyond that, tests search for exceptions.
    low = 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _p_value(counts, middle, delta, size) <= alpha else (low, middle)
    return low


def guessed(method: str, evidence: OneRun, plan: Plan) -> list[tuple[Guesses, float]]:
    """How many guesses are right, for each number of guesses that the plan allows, and its share of α."""
    why = "scores without a coin for each canary prove nothing here; use a bound made for them"
    require_evidence(method, evidence, OneRun, "the canaries of one run (OneRun)", why)
    return _strategy(plan).guessed(evidence)


class _End:
    """Guesses from one end of the scores on; `wanted` are the canaries of which a guess is right."""

    def __init__(self, scores: Floats, wanted: NDArray[np.bool_]) -> None:
        self._values, place, self._sizes = np.unique(scores, return_inverse=True, return_counts=True)
        self._wanted = np.bincount(place, weights=wanted).astype(np.int64)
        self._before = np.concatenate([[0], np.cumsum(self._sizes)])  # canaries in front of each value
        self._right_before = np.concatenate([[0], np.cumsum(self._wanted)])

    def _block(self, count: int) -> tuple[int, int]:
        """The value among whose canaries the last of `count` guesses falls, and how many are guessed of it."""
        block = int(np.searchsorted(self._before, count, side="left")) - 1
        return block, count - int(self._before[block])

    def splits(self, count: int) -> bool:
        """Whether some of several equal scores are guessed and others not: a matter of the scores alone."""
        if count == 0:
            return False
        block, taken = self._block(count)
        return taken < int(self._sizes[block])

    def right(self, count: int, luck: float) -> int:
        """How many are right; among equal scores, fewer than by a random choice but with probability `luck`."""
        if count == 0:
            return 0
        block, taken = self._block(count)
        size, wanted = int(self._sizes[block]), int(self._wanted[block])
        return int(self._right_before[block]) + (wanted if taken == size else _fewest(size, wanted, taken, luck))


def _fewest(size: int, wanted: int, taken: int, luck: float) -> int:
    """The largest number below which so few of `taken` out of `size` are wanted with probability `luck` at most.

    >>> _fewest(10, 5, 5, 0.05)
    1
    """
    least = max(0, taken - (size - wanted))
    if size > EXACT:  # Hoeffding's inequality, which holds without replacement too
        return max(least, math.floor(taken * wanted / size - math.sqrt(taken * math.log(1.0 / luck) / 2.0)))
    from scipy import stats  # takes a second: only for those who need it

    return max(least, int(stats.hypergeom.ppf(luck, size, wanted, taken)))


def strategy_name(plan: Plan) -> str:
    return _strategy(plan).name


def _strategy(plan: Plan) -> Threshold | _Numbers:
    return plan if isinstance(plan, Threshold) else _Numbers(plan)


def _numbers_of_guesses(plan: int | tuple[int, int] | None, canaries: int) -> dict[tuple[int, int], float]:
    """Pairs (guessed "in", guessed "out"), each with its share of α.

    >>> list(_numbers_of_guesses(None, 1000))
    [(500, 500), (158, 158), (50, 50), (16, 16), (5, 5), (100, 0), (32, 0), (10, 0), (0, 100), (0, 32), (0, 10)]
    """
    if plan is None:
        both, one_end = (_whole_shares(grid, canaries) for grid in (BOTH, ONE_END))
        kinds = {
            "both": [(math.ceil(n / 2), n // 2) for n in both],
            "in": [(n, 0) for n in one_end],
            "out": [(0, n) for n in one_end],
        }
        total = sum(PRICES[kind] for kind, pairs in kinds.items() if pairs)
        return {pair: PRICES[kind] / total / len(pairs) for kind, pairs in kinds.items() for pair in pairs}
    remedy = "each canary is guessed at most once"
    if isinstance(plan, tuple):
        if len(plan) != 2:
            raise InvalidInput("guesses", plan, "a pair (how many in, how many out)")
        k_plus, k_minus = (validate.whole("guesses", k, least=0, most=canaries, remedy=remedy) for k in plan)
        if not 1 <= k_plus + k_minus <= canaries:
            raise InvalidInput("guesses", plan, f"a sum from 1 to {canaries:,}", remedy)
        return {(k_plus, k_minus): 1.0}
    number = validate.whole("guesses", plan, least=1, most=canaries, remedy=remedy)
    return {(math.ceil(number / 2), number // 2): 1.0}


def _whole_shares(grid: tuple[float, ...], canaries: int) -> list[int]:
    """Numbers of guesses, most first; one at least where there are few canaries and the grid begins with all."""
    numbers = {round(share * canaries) for share in grid}
    least = min(FEWEST, canaries) if grid[0] == 1.0 else FEWEST
    return sorted((n for n in numbers if n >= least), reverse=True)
