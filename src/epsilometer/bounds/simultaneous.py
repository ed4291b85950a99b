"""Bands on both distributions that hold at every threshold at once, for whoever wants to look at all of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.bounds.rank_pairs import order_statistics, rank_grid
from epsilometer.bounds.result import ErrorPair, Kind
from epsilometer.bounds.simulation import most_hits
from epsilometer.bounds.thresholds import DrawsNothing, Objective
from epsilometer.evidence import Counts, PairedRuns

MOST_RANKS = 64  # ranks between those get the limit of the next


@dataclass(frozen=True)
class Simultaneous(DrawsNothing):
    """Equal-local-level bands: each world's order statistics are Beta distributed, and all limits share one level.

    The level is the largest at which, with probability 1 − α/2 for each world, no limit fails anywhere; it is found
    by simulating uniform order statistics, and the simulation's own error is paid for. This costs about
    log log n where a union bound over all thresholds costs log n.
    """

    simulations: int = 2999
    seed: int = 0
    kind: ClassVar[Kind] = Kind.CERTIFIED
    name: ClassVar[str] = "simultaneous"
    one_test: ClassVar[bool] = False

    def __post_init__(self) -> None:
        validate.whole("simulations", self.simulations, least=999, most=10**6)
        validate.whole("seed", self.seed, least=0)

    def error_pairs(self, evidence: PairedRuns, alpha: float, objective: Objective) -> list[ErrorPair]:
        outs, ins = np.sort(evidence.out_scores)[::-1], np.sort(evidence.in_scores)
        out_ranks, out_limits = _band(len(outs), alpha / 2, self.simulations, self.seed)
        in_ranks, in_limits = _band(len(ins), alpha / 2, self.simulations, self.seed)
        thresholds = np.unique(np.r_[outs[out_ranks - 1], ins[in_ranks - 1]])
        # FPR(t) ≤ the limit of the first rank whose score is not above t; FNR likewise from below.
        fpr_high = np.r_[out_limits, 1.0][np.searchsorted(-outs[out_ranks - 1], -thresholds, side="left")]
        fnr_high = np.r_[in_limits, 1.0][np.searchsorted(ins[in_ranks - 1], thresholds, side="right")]
        fp = np.searchsorted(-outs, -thresholds, side="left")  # strictly above
        fn = np.searchsorted(ins, thresholds, side="right")
        of = (evidence.relation, evidence.group_size, evidence.unit)
        counts = [
            Counts(len(ins) - int(n), int(p), int(n), len(outs) - int(p), *of) for p, n in zip(fp, fn, strict=True)
        ]
        return [
            ErrorPair(float(t), one, float(fpr), float(fnr))
            for t, one, fpr, fnr in zip(thresholds, counts, fpr_high, fnr_high, strict=True)
        ]

    def mirrored(self) -> Simultaneous:
        return self

    def on_rate_scale(self, evidence: PairedRuns) -> Simultaneous:
        return self


@functools.lru_cache(maxsize=64)
def _band(trials: int, alpha: float, simulations: int, seed: int) -> tuple[np.ndarray, Floats]:
    """Ranks from the end, and limits on the tail probabilities beyond them that hold at once."""
    ranks = rank_grid(MOST_RANKS, trials, deepest=1.0) if trials > MOST_RANKS else tuple(range(1, trials + 1))
    a = np.array(ranks, np.float64)
    drawn = order_statistics(ranks, trials, simulations, seed)
    # A limit at local level p fails in a simulation iff its tail p-value is below p somewhere.
    smallest = np.sort(special.betaincc(a, trials - a + 1, drawn).min(axis=1))
    allowed = most_hits(simulations, alpha)
    level = smallest[allowed] if allowed >= 0 else alpha / len(ranks)
    return np.array(ranks), special.betainccinv(a, trials - a + 1, level)
