"""Soundness of rank tests: what was shown lies inside its own boundary, and no boundary is crossed too easily."""

import numpy as np
import pytest
from scipy import special

from epsilometer import PairedRuns, PointClaim
from epsilometer.bounds import ExactRank
from epsilometer.bounds.rank_pairs import Gaussians, Points, Ranks, Single, total_p_value

ALPHA = 0.05


def exact_p_value(a: float, b: float, n: int, m: int, claim: PointClaim) -> float:
    """P[V₍b₎ < g(U₍a₎)] by Gauss–Legendre on pieces between which the curve has its kink, over the narrower law."""
    if 1 / a + 1 / (n + 1 - a) > 1 / b + 1 / (m + 1 - b):  # V < g(U) iff 1 − U < g(1 − V)
        a, b, n, m = m + 1 - b, n + 1 - a, m, n
    corner = (1 - claim.delta) / (1 + np.exp(claim.epsilon))
    kink = special.ndtri(np.clip(special.betainc(a, n + 1 - a, corner), 1e-300, 1 - 1e-16))
    cuts = np.unique(np.r_[np.linspace(-9, 9, 181), np.clip(kink, -9, 9)])
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = np.diff(cuts)[:, None] / 2
    z = (cuts[:-1, None] + half * (1 + nodes)).ravel()
    w = (half * weights).ravel() * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    rates = np.where(
        z < 0, special.betaincinv(a, n + 1 - a, special.ndtr(z)), special.betainccinv(a, n + 1 - a, special.ndtr(-z))
    )
    return float(special.betainc(b, m + 1 - b, claim.max_tpr(rates)) @ w)


def random_setting(rng: np.random.Generator, pairs: int = 50) -> tuple[Ranks, np.ndarray, np.ndarray, float]:
    """Sizes from 1 to 10⁵, most of them very unequal; planned ranks of both worlds; what they have shown; an ε."""
    n, m = (int(10 ** rng.uniform(0, 5)) for _ in range(2))
    out_top, in_bottom = ([int(size ** rng.random()) for _ in range(pairs)] for size in (n, m))
    ranks = Ranks(n, m, tuple(out_top), tuple(in_bottom))
    a = np.r_[out_top, n + 1 - np.ceil(n ** rng.random(pairs))]
    b = np.r_[np.ceil(m ** rng.random(pairs)), m + 1 - np.array(in_bottom)]
    complement = rng.random(2 * pairs) < 0.5  # counts near all are what a strong attack shows
    b[:pairs] = np.where(complement[:pairs], m + 1 - b[:pairs], b[:pairs])
    a[pairs:] = np.where(complement[pairs:], n + 1 - a[pairs:], a[pairs:])
    return ranks, a, b, float(rng.uniform(0, 14))


@pytest.mark.parametrize("family", [Points(0.0), Points(1e-5), Points(1e-3, 3), Gaussians()], ids=repr)
def test_what_was_shown_never_lies_outside_its_own_boundary(family) -> None:
    """12,000 pairs in all. With nodes that depended on what was shown, many did."""
    rng = np.random.default_rng(20)
    for _ in range(30):
        ranks, a, b, _ = random_setting(rng)
        split, level = len(ranks.out_top), 10 ** rng.uniform(-4, -1)
        grades = np.r_[
            ranks._of_out.strengths(b[:split], family, level),
            ranks._of_in.strengths(ranks.n + 1 - a[split:], family, level),
        ]
        for grade in np.unique(grades[grades > 0])[::12]:
            bound_a, bound_b = ranks.boundary(family, float(grade), level)
            inside = (a <= bound_a) & (b >= bound_b)
            assert inside[grades >= grade].all()


@pytest.mark.parametrize("family", [Points(0.0), Points(0.01, 2), Gaussians()], ids=repr)
def test_grades_rise_with_every_score_that_is_shown(family) -> None:
    rng = np.random.default_rng(21)
    for _ in range(12):
        ranks, *_ = random_setting(rng, 4)
        for graded, most in ((ranks._of_out, ranks.m), (ranks._of_in, ranks.n)):
            counts = np.unique(np.rint(np.geomspace(1, most, 20)))
            counts = np.unique(np.r_[counts, most + 1 - counts])
            grades = [graded.strengths(np.full(len(graded.rates), k), family, 0.05) for k in counts]
            assert (np.diff(grades, axis=0) >= 0).all()


@pytest.mark.parametrize("settings", [60, pytest.param(2500, marks=pytest.mark.full)])
def test_no_boundary_is_crossed_too_easily(settings: int) -> None:
    """The p-value that certifies a boundary is at least the exact one, so no test's size exceeds its level."""
    rng = np.random.default_rng(22)
    for _ in range(settings):
        ranks, a, b, epsilon = random_setting(rng, 2)
        claim = PointClaim(epsilon, float(rng.choice([0.0, 1e-5, 0.01])))
        for i in range(len(a)):
            certified = total_p_value(a[[i]], b[[i]], ranks, Single(claim, 1))
            exact = exact_p_value(a[i], b[i], ranks.n, ranks.m, claim)
            assert certified >= exact * (1 - 1e-5) - 1e-13  # the oracle's own error
            assert certified <= 1.07 * exact or exact < 1e-4


def test_the_corner_in_which_planned_ranks_accused_falsely() -> None:
    """60 of 62 in-scores above the second highest of 8218 out-scores were said to prove ε ≥ 64."""
    outs, ins = np.arange(8218.0), np.r_[np.full(60, 8216.5), np.full(2, -1.0)]
    assert 7.3 < ExactRank(rank=2).bound(PairedRuns(outs, ins)).epsilon < 7.5


def test_planned_ranks_cover_two_atoms() -> None:
    """An exactly (12, 0)-DP mechanism with two outputs: 28.9 % of such audits accused it at nominal 5 %."""
    rng, n, m, claim = np.random.default_rng(23), 8218, 62, PointClaim(12.0)
    rare = 0.968 * np.exp(-12.0)  # the first atom has this much of the out-world, and .968 of the in-world
    outs = rng.binomial(n, rare, 2000)
    ins = rng.binomial(m, claim.max_tpr(rare).item(), 2000)
    refuted = 0
    for (k, j), times in zip(*np.unique(np.c_[outs, ins], axis=0, return_counts=True), strict=True):
        runs = PairedRuns(np.r_[np.ones(k), np.zeros(n - k)], np.r_[np.ones(j), np.zeros(m - j)])
        refuted += times * ExactRank(rank=2).test(runs, claim).refuted
    assert refuted <= 0.065 * 2000
