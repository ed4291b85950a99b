"""The mathematics of rank tests: what it means that the b-th highest in-score is above the a-th highest out-score.

Read every score as the out-world's tail probability beyond it. The out-scores become n uniform numbers U, and the
in-scores come from m uniform numbers V through the ROC curve: in-score b lies above out-score a iff V₍b₎ < ROC(U₍a₎).
A claim says ROC ≤ g, so

    P[in₍b₎ > out₍a₎] ≤ P[V₍b₎ < g(U₍a₎)],   U₍a₎ ~ Beta(a, n−a+1), V₍b₎ ~ Beta(b, m−b+1), independent,

and likewise for any set of pairs at once: the pair of worlds whose ROC *is* g is the least favourable. Nothing is
estimated and nothing assumed. With ties "above" is strict, which only loses events: breaking them at random makes the
scores continuous, and its ROC is at most g because g is concave.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special

from epsilometer.arrays import Floats
from epsilometer.bounds.rates import epsilon_from_rates
from epsilometer.claims import Claim, group_max_tpr
from epsilometer.evidence import PairedRuns

# What is integrated grows with the rate. So the sum of each cell's probability times the value at its upper end is
# never too small: p-values that certify use it, on cells of 2 % of a standard deviation. To grade ranks against
# each other, trapezoids on 61 nodes are good enough.
_FINE = np.linspace(-7.5, 7.5, 701)
_CELLS = np.diff(np.r_[0.0, special.ndtr(_FINE), 1.0])
_COARSE = np.linspace(-7.0, 7.0, 61)
_WEIGHTS = np.exp(-0.5 * _COARSE**2) / np.exp(-0.5 * _COARSE**2).sum()


class Family(Protocol):
    """Claims ordered by one strength: a larger strength allows more. Grades ranks against each other."""

    @property
    def most(self) -> float:
        """A strength that is hopeless to refute."""

    def max_tpr(self, strength: Floats, fpr: Floats) -> Floats: ...


@dataclass(frozen=True)
class Points:
    """(ε, δ) at one δ, for worlds that differ in `group_size` records; the strength is ε."""

    delta: float
    group_size: int = 1
    most: float = 64.0

    def max_tpr(self, strength: Floats | np.float64, fpr: Floats) -> Floats:
        return group_max_tpr(fpr, strength, self.delta, self.group_size)

    def quantile(self, u: Floats, v: Floats, hits: int) -> float:
        """The largest ε at which no more than `hits` of the simulated audits (rows) cross: some v below g(u).

        An audit crosses at every ε above the smallest that one of its pairs needs.
        """
        if self.group_size == 1:
            needed = epsilon_from_rates(u, 1.0 - v, self.delta).min(axis=1)
            return float(np.partition(needed, hits)[hits])
        low, high = 0.0, self.most
        for _ in range(28):
            middle = (low + high) / 2
            crossing = np.any(v < self.max_tpr(np.float64(middle), u), axis=1)
            low, high = (middle, high) if np.count_nonzero(crossing) <= hits else (low, middle)
        return low


@dataclass(frozen=True)
class Gaussians:
    """μ-Gaussian DP; the strength is μ."""

    most: float = 32.0

    def max_tpr(self, strength: Floats, fpr: Floats) -> Floats:
        rates: Floats = special.ndtr(special.ndtri(fpr) + strength)
        return rates


def family_of(claim: Claim, group_size: int) -> Points | Gaussians:
    """By what the ranks' findings are graded when that claim is tested; any family gives a valid test."""
    return Gaussians() if claim.only_delta is None else Points(claim.only_delta, group_size)


