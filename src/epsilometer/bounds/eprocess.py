"""An anytime-valid test and bound: look after every trial, stop whenever you like, and the error rate still holds.

Trials come in pairs, X from the in-world and Y from the out-world. Before each pair a threshold t is chosen from past
pairs only; the pair shows x = 1[X > t] and y = 1[Y > t]. Where L(u) = w* + s·(u − u*) is a line above the claim's limit
g, the wealth is multiplied by

    (1 + a·(x − w*))·(1 − a·s·(y − u*)),   a ≥ 0 so small that neither factor can be negative.

Under the claim TPR − w* ≤ s·(FPR − u*) = z, and X and Y are independent, so the expected factor is at most
(1 + az)(1 − az) ≤ 1: the wealth is a non-negative supermartingale, and by Ville's inequality it ever reaches 1/α with
probability at most α. With u* the Kullback–Leibler projection of a guess at (FPR, TPR) onto the claim, the factor is
that guess's likelihood ratio against the best that the claim allows. A quarter of the wealth follows guesses from past
counts, the rest those from normal distributions fitted to past scores, which learn faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.bounds.method import MEANING, best_reading, require_method_input, strongest
from epsilometer.bounds.rank_pairs import Family, Points, Single, rank_grid
from epsilometer.bounds.result import ClaimTest, Kind, LowerBound
from epsilometer.bounds.simulated_audits import share_refuted
from epsilometer.bounds.ties import Draws, Shuffles
from epsilometer.claims import Claim
from epsilometer.evidence import PairedRuns
from epsilometer.neighbours import require_same_neighbours

FIRST = 5  # pairs to look at before the first bet
# Standard errors by which guesses are drawn together: of many thresholds, the one chosen looks better than it is.
CAUTION_COUNTS, CAUTION_NORMALS = 1.0, 0.6
_LOG_SHARES = np.log([[1 / 4], [3 / 4]])  # of counts, of normals
GROWTH = 0.05  # bets are chosen anew when there are so many more past pairs
COARSE = 16  # strengths that share a threshold
TOGETHER = 200  # blocks times strengths that are looked at at once
_STEPS = np.linspace(0.0, 1.0, 25)[1:-1]
_FEW_STEPS = np.linspace(0.0, 1.0, 9)[1:-1]


@dataclass(frozen=True)
class Wealth:
    """What betting against a claim has won: an e-value, the largest so far."""

    pairs: int  # that it took
    log_e_value: float

    def __str__(self) -> str:
        return f"an e-value of {_power_of_ten(self.log_e_value)} after {self.pairs} pairs of trials"

    def to_dict(self) -> dict[str, Any]:
        return {"pairs": self.pairs, "log_e_value": self.log_e_value}


@dataclass(frozen=True)
class EProcess:
    """Anytime-valid betting on pairs of trials. `target` is an ε whose proof is enough to stop an audit.

    The trials must be in an order that does not depend on their scores. Files often hold sorted scores, so trials are
    shuffled (from `seed` and the scores) unless `in_order` says that they are as they came; where scores repeat,
    several shuffles decide together. Only in order may one look again and again: a new shuffle for every look would be
    a new process every time.
    """

    target: float | None = None
    in_order: bool = False
    seed: int = 0
    name: ClassVar[str] = "eprocess"
    evidence_type: ClassVar[type] = PairedRuns
    kind: ClassVar[Kind] = Kind.CERTIFIED

    def __post_init__(self) -> None:
        if self.target is not None:
            validate.real("target", self.target, above=0)
        validate.whole("seed", self.seed, least=0)

    def bound(
        self, evidence: PairedRuns, *, delta: float = 0.0, confidence: float = 0.95, direction: str = "higher"
    ) -> LowerBound:
        """The largest ε up to which every one of a fine grid is refuted."""

        family, decided = Points(delta, evidence.group_size), []
        for part in require_method_input(self.name, evidence, confidence, direction, delta):
            draws, orders = self._orders(part.evidence)
            found = [self._bound(order, family, draws.price * part.alpha) for order in orders]
            decided.append(draws.decided(found, [epsilon for epsilon, _ in found]))
        return best_reading(decided, evidence, delta, confidence, self._label(direction), self.kind)

    def test(
        self, evidence: PairedRuns, claim: Claim, *, confidence: float = 0.95, direction: str = "higher"
    ) -> ClaimTest:
        """Whether the wealth has ever reached 1/α against the claim."""
        require_same_neighbours("the claim", claim.neighbours, "the evidence", evidence.neighbours)
        parts = require_method_input(self.name, evidence, confidence, direction)
        tests = []
        for part in parts:
            draws, orders = self._orders(part.evidence)
            enough = -math.log(draws.price * part.alpha)
            found: list[Wealth] = []
            for order in orders:
                if sum(wealth.log_e_value < enough for wealth in found) > draws.count - draws.needed:
                    break  # the others can change nothing
                pairs, highest = _highest(order, Single(claim, evidence.group_size), np.zeros(1))
                found.append(Wealth(int(pairs[0]), float(highest[0])))
            proof = draws.decided(found, [wealth.log_e_value for wealth in found])
            refuted = proof.log_e_value >= enough
            tests.append(ClaimTest(refuted, claim, confidence, self._label(direction), self.kind, proof))
        return strongest(tests)

    def enough(self, evidence: PairedRuns, claim: Claim, delta: float, confidence: float) -> bool:
        """Whether an audit may stop: the claim is refuted, or the target is proved. Trials count as they came."""
        if not self.in_order:
            return replace(self, in_order=True).enough(evidence, claim, delta, confidence)
        if self.test(evidence, claim, confidence=confidence).refuted:
            return True
        if self.target is None:
            return False
        (part,) = require_method_input(self.name, evidence, confidence, "higher")
        _, (ordered,) = self._orders(evidence)
        family = Points(validate.delta(delta), evidence.group_size)
        return self._bound(ordered, family, part.alpha, self.target)[0] >= self.target

    def power(
        self,
        claim: Claim,
        truth: Claim,
        *,
        out_trials: int,
        in_trials: int,
        confidence: float = 0.95,
        group_size: int = 1,
        repetitions: int = 200,
    ) -> float:
        return share_refuted(self, claim, truth, out_trials, in_trials, confidence, group_size, repetitions)

    def as_seen_by(self, evidence: PairedRuns) -> EProcess:
        return self

    def _bound(self, ordered: PairedRuns, family: Points, alpha: float, most: float = math.inf) -> tuple[float, Wealth]:
        """Of ε above `most` only the first is looked at."""
        grid = _epsilons(len(ordered.in_scores)) / ordered.group_size  # a group needs so much less of each record
        grid = grid[: np.searchsorted(grid, most) + 1]
        pairs, highest = _highest(ordered, family, grid)
        refuted = highest >= -math.log(alpha)
        last = int(np.argmin(refuted)) - 1 if not refuted.all() else len(grid) - 1
        return (float(grid[last]) if last >= 0 else 0.0), Wealth(int(pairs[max(last, 0)]), float(highest[max(last, 0)]))

    def _label(self, direction: str) -> str:
        return f"{self.name}{MEANING[direction]}"

    def _orders(self, evidence: PairedRuns) -> tuple[Draws, Iterator[PairedRuns]]:
        """As many trials of each world, in the orders in which to bet on them."""
        pairs = min(len(evidence.out_scores), len(evidence.in_scores))

        def ordered(outs: Floats, ins: Floats) -> PairedRuns:
            return PairedRuns(outs[:pairs], ins[:pairs], evidence.neighbours, evidence.group_size)

        if self.in_order:
            return Draws(), iter([ordered(evidence.out_scores, evidence.in_scores)])
        shuffles = Shuffles.of(evidence)
        # One generator for both worlds: equal scores must not get equal orders.
        drawn = (shuffles.rng(self.seed, draw) for draw in range(shuffles.draws.count))
        return shuffles.draws, (ordered(rng.permutation(shuffles.outs), rng.permutation(shuffles.ins)) for rng in drawn)


def eprocess(
    evidence: PairedRuns,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    direction: str = "higher",
    in_order: bool = False,
    seed: int = 0,
) -> LowerBound:
    """The anytime-valid certified ε of paired trials (see `EProcess`).

    >>> rng = np.random.default_rng(0)
    >>> print(eprocess(PairedRuns(rng.normal(size=500), rng.normal(2, size=500)), delta=1e-5))
    ε ≥ 2.529 at δ = 1e-05 (add-remove), certified, 0.95 confidence, eprocess
    """
    method = EProcess(in_order=in_order, seed=seed)
    return method.bound(evidence, delta=delta, confidence=confidence, direction=direction)


# -------------------------------------------------------------------------------------------------- the betting
def _highest(evidence: PairedRuns, family: Family, strengths: Floats) -> tuple[Floats, Floats]:
    """The largest log-wealth against each strength, and after how many pairs it was reached.

    Wealth is looked at where bets are chosen anew, which is after every pair in the beginning.
    """
    outs, ins = evidence.out_scores, evidence.in_scores
    logs = np.tile(_LOG_SHARES, len(strengths))
    highest, reached = np.zeros(len(strengths)), np.zeros(len(strengths))
    # No bet depends on the wealth: those of many blocks are found together.
    blocks = np.array(list(_blocks(len(outs))), np.int64).reshape(-1, 2)
    together = max(1, TOGETHER // len(strengths))
    for first in range(0, len(blocks), together):
        some = blocks[first : first + together]
        thresholds, u, w, counted = _guesses_before(some[:, 0], outs, ins)
        chosen = _choose(family, strengths, u, w, counted)
        at, u, w = (np.take_along_axis(values[:, None, :], chosen, 2) for values in (thresholds, u, w))
        y, x = (_above(at, new, some) for new in (outs, ins))
        gains = _log_factor(family, strengths, u, w, x, y, np.diff(some)[:, :, None])
        steps = np.cumsum(np.concatenate([logs[None], gains]), axis=0)
        logs, wealth = steps[-1], np.logaddexp(steps[1:, 0], steps[1:, 1])
        best = wealth.max(axis=0)
        reached = np.where(best > highest, some[wealth.argmax(axis=0), 1], reached)
        highest = np.maximum(highest, best)
    return reached, highest


def _above(thresholds: Floats, scores: Floats, blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of each block's scores are above each of its thresholds."""
    found = np.empty(thresholds.shape, np.int64)
    for i, (begin, end) in enumerate(blocks):
        found[i] = end - begin - np.searchsorted(np.sort(scores[begin:end]), thresholds[i], side="right")
    return found


