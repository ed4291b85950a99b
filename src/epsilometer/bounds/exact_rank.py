"""The exact rank test: the default bound. Better than Clopper–Pearson at the best threshold anyone could have known.

A rank is fixed before the scores are seen; the threshold is the score that has it. The rates beyond it then have
known laws (see rank_pairs.py), so that there is no nuisance parameter and no α/2 for each rate. A grid of ranks costs a
union bound or, better, is calibrated by simulation at the least-favourable pair, which knows how the ranks depend on
each other; the error of the simulation is paid for (see simulation.py). Bounds on ε and tests of points go by that
grid; a curve is tested by what all ranks show together (see rank_sums.py), which needs fewer trials.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from epsilometer import validate
from epsilometer.arrays import Floats
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
from epsilometer.bounds.rank_sums import RankSums, null_statistics, rank_sums
from epsilometer.bounds.result import ClaimTest, Kind, LowerBound, RankSumTest, RankTest
from epsilometer.bounds.simulation import most_hits
from epsilometer.bounds.simulation import p_value as simulated_p_value
from epsilometer.bounds.ties import break_ties
from epsilometer.claims import Claim
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Counts, PairedRuns
from epsilometer.neighbours import require_same_neighbours

FEWEST_HITS = 20  # if fewer simulated audits may cross, a union bound is the better choice
PLANNING = 1999  # simulations are enough for an estimate of power, and for p-values far from α
CONFIRMING = 3  # times as many simulations decide close cases of curves, for which less is then paid


@dataclass(frozen=True)
class ExactRank:
    """How ranks are planned: a grid (default), or one `rank` from the top of the out-scores.

    The grid has half of its ranks at the top of the out-scores and half at the bottom of the in-scores, evenly
    spaced in the logarithm, so that tests with few false positives and with few false negatives are both there.
    Equal scores are put in a random order, from `seed` and the scores.
    """

    rank: int | None = None
    calibrated: bool = True
    simulations: int = 19999
    seed: int = 0
    name: ClassVar[str] = "exact-rank"
    evidence_type: ClassVar[type] = PairedRuns
    kind: ClassVar[Kind] = Kind.CERTIFIED

    def __post_init__(self) -> None:
        if self.rank is not None:
            validate.whole("rank", self.rank, least=1, remedy="1 is the highest out-score")
        validate.whole("simulations", self.simulations, least=99, most=10**7)
        validate.whole("seed", self.seed, least=0)

    def bound(
        self, evidence: PairedRuns, *, delta: float = 0.0, confidence: float = 0.95, direction: str = "higher"
    ) -> LowerBound:
        """The largest ε that is refuted at δ."""

        decided = []
        for part in require_method_input(self.name, evidence, confidence, direction, delta):
            ties = break_ties(part.evidence, self.seed)
            priced = replace(part, alpha=ties.draws.price * part.alpha)
            found = [self._bound(priced, order, delta) for order in ties.orders]
            decided.append(ties.draws.decided(found, [epsilon for epsilon, _ in found]))
        return best_reading(decided, evidence, delta, confidence, self._label(direction), self.kind)

    def test(
        self, evidence: PairedRuns, claim: Claim, *, confidence: float = 0.95, direction: str = "higher"
    ) -> ClaimTest:
        """Whether the claim is refuted: a point by the same ranks, a curve by what all ranks show together."""
        return self._tested(evidence, claim, None, confidence, direction)

    def for_family(self, reference: Claim | None) -> FamilyTest:
        """Tests of several curves that allow more and more, of which what is refuted has no gaps.

        For that they must share one statistic, chosen beforehand: the rank sum that is made for `reference`, or the
        grid of ranks if there is none.
        """
        return FamilyTest(self, reference)

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

        For a point no audit is simulated: the least strength that the test refutes fixes a boundary of rank pairs, and
        an attack crosses it or not. For a curve, what such attacks show is simulated.
        """
        alpha = 1.0 - validate.confidence(confidence)
        if self._adds_up(claim, alpha):
            statistic = rank_sums(claim, group_size, out_trials, in_trials, self.seed)
            null = null_statistics(statistic, claim, group_size, self.simulations, self.seed)
            least = null[self.simulations - 1 - most_hits(self.simulations, alpha)]
            return float(np.mean(statistic.statistic(statistic.simulated(truth, 1, PLANNING, [self.seed, 5])) > least))
        ranks = self._ranks(out_trials, in_trials)
        family = family_of(claim, group_size)
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
    def _tested(
        self, evidence: PairedRuns, claim: Claim, family: FamilyTest | None, confidence: float, direction: str
    ) -> ClaimTest:
        require_same_neighbours("the claim", claim.neighbours, "the evidence", evidence.neighbours)
        tests = []
        for part in require_method_input(self.name, evidence, confidence, direction):
            reference = claim if family is None else family.reference
            ties = break_ties(part.evidence, self.seed)
            priced = replace(part, alpha=ties.draws.price * part.alpha)
            found: list[RankTest | RankSumTest] = []
            for order in ties.orders:
                # Where so many show nothing at all, the others cannot bring the p-value below 1.
                if sum(proof.p_value >= ties.draws.price for proof in found) > len(ties.orders) - ties.draws.needed:
                    break
                if reference is not None and self._adds_up(claim, priced.alpha):
                    found.append(self._test_sums(priced, order, claim, reference, of_family=family is not None))
                else:
                    found.append(self._test_grid(priced, order, claim))
            decisive = ties.draws.decided(found, [-proof.p_value for proof in found])
            proof = replace(decisive, p_value=min(1.0, decisive.p_value / ties.draws.price))
            tests.append(ClaimTest(
                refuted=decisive.p_value <= priced.alpha,
                claim=claim,
                confidence=confidence,
                method=self._label(direction, sums=proof.of_sums),
                kind=self.kind,
                proof=proof,
                claimed_tpr=float(claim.max_tpr(proof.counts.fpr, evidence.group_size)),
            ))  # fmt: skip
        return strongest(tests)

    def _bound(self, part: OneWay, ordered: PairedRuns, delta: float) -> tuple[float, RankTest]:
        alpha = part.alpha
        ranks = self._ranks(len(ordered.out_scores), len(ordered.in_scores))
        family = Points(delta, ordered.group_size)
        graded = ranks.grades(ordered, family, alpha / ranks.tests)
        best, epsilon = int(np.argmax(graded)), float(graded.max())
        if epsilon > 0 and self._simulates(ranks, alpha):
            u, v = self._boundary_draws(ranks, family, epsilon, alpha)
            epsilon = family.quantile(u, v, most_hits(self.simulations, alpha))
        elif epsilon > 0:
            epsilon = total_strength(*ranks.boundary(family, epsilon, alpha / ranks.tests), ranks, family, alpha)
        return epsilon, _rank_proof(part, ordered, ranks, best, alpha)

    def _test_grid(self, part: OneWay, ordered: PairedRuns, claim: Claim) -> RankTest:
        ranks = self._ranks(len(ordered.out_scores), len(ordered.in_scores))
        family = family_of(claim, ordered.group_size)
        graded = ranks.grades(ordered, family, part.alpha / ranks.tests)
        p_value = self._p_value(ranks, family, float(graded.max()), claim, ordered.group_size, part.alpha)
        return _rank_proof(part, ordered, ranks, int(np.argmax(graded)), p_value)

    def _test_sums(
        self, part: OneWay, ordered: PairedRuns, claim: Claim, reference: Claim, of_family: bool
    ) -> RankSumTest:
        n, m, size = len(ordered.out_scores), len(ordered.in_scores), ordered.group_size
        statistic = rank_sums(reference, size, n, m, self.seed, of_family)
        shown = statistic.shown(ordered)
        p_value = self._sums_p_value(statistic, float(statistic.statistic(shown)[0]), claim, size, part.alpha)
        k = statistic.most_telling(shown)
        rank, above = int(statistic.ranks[k]), int(shown[0, k])
        threshold = float(np.sort(part.evidence.out_scores)[n - rank])
        return RankSumTest(
            threshold=threshold if part.higher else -threshold,
            counts=Counts(above, rank - 1, m - above, n + 1 - rank, ordered.relation, size, ordered.unit),
            decided_by=statistic.decided_by(shown),
            p_value=p_value,
            higher=part.higher,
            ties=ordered is not part.evidence,
        )

    def _sums_p_value(self, statistic: RankSums, seen: float, claim: Claim, size: int, alpha: float) -> float:
        """The probability under `claim` of so large a statistic; simulated at length only where it is close to α."""
        p_value = 1.0
        for simulations in (min(PLANNING, self.simulations), self.simulations, CONFIRMING * self.simulations):
            null = null_statistics(statistic, claim, size, simulations, self.seed)
            hits = simulations - int(np.searchsorted(null, seen, side="left"))
            p_value = simulated_p_value(hits, simulations)
            # Few simulations refute only what is clear: a seed may be unlucky in so few.
            if p_value <= alpha / 2 or hits - 4.0 * np.sqrt(hits + 1.0) > alpha * simulations:
                break
        return p_value

    def _adds_up(self, claim: Claim, alpha: float) -> bool:
        """Whether all ranks are tested together: curves, unless a rank is planned or α too small to simulate."""
        simulates = self.calibrated and most_hits(self.simulations, alpha) >= FEWEST_HITS
        return self.rank is None and simulates and claim.only_delta is None

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
            # More trials tell neighbouring ranks apart, so that more of them are worth their price.
            few, many = math.log10(min(n, m) / 1e3), math.log10(min(n, m) / 1e5)
            each = round(min(6.0 + 2.0 * max(few, 0.0) + 4.0 * max(many, 0.0), 16.0))
            return Ranks(n, m, rank_grid(each, n, deepest=0.4), rank_grid(each, m, deepest=0.4))
        if self.rank > n:
            raise InvalidInput("rank", self.rank, f"at most the {n} trials of the out-world")
        return Ranks(n, m, (self.rank,), ())

    def _label(self, direction: str, sums: bool = False) -> str:
        if self.rank is not None:
            how = f"rank {self.rank}"
        elif sums:
            how = "rank sums"
        else:
            how = "grid of ranks" if self.calibrated else "grid of ranks, union bound"
        return f"{self.name} ({how}{MEANING[direction]})"


