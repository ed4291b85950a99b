"""How a threshold may be chosen from the scores, and what that costs.

Each strategy turns scores into error pairs whose limits hold *at once* with probability 1 − α. `BestOnSame`
does not pay for its choice: what it gives is labelled an estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Self

import numpy as np

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.bounds.rank_pairs import rank_grid
from epsilometer.bounds.rates import upper_limit
from epsilometer.bounds.result import ErrorPair, Kind
from epsilometer.bounds.ties import Draws, Shuffles
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Counts, PairedRuns

# (limits on FPR, limits on FNR) → how much each pair proves; used to choose, never to certify.
Objective = Callable[[Floats, Floats], Floats]


MOST_CANDIDATES = 20_000  # looked at when a threshold is chosen; more would not choose better


class ThresholdStrategy(Protocol):
    """Scores → error pairs that hold at once with probability 1 − α."""

    kind: ClassVar[Kind]
    name: ClassVar[str]
    one_test: ClassVar[bool]  # whether it gives one test, chosen without the trials that it counts

    def error_pairs(self, evidence: PairedRuns, alpha: float, objective: Objective) -> list[ErrorPair]: ...

    def several(self, evidence: PairedRuns) -> tuple[Draws, tuple[ThresholdStrategy, ...]]:
        """What decides together about this evidence: the strategy, or several draws of one that draws."""

    def mirrored(self) -> ThresholdStrategy:
        """The same strategy for scores whose sign was turned."""

    def on_rate_scale(self, evidence: PairedRuns) -> ThresholdStrategy:
        """The same strategy for scores that were mapped to minus the false-positive rate beyond them."""


def certified_pair(threshold: float | None, counts: Counts, alpha: float) -> ErrorPair:
    """Limits on both rates of a test chosen beforehand: α/2 for each."""
    fpr_high = float(upper_limit(counts.fp, counts.out_trials, alpha / 2))
    fnr_high = float(upper_limit(counts.fn, counts.in_trials, alpha / 2))
    return ErrorPair(threshold, counts, fpr_high, fnr_high)


class DrawsNothing:
    """A strategy that finds the same whenever it is asked."""

    def several(self, evidence: PairedRuns) -> tuple[Draws, tuple[Self, ...]]:
        return Draws(), (self,)


@dataclass(frozen=True)
class Fixed(DrawsNothing):
    """A threshold that was chosen without looking at these scores."""

    threshold: float
    kind: ClassVar[Kind] = Kind.CERTIFIED
    name: ClassVar[str] = "fixed"
    one_test: ClassVar[bool] = True

    def __post_init__(self) -> None:
        validate.real("threshold", self.threshold, closed="[]")

    def error_pairs(self, evidence: PairedRuns, alpha: float, objective: Objective) -> list[ErrorPair]:
        return [certified_pair(self.threshold, evidence.counts(self.threshold), alpha)]

    def mirrored(self) -> Fixed:
        return Fixed(-self.threshold)

    def on_rate_scale(self, evidence: PairedRuns) -> Fixed:
        return Fixed(_rate_score(evidence, self.threshold))


@dataclass(frozen=True)
class Split:
    """Choose on a random part of the trials, certify on the rest.

    The part is drawn at random (from `seed` and the scores), because files often hold scores in sorted order. Where
    scores repeat, several parts decide together (`several`); `draw` is the number of one of them.
    """

    fraction: float = 0.5
    seed: int = 0
    draw: int = 0
    kind: ClassVar[Kind] = Kind.CERTIFIED
    name: ClassVar[str] = "split"
    one_test: ClassVar[bool] = True

    def __post_init__(self) -> None:
        validate.real("fraction", self.fraction, above=0, below=1, remedy="0.5 chooses on half of the trials")
        validate.whole("seed", self.seed, least=0)

    def error_pairs(self, evidence: PairedRuns, alpha: float, objective: Objective) -> list[ErrorPair]:
        shuffles = Shuffles.of(evidence)
        rng = shuffles.rng(self.seed, self.draw)
        parts = [self._divide(scores, rng) for scores in (shuffles.outs, shuffles.ins)]
        (choose_out, certify_out), (choose_in, certify_in) = parts
        neighbours, size = evidence.neighbours, evidence.group_size
        chosen = _best_pair(PairedRuns(choose_out, choose_in, neighbours, size), alpha, objective).threshold
        assert chosen is not None
        rest = PairedRuns(certify_out, certify_in, neighbours, size)
        return [certified_pair(chosen, rest.counts(chosen), alpha)]

    def several(self, evidence: PairedRuns) -> tuple[Draws, tuple[Split, ...]]:
        """The parts that decide together about this evidence."""
        draws = Shuffles.of(evidence).draws
        return draws, tuple(replace(self, draw=draw) for draw in range(draws.count))

    def mirrored(self) -> Split:
        return self

    def on_rate_scale(self, evidence: PairedRuns) -> Split:
        return self

    def _divide(self, scores: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        if len(scores) < 2:
            raise InvalidInput("scores", f"{len(scores)} in one world", "at least 2 to split", "use another strategy")
        shuffled = rng.permutation(scores)
        cut = min(max(1, round(self.fraction * len(scores))), len(scores) - 1)
        return shuffled[:cut], shuffled[cut:]


@dataclass(frozen=True)
class UnionBound(DrawsNothing):
    """Several thresholds, each at its share of α; by default ranks of the scores that are fixed beforehand.

    Half of the default candidates are ranks from the top of the out-world's scores, half from the bottom of
    the in-world's. A rank is fixed before the scores are seen although the threshold is not: the rate of the
    world that defines it has a Beta law (see `upper_limit`), and given the threshold the other world's count
    is binomial. With ties the rate beyond a rank only gets smaller, so the limits stay valid.
    """

    candidates: int = 8
    thresholds: tuple[float, ...] | None = None
    kind: ClassVar[Kind] = Kind.CERTIFIED
    name: ClassVar[str] = "union-bound"
    one_test: ClassVar[bool] = False

    def __post_init__(self) -> None:
        validate.whole("candidates", self.candidates, least=2)
        for threshold in self.thresholds or ():
            validate.real("thresholds", threshold, closed="[]")
        if self.thresholds is not None and not self.thresholds:
            raise InvalidInput("thresholds", (), "at least one threshold")

    def error_pairs(self, evidence: PairedRuns, alpha: float, objective: Objective) -> list[ErrorPair]:
        if self.thresholds is not None:
            share = alpha / len(self.thresholds)
            return [certified_pair(t, evidence.counts(t), share) for t in self.thresholds]
        out_ranks = rank_grid(self.candidates // 2, len(evidence.out_scores))
        in_ranks = rank_grid(self.candidates - self.candidates // 2, len(evidence.in_scores))
        share = alpha / (len(out_ranks) + len(in_ranks))
        return [
            *(_out_rank_pair(evidence, rank, share) for rank in out_ranks),
            *(_in_rank_pair(evidence, rank, share) for rank in in_ranks),
        ]

    def mirrored(self) -> UnionBound:
        turned = None if self.thresholds is None else tuple(-t for t in self.thresholds)
        return UnionBound(self.candidates, turned)

    def on_rate_scale(self, evidence: PairedRuns) -> UnionBound:
        if self.thresholds is None:
            return self
        return UnionBound(self.candidates, tuple(_rate_score(evidence, t) for t in self.thresholds))


@dataclass(frozen=True)
class BestOnSame(DrawsNothing):
    """The best threshold on the very scores that measure it: too good to be true, hence an estimate."""

    kind: ClassVar[Kind] = Kind.ESTIMATE
    name: ClassVar[str] = "best-on-same"
    one_test: ClassVar[bool] = False

    def error_pairs(self, evidence: PairedRuns, alpha: float, objective: Objective) -> list[ErrorPair]:
        return [_best_pair(evidence, alpha, objective)]

    def mirrored(self) -> BestOnSame:
        return self

    def on_rate_scale(self, evidence: PairedRuns) -> BestOnSame:
        return self


def _rate_score(evidence: PairedRuns, threshold: float) -> float:
    """Minus the false-positive rate beyond the threshold, or about that."""
    counts = evidence.counts(threshold)
    return -(counts.fp + 0.5) / (counts.out_trials + 1.0)


def _out_rank_pair(evidence: PairedRuns, rank: int, alpha: float) -> ErrorPair:
    """The test score > (rank-th largest out-score)."""
    scores = evidence.out_scores
    threshold = float(np.partition(scores, len(scores) - rank)[len(scores) - rank])
    counts = evidence.counts(threshold)
    # With ties fewer than rank − 1 scores lie strictly above; the Beta law speaks of the rank.
    fpr_high = float(upper_limit(rank - 1, counts.out_trials, alpha / 2))
    fnr_high = float(upper_limit(counts.fn, counts.in_trials, alpha / 2))
    return ErrorPair(threshold, counts, fpr_high, fnr_high)


def _in_rank_pair(evidence: PairedRuns, rank: int, alpha: float) -> ErrorPair:
    """The test score ≥ (rank-th smallest in-score), written as score > the next number below it."""
    value = float(np.partition(evidence.in_scores, rank - 1)[rank - 1])
    threshold = float(np.nextafter(value, -np.inf))
    counts = evidence.counts(threshold)
    fpr_high = float(upper_limit(counts.fp, counts.out_trials, alpha / 2))
    # At −∞ no number lies below: the test is score > −∞, whose misses the rank does not limit.
    misses = rank - 1 if threshold < value else counts.in_trials
    fnr_high = float(upper_limit(misses, counts.in_trials, alpha / 2))
    return ErrorPair(threshold, counts, fpr_high, fnr_high)


def _best_pair(evidence: PairedRuns, alpha: float, objective: Objective) -> ErrorPair:
    """The threshold, of all that tell the scores apart, whose limits prove most (on these scores)."""
    outs, ins = np.sort(evidence.out_scores), np.sort(evidence.in_scores)
    thresholds = np.unique(np.concatenate([outs, ins]))
    thresholds = thresholds[:: -(-len(thresholds) // MOST_CANDIDATES)]
    fp = len(outs) - np.searchsorted(outs, thresholds, side="right")
    fn = np.searchsorted(ins, thresholds, side="right")
    fpr_high = upper_limit(fp, len(outs), alpha / 2)
    fnr_high = upper_limit(fn, len(ins), alpha / 2)
    best = int(np.argmax(objective(fpr_high, fnr_high)))
    threshold = float(thresholds[best])
    return ErrorPair(threshold, evidence.counts(threshold), float(fpr_high[best]), float(fnr_high[best]))