@dataclass(frozen=True)
class Ranks:
    """Which tests are planned: ranks from the top of the out-scores, and from the bottom of the in-scores."""

    n: int  # trials of the out-world
    m: int  # trials of the in-world
    out_top: tuple[int, ...]
    in_bottom: tuple[int, ...]

    @property
    def tests(self) -> int:
        return len(self.out_top) + len(self.in_bottom)

    def shown(self, evidence: PairedRuns) -> tuple[Floats, Floats]:
        """The best pair (a, b) that each test has shown; b = 0 or a = n + 1 if it has shown none."""
        out = np.sort(evidence.out_scores)[::-1]
        member = np.sort(evidence.in_scores)[::-1]
        a1 = np.array(self.out_top, np.int64)
        b2 = self.m + 1 - np.array(self.in_bottom, np.int64)
        b1 = np.searchsorted(-member, -out[a1 - 1], side="left")  # in-scores strictly above
        a2 = np.searchsorted(-out, -member[b2 - 1], side="right") + 1  # the first out-score strictly below
        return np.r_[a1, a2].astype(np.float64), np.r_[b1, b2].astype(np.float64)

    def grades(self, evidence: PairedRuns, family: Family, level: float) -> Floats:
        """About the strength that each test refutes alone; graded as `boundary` does, so that the two agree."""
        a, b = self.shown(evidence)
        split = len(self.out_top)
        by_out = self._of_out.strengths(b[:split], family, level)
        by_in = self._of_in.strengths(self.n + 1 - a[split:], family, level)
        return np.concatenate([by_out, by_in])

    def boundary(self, family: Family, strength: float, level: float) -> tuple[Floats, Floats]:
        """The weakest pair of each test that is as rare as `level` at that strength; b = m + 1 if there is none."""
        b1 = self._of_out.fewest(family, strength, level)
        a2 = self.n + 1.0 - self._of_in.fewest(family, strength, level)
        return np.r_[np.array(self.out_top, np.float64), a2], np.r_[b1, self.m + 1.0 - np.array(self.in_bottom)]

    @functools.cached_property
    def _of_out(self) -> _Graded:
        return _Graded.of(self.out_top, self.n, self.m)

    @functools.cached_property
    def _of_in(self) -> _Graded:
        """A test of in-ranks is a test of out-ranks with the worlds exchanged and the order turned."""
        return _Graded.of(self.in_bottom, self.m, self.n)

    def simulate(self, a: Floats, b: Floats, simulations: int, seed: int) -> tuple[Floats, Floats]:
        """Joint draws of (U₍a₎, V₍b₎), one row a simulation. A pair that cannot be shown gets (0, 1)."""
        possible = (a >= 1) & (b <= self.m)
        u, v = np.zeros((simulations, len(a))), np.ones((simulations, len(a)))
        if possible.any():
            whole = (tuple(a[possible].astype(int).tolist()), tuple(b[possible].astype(int).tolist()))
            u[:, possible] = order_statistics(whole[0], self.n, simulations, 2 * seed)
            v[:, possible] = order_statistics(whole[1], self.m, simulations, 2 * seed + 1)
        return u, v


@functools.lru_cache(maxsize=4096)
def rank_grid(size: int, trials: int, deepest: float = 0.3) -> tuple[int, ...]:
    """About `size` ranks from 1 to `deepest`·trials, evenly spaced in the logarithm.

    >>> rank_grid(4, 1000)
    (1, 7, 45, 300)
    """
    ranks = np.geomspace(1.0, max(1.0, deepest * trials), size)
    return tuple(sorted({int(rank) for rank in np.rint(ranks)}))


@dataclass(frozen=True)
class _Graded:
    """Planned ranks of one world against all counts that they may show: p-values good enough for grades.

    The nodes depend on the planned ranks only, never on what they show: so p-values fall with every score that is
    shown, grades rise, and what was shown never lies outside its own boundary. (Nodes for the narrower of the two
    laws would integrate better, and made grades jump where the choice changed: such a boundary could exclude
    the very pair that defined it, and false accusations followed.)
    """

    rates: Floats  # (ranks, nodes)
    trials: int  # of the other world

    @classmethod
    def of(cls, ranks: tuple[int, ...], size: int, trials: int) -> _Graded:
        a = np.array(ranks, np.float64)[:, None]
        return cls(_beta_quantiles(a, size + 1 - a, _COARSE), trials)

    def p_values(self, shown: Floats, family: Family, strength: Floats | float) -> Floats:
        """About P[so many scores of the other world lie beyond the rank], at a strength each."""
        allowed = family.max_tpr(np.asarray(strength, np.float64)[..., None], self.rates)
        b = np.clip(shown, 1, self.trials)[:, None]
        values: Floats = special.betainc(b, self.trials + 1 - b, np.clip(allowed, 0.0, 1.0)) @ _WEIGHTS
        return np.where(shown < 1, 1.0, values)

    def strengths(self, shown: Floats, family: Family, level: float) -> Floats:
        """About the strength that each rank refutes at `level`, or 0: a grade, not a proof."""
        low, high = np.zeros(len(shown)), np.full(len(shown), family.most)
        for _ in range(30):
            middle = (low + high) / 2
            refuted = self.p_values(shown, family, middle) <= level
            low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
        return low

    def fewest(self, family: Family, strength: float, level: float) -> Floats:
        """The least count with a p-value of at most `level`; one more than there are trials if there is none."""
        low, high = np.zeros(len(self.rates)), np.full(len(self.rates), self.trials + 1.0)
        while np.any(high - low > 1):
            middle = np.floor((low + high) / 2)
            rare = self.p_values(middle, family, strength) <= level
            low, high = np.where(rare, low, middle), np.where(rare, middle, high)
        return high


