"""The exact rank test: the default bound. Better than Clopper–Pearson at the best threshold anyone could have known.

A rank is fixed before the scores are seen; the threshold is the score that has it. The rates beyond it then have
known laws (see rank_pairs.py), so that there is no nuisance parameter and no α/2 for each rate. A grid of ranks costs a
union bound or, better, is calibrated by simulation at the least-favourable pair, which knows how the ranks depend on
each other; the error of the simulation is paid for (see chance.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from epsilometer import checks
from epsilometer.bounds.chance import most_hits
from epsilometer.bounds.chance import p_value as simulated_p_value
from epsilometer.bounds.method import MEANING, OneWay, best_reading, require_method_input, strongest
from epsilometer.bounds.rank_pairs import (
    Family,
    Points,
    Ranks,
    Single,
    family_of,
    rank_grid,
    total_p_value,
    total_strength,
)
from epsilometer.bounds.result import ClaimTest, Kind, LowerBound, RankTest
from epsilometer.claims import Claim, Floats, require_same_relation
from epsilometer.errors import InvalidInput
from epsilometer.evidence import PairedRuns

FEWEST_HITS = 20  # if fewer simulated audits may cross, a union bound is the better choice
CANDIDATES = 8
PLANNING = 1999  # simulations are enough for an estimate of power


@dataclass(frozen=True)
class ExactRank:
    """How ranks are planned: a grid (default), or one `rank` from the top of the out-scores.

    The grid has half of its ranks at the top of the out-scores and half at the bottom of the in-scores, evenly
    spaced in the logarithm, so that tests with few false positives and with few false negatives are both there.
    """

    rank: int | None = None
    calibrated: bool = True
    simulations: int = 19999
    seed: int = 0
    name: ClassVar[str] = "exact-rank"
    takes: ClassVar[type] = PairedRuns
    kind: ClassVar[Kind] = Kind.CERTIFIED

    def __post_init__(self) -> None:
        if self.rank is not None:
            checks.whole("rank", self.rank, least=1, remedy="1 is the highest out-score")
        checks.whole("simulations", self.simulations, least=99, most=10**7)
        checks.whole("seed", self.seed, least=0)

    def bound(
        self, evidence: PairedRuns, *, delta: float = 0.0, confidence: float = 0.95, direction: str = "higher"
    ) -> LowerBound:
        """The largest ε that is refuted at δ."""

        def one_way(part: OneWay) -> tuple[float, RankTest]:
            return self._bound(part.evidence, delta, part.alpha, part.higher)

        return best_reading(self, evidence, delta, confidence, direction, self._label, one_way)

    def test(
        self, evidence: PairedRuns, claim: Claim, *, confidence: float = 0.95, direction: str = "higher"
    ) -> ClaimTest:
        """Whether the claim is refuted, by the same ranks."""
        require_same_relation("the claim", claim.relation, "the evidence", evidence.relation)
        parts = require_method_input(self.name, evidence, confidence, direction)
        return strongest([
            self._test(part.evidence, claim, part.alpha, part.higher, confidence, direction) for part in parts
        ])  # fmt: skip

    def power(
        self,
        claim: Claim,
        truth: Claim,
        *,
        out_trials: int,
        in_trials: int,
        confidence: float = 0.95,
        group_size: int = 1,
    ) -> float:
        """The probability that so many trials refute `claim` when the attack attains the curve `truth`.

        No audit is simulated: the least strength that the test refutes fixes a boundary of rank pairs, and an
        attack crosses it or not.
        """
        ranks = self._ranks(out_trials, in_trials)
        family, alpha = family_of(claim, group_size), 1.0 - checks.confidence(confidence)
        rough = replace(self, simulations=min(self.simulations, PLANNING))

        def refuted(strength: float) -> bool:
            if not self._simulates(ranks, alpha):
                return self._p_value(ranks, family, strength, claim, group_size, alpha) <= alpha
            u, v = rough._boundary_draws(ranks, family, strength, alpha)
            return _crossing(claim, u, v, group_size) <= most_hits(self.simulations, alpha) / self.simulations

        low, high = 0.0, family.most
        if not refuted(high):
            return 0.0
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (low, middle) if refuted(middle) else (middle, high)
        return _crossing(truth, *rough._boundary_draws(ranks, family, high, alpha), 1)

    def as_seen_by(self, evidence: PairedRuns) -> ExactRank:
        return self

    # -------------------------------------------------------------------------------------------- one direction
    def _bound(self, evidence: PairedRuns, delta: float, alpha: float, higher: bool) -> tuple[float, RankTest]:
        ranks = self._ranks(len(evidence.out_scores), len(evidence.in_scores))
        family = Points(delta, evidence.group_size)
        graded = ranks.grades(evidence, family, alpha / ranks.tests)
        best, epsilon = int(np.argmax(graded)), float(graded.max())
        if epsilon > 0 and self._simulates(ranks, alpha):
            u, v = self._boundary_draws(ranks, family, epsilon, alpha)
            epsilon = family.quantile(u, v, most_hits(self.simulations, alpha))
        elif epsilon > 0:
            epsilon = total_strength(*ranks.boundary(family, epsilon, alpha / ranks.tests), ranks, family, alpha)
        return epsilon, self._proof(evidence, ranks, best, alpha, higher)

    def _test(
        self, evidence: PairedRuns, claim: Claim, alpha: float, higher: bool, confidence: float, direction: str
    ) -> ClaimTest:
        ranks = self._ranks(len(evidence.out_scores), len(evidence.in_scores))
        family = family_of(claim, evidence.group_size)
        graded = ranks.grades(evidence, family, alpha / ranks.tests)
        best = int(np.argmax(graded))
        p_value = self._p_value(ranks, family, float(graded.max()), claim, evidence.group_size, alpha)
        proof = self._proof(evidence, ranks, best, p_value, higher)
        return ClaimTest(
            refuted=p_value <= alpha,
            claim=claim,
            confidence=confidence,
            method=self._label(direction),
            kind=self.kind,
            proof=proof,
            claimed_tpr=float(claim.max_tpr(proof.counts.fpr, evidence.group_size)),
        )

    def _p_value(
        self, ranks: Ranks, family: Family, strength: float, claim: Claim, group_size: int, alpha: float
    ) -> float:
        """The probability under `claim` that some rank shows as much as `strength`."""
        if strength <= 0:
            return 1.0
        if not self._simulates(ranks, alpha):
            a, b = ranks.boundary(family, strength, alpha / ranks.tests)
            return min(1.0, total_p_value(a, b, ranks, Single(claim, group_size)))
        u, v = self._boundary_draws(ranks, family, strength, alpha)
        return simulated_p_value(round(_crossing(claim, u, v, group_size) * len(u)), self.simulations)

    def _boundary_draws(self, ranks: Ranks, family: Family, strength: float, alpha: float) -> tuple[Floats, Floats]:
        a, b = ranks.boundary(family, strength, alpha / ranks.tests)
        return ranks.simulate(a, b, self.simulations, self.seed)

    def _simulates(self, ranks: Ranks, alpha: float) -> bool:
        return self.calibrated and ranks.tests > 1 and most_hits(self.simulations, alpha) >= FEWEST_HITS

    def _ranks(self, n: int, m: int) -> Ranks:
        if self.rank is None:
            half = CANDIDATES // 2
            return Ranks(n, m, rank_grid(half, n), rank_grid(half, m))
        if self.rank > n:
            raise InvalidInput("rank", self.rank, f"at most the {n} trials of the out-world")
        return Ranks(n, m, (self.rank,), ())

    def _proof(self, evidence: PairedRuns, ranks: Ranks, best: int, p_value: float, higher: bool) -> RankTest:
        """The rank that says most, in the words of the scores as they were given."""
        of_out = best < len(ranks.out_top)
        if of_out:
            rank = ranks.out_top[best]
            threshold = float(np.sort(evidence.out_scores)[len(evidence.out_scores) - rank])
            counts = evidence.counts(threshold)
        else:
            rank = ranks.in_bottom[best - len(ranks.out_top)]
            threshold = float(np.sort(evidence.in_scores)[rank - 1])
            below = np.nextafter(threshold, -np.inf)  # scores at the threshold itself count as members here
            counts = evidence.counts(below)
        return RankTest(
            threshold=threshold if higher else -threshold,
            counts=counts,
            rank=rank,
            of="out" if of_out else "in",
            p_value=p_value,
            higher=higher,
        )

    def _label(self, direction: str) -> str:
        if self.rank is not None:
            how = f"rank {self.rank}"
        else:
            how = "grid of ranks" if self.calibrated else "grid of ranks, union bound"
        return f"{self.name} ({how}{MEANING[direction]})"


def _crossing(claim: Claim, u: Floats, v: Floats, group_size: int) -> float:
    """The share of simulated audits that cross the boundary when the ROC is the claim's."""
    return float(np.mean(np.any(v < claim.max_tpr(u, group_size), axis=1)))


def exact_rank(
    evidence: PairedRuns,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    rank: int | None = None,
    calibrated: bool = True,
    direction: str = "higher",
    seed: int = 0,
) -> LowerBound:
    """The certified ε of a rank test on scores (see `ExactRank`).

    >>> rng = np.random.default_rng(0)
    >>> print(exact_rank(PairedRuns(rng.normal(size=1000), rng.normal(2, size=1000)), delta=1e-5))
    ε ≥ 3.391 at δ = 1e-05 (add-remove), certified, 0.95 confidence, exact-rank (grid of ranks)
    """
    method = ExactRank(rank=rank, calibrated=calibrated, seed=seed)
    return method.bound(evidence, delta=delta, confidence=confidence, direction=direction)