def _blocks(pairs: int) -> Iterator[tuple[int, int]]:
    begin = FIRST
    while begin < pairs:
        end = min(pairs, begin + max(1, int(GROWTH * begin)))
        yield begin, end
        begin = end


def _guesses_before(begins: NDArray[np.int64], outs: Floats, ins: Floats) -> tuple[Floats, Floats, Floats, int]:
    """A row for each block: thresholds with guesses at (FPR, TPR), and how many of them, the first, are from counts.

    Where a block has fewer, its first is repeated: of equals, the first is chosen.
    """
    past = [(np.sort(outs[:begin]), np.sort(ins[:begin])) for begin in begins]
    parts = []
    for guess in (_from_counts, _from_normals):
        found = [np.stack(guess(*sorted_scores)) for sorted_scores in past]
        places = np.arange(max(rows.shape[1] for rows in found))
        parts.append(np.stack([rows[:, np.where(places < rows.shape[1], places, 0)] for rows in found], axis=1))
    thresholds, u, w = np.concatenate(parts, axis=2)
    return thresholds, u, w, parts[0].shape[2]


def _from_counts(outs: Floats, ins: Floats) -> tuple[Floats, Floats, Floats]:
    """Thresholds at past scores, with guesses at (FPR, TPR) from past counts."""
    past = len(outs)
    ranks = np.array(rank_grid(8, past, deepest=0.7))
    thresholds = np.unique(np.r_[outs[past - ranks], np.nextafter(ins[ranks - 1], -np.inf)])
    fp = past - np.searchsorted(outs, thresholds, side="right")
    tp = past - np.searchsorted(ins, thresholds, side="right")
    # On the scale of arcsin √p a rate's standard error is 1/(2√n).
    error = CAUTION_COUNTS / (2.0 * math.sqrt(past))
    u_angle, w_angle = (np.arcsin(np.sqrt((count + 0.5) / (past + 1.0))) for count in (fp, tp))
    u = np.sin(np.minimum(u_angle + error, np.pi / 2)) ** 2
    w = np.sin(np.maximum(w_angle - error, 0.0)) ** 2
    return thresholds, _inside(u, past), _inside(w, past)