@dataclass(frozen=True)
class FamilyTest:
    """Exact rank tests with the statistic of one claim (see `ExactRank.for_family`)."""

    method: ExactRank
    reference: Claim | None

    def test(
        self, evidence: PairedRuns, claim: Claim, *, confidence: float = 0.95, direction: str = "higher"
    ) -> ClaimTest:
        return self.method._tested(evidence, claim, self, confidence, direction)


def _rank_proof(part: OneWay, ordered: PairedRuns, ranks: Ranks, best: int, p_value: float) -> RankTest:
    """The rank that says most, in the words of the scores as they were given."""
    a, b = (int(pair[best]) for pair in ranks.shown(ordered))
    of_out = best < len(ranks.out_top)
    if of_out:
        threshold = float(np.sort(part.evidence.out_scores)[ranks.n - a])
    else:
        threshold = float(np.sort(part.evidence.in_scores)[ranks.m - b])
    return RankTest(
        threshold=threshold if part.higher else -threshold,
        counts=Counts(b, a - 1, ranks.m - b, ranks.n + 1 - a, ordered.relation, ordered.group_size, ordered.unit),
        rank=a if of_out else ranks.m + 1 - b,
        of="out" if of_out else "in",
        p_value=p_value,
        higher=part.higher,
        ties=ordered is not part.evidence,
    )


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
    ε ≥ 3.476 at δ = 1e-05 (add-remove), certified, 0.95 confidence, exact-rank (grid of ranks)
    """
    method = ExactRank(rank=rank, calibrated=calibrated, seed=seed)
    return method.bound(evidence, delta=delta, confidence=confidence, direction=direction)