def p_values(a: Floats, b: Floats, n: int, m: int, family: Family, strength: Floats | float) -> Floats:
    """P[V₍b₎ < g(U₍a₎)] for each pair, at a strength each: never too small, and too large by 6 % at most."""
    return _Nodes.of(a, b, n, m).p_values(family, strength)


def total_p_value(a: Floats, b: Floats, ranks: Ranks, family: Family) -> float:
    """The pairs' p-values added up: a limit on the probability that any of them is shown."""
    return float(_possible(a, b, ranks).p_values(family, 0.0).sum())


def total_strength(a: Floats, b: Floats, ranks: Ranks, family: Family, level: float) -> float:
    """The strength at which the pairs' p-values add up to `level`: what a union bound over them refutes."""
    nodes = _possible(a, b, ranks)
    low, high = 0.0, family.most
    if nodes.p_values(family, low).sum() > level:
        return low
    for _ in range(32):
        middle = (low + high) / 2
        low, high = (middle, high) if nodes.p_values(family, middle).sum() <= level else (low, middle)
    return low


def _possible(a: Floats, b: Floats, ranks: Ranks) -> _Nodes:
    """Quadrature for those pairs that could ever be shown."""
    possible = (a >= 1) & (b <= ranks.m)
    return _Nodes.of(a[possible], b[possible], ranks.n, ranks.m)


@dataclass(frozen=True)
class Single:
    """One claim in the clothes of a family."""

    claim: Claim
    group_size: int
    most: float = 0.0

    def max_tpr(self, strength: Floats, fpr: Floats) -> Floats:
        return self.claim.max_tpr(fpr, self.group_size)


@dataclass(frozen=True)
class _Nodes:
    """Quadrature for pairs: over U or, since claims are symmetric (V < g(U) iff 1−U < g(1−V)), over 1 − V.

    The narrower of the two carries the nodes, so that what is integrated is smooth between them.
    """

    rates: Floats  # (pairs, nodes): of U, or of 1 − V
    c: Floats  # the other number's Beta law, counted from the same side: the p-value is E[I(g(rates); c, d)]
    d: Floats

    @classmethod
    def of(cls, a: Floats, b: Floats, n: int, m: int) -> _Nodes:
        over_u = 1 / a + 1 / (n + 1 - a) <= 1 / b + 1 / (m + 1 - b)
        first = np.where(over_u, a, m + 1 - b)[:, None]
        second = np.where(over_u, n + 1 - a, b)[:, None]
        return cls(
            rates=np.concatenate([_beta_quantiles(first, second, _FINE), np.ones((len(a), 1))], axis=1),
            c=np.where(over_u, b, n + 1 - a)[:, None],
            d=np.where(over_u, m + 1 - b, a)[:, None],
        )

    def p_values(self, family: Family, strength: Floats | float) -> Floats:
        allowed = family.max_tpr(np.asarray(strength, np.float64)[..., None], self.rates)
        values: Floats = special.betainc(self.c, self.d, np.clip(allowed, 0.0, 1.0)) @ _CELLS
        return values


def _beta_quantiles(c: Floats, d: Floats, z: Floats) -> Floats:
    """Quantiles of Beta(c, d) at Φ(z), each from the tail in which it keeps its precision."""
    lower = special.betaincinv(c, d, special.ndtr(z[z < 0]))
    upper = special.betainccinv(c, d, special.ndtr(-z[z >= 0]))
    return np.concatenate([lower, upper], axis=1)


@functools.lru_cache(maxsize=32)
def order_statistics(ranks: tuple[int, ...], size: int, simulations: int, seed: int) -> Floats:
    """Joint draws of the given order statistics of `size` uniform numbers, from gamma-distributed spacings."""
    distinct = sorted(set(ranks))
    spacings = np.diff([0, *distinct, size + 1])
    rng = np.random.default_rng([seed, size])
    sums = np.cumsum(rng.standard_gamma(spacings, (simulations, len(spacings))), axis=1)
    drawn = sums[:, :-1] / sums[:, -1:]
    drawn = drawn[:, [distinct.index(rank) for rank in ranks]]
    drawn.flags.writeable = False
    return drawn