def _from_normals(outs: Floats, ins: Floats) -> tuple[Floats, Floats, Floats]:
    """Thresholds on a grid, with guesses from two normal distributions of one spread."""
    past = len(outs)
    finite = np.isfinite(outs).all() and np.isfinite(ins).all()
    with np.errstate(over="ignore", invalid="ignore"):  # huge scores: no normal distribution then
        spread = math.sqrt((outs.var() + ins.var()) / 2 * past / (past - 1)) if finite else 0.0
    if not (spread > 0 and math.isfinite(spread)):
        return np.zeros(1), np.full(1, 0.5), np.full(1, 0.5)
    apart = float(ins.mean() - outs.mean()) / spread
    caution = CAUTION_NORMALS * min(1.0, 0.5 + past / 400)  # bolder in the beginning: strong attacks end soon
    apart = max(0.0, apart - caution * math.sqrt(2.0 / past))
    z = np.linspace(-1.5, max(3.5, apart + 1.0), 24)
    return outs.mean() + spread * z, _inside(special.ndtr(-z), past), _inside(special.ndtr(apart - z), past)


def _inside(rates: Floats, past: int) -> Floats:
    """Rates that so many trials cannot tell from 0 or 1 are neither."""
    least = 0.25 / (past + 1.0)
    return np.clip(rates, least, 1.0 - least)


def _choose(family: Family, strengths: Floats, u: Floats, w: Floats, counted: int) -> NDArray[np.intp]:
    """For each block, kind of guess and strength (each few, that is) the guess that is furthest from the claim."""
    few = strengths[::COARSE][:, None]
    distance = _projections(family, few, u[:, None, :], w[:, None, :], _FEW_STEPS)[1]
    best = np.stack([distance[..., :counted].argmax(axis=2), counted + distance[..., counted:].argmax(axis=2)], axis=1)
    return np.repeat(best, COARSE, axis=2)[..., : len(strengths)]


def _projections(family: Family, strengths: Floats, u: Floats, w: Floats, steps: Floats) -> tuple[Floats, Floats]:
    """u* on a grid between u and where the claim allows w, and its distance in nats: 0 where (u, w) is allowed."""
    top = 1.0 - family.max_tpr(strengths, np.broadcast_to(1.0 - w, np.broadcast_shapes(w.shape, strengths.shape)))
    beyond = top > u
    u, w = np.broadcast_arrays(u, w)
    ratio = np.where(beyond, np.maximum(top, u) / u, 1.0)
    grid = u[..., None] * ratio[..., None] ** steps
    allowed = np.clip(family.max_tpr(strengths[..., None], grid), 1e-15, 1.0 - 1e-15)
    distances = _divergence(u[..., None], grid) + _divergence(w[..., None], np.minimum(allowed, w[..., None]))
    best = np.argmin(distances, axis=-1)[..., None]
    nearest = np.take_along_axis(grid, best, -1)[..., 0]
    return nearest, np.where(beyond, np.take_along_axis(distances, best, -1)[..., 0], 0.0)


def _divergence(p: Floats, q: Floats) -> Floats:
    """Kullback–Leibler divergence of Bernoulli laws."""
    divergence: Floats = p * np.log(p / q) + (1.0 - p) * np.log((1.0 - p) / (1.0 - q))
    return divergence


def _log_factor(
    family: Family, strengths: Floats, u: Floats, w: Floats, x: NDArray[np.int64], y: NDArray[np.int64],
    pairs: NDArray[np.int64] | int,
) -> Floats:  # fmt: skip
    """What a block of pairs with x and y scores above the threshold adds to the log-wealth."""
    touch, distance = _projections(family, strengths, u, w, _STEPS)
    # A line above the concave g: through g(u*), as steep as g to its left, and lifted by what that can miss.
    step = 1e-5 * touch * (1.0 - touch)
    left, here, right = (family.max_tpr(strengths, touch + shift) for shift in (-step, 0.0, step))
    slope = (here - left) / step
    height = here + np.maximum(slope * step - (right - here), 0.0) + 1e-12
    with np.errstate(divide="ignore", invalid="ignore"):
        by_x = (w - height) / (height * (1.0 - height))
        by_y = (touch - u) / (touch * (1.0 - touch) * slope)
        most = 0.98 * np.minimum(1.0 / height, 1.0 / (slope * (1.0 - touch)))
        size = np.minimum((by_x + by_y) / 2, most)
    size = np.where((distance > 0) & (height < w) & (slope > 0) & np.isfinite(size), np.maximum(size, 0.0), 0.0)
    gain_x = x * np.log1p(size * (1.0 - height)) + (pairs - x) * np.log1p(-size * height)
    gain_y = y * np.log1p(-size * slope * (1.0 - touch)) + (pairs - y) * np.log1p(size * slope * touch)
    total: Floats = gain_x + gain_y
    return total


def _epsilons(pairs: int) -> Floats:
    """A grid of ε up to what so many pairs could ever refute, finer where ε is small."""
    most = math.log(max(pairs, 2)) + 1.0
    fine = np.arange(0.0, 1.0, 0.01)
    grid: Floats = np.r_[fine, np.exp(np.arange(0.0, math.log(max(most, 1.0)) + 0.008, 0.008))]
    return grid


def _power_of_ten(log: float) -> str:
    value = math.exp(min(log, 600.0))
    return f"{value:.3g}" if log < 600 else f"10^{log / math.log(10):.0f}"
