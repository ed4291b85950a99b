"""Certified bounds cover where scores are awkward: atoms at planned ranks, lattices, few trials, very unequal worlds.

Each law's (ε, δ) is known exactly. Seeds are fixed, as in test_coverage.py.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np
import pytest
from repetitions import covers_at_length, surprising

from epsilometer import PairedRuns, PointClaim
from epsilometer.bounds import ClopperPearson, EProcess, ExactRank, Simultaneous, Split, UnionBound
from epsilometer.claims import GaussianClaim

METHODS = {
    "exact-rank": ExactRank(simulations=1999),
    "exact-rank, union": ExactRank(calibrated=False),
    "exact-rank, planned": ExactRank(rank=1),
    "eprocess": EProcess(),
    "simultaneous": ClopperPearson(Simultaneous(simulations=1999)),
    "union-bound": ClopperPearson(UnionBound()),
    "split": ClopperPearson(Split()),
}
Rates = tuple[np.ndarray, np.ndarray]  # of each value, in both worlds; higher values are later


def two_atoms(epsilon: float, upper: float) -> Rates:
    """The upper atom has as much of the in-world as ε allows."""
    tpr = PointClaim(epsilon).max_tpr(upper).item()
    return np.array([1 - upper, upper]), np.array([1 - tpr, tpr])


def lattice(epsilon: float, levels: int) -> Rates:
    """The discrete Laplace mechanism on levels from 0, cut at the ends: ε between neighbours."""
    k = np.arange(levels)
    out, member = (np.exp(-epsilon * np.abs(k - centre)) for centre in (levels // 2, levels // 2 + 1))
    for law, centre in ((out, levels // 2), (member, levels // 2 + 1)):  # the tails belong to the ends
        law[0], law[-1] = (np.exp(-epsilon * d) / (1 - np.exp(-epsilon)) for d in (centre, levels - 1 - centre))
    return out / out.sum(), member / member.sum()


def zero_inflated(epsilon: float) -> Rates:
    """95 % of the scores are one and the same value; the rest leaks all that ε allows."""
    out, member = two_atoms(epsilon, 0.5)
    return np.r_[0.95, 0.05 * out], np.r_[0.95, 0.05 * member]


LAWS: dict[str, tuple[float, Rates]] = {
    "two atoms, even": (1.0, two_atoms(1.0, 0.5)),
    "two atoms, rare": (6.0, two_atoms(6.0, 0.968 * np.exp(-6.0))),
    "two atoms at a rank": (2.0, two_atoms(2.0, 0.1)),
    "lattice": (0.5, lattice(0.5, 21)),
    "zero-inflated": (2.0, zero_inflated(2.0)),
}
SIZES = [(1, 1), (2, 3), (3, 2), (5, 5000), (5000, 5), (100, 100)]


def draw(
    rates: Rates, n: int, m: int, rng: np.random.Generator, value: Callable[[np.ndarray], np.ndarray]
) -> PairedRuns:
    out, member = (rng.choice(len(p), size, p=p) for p, size in zip(rates, (n, m), strict=True))
    return PairedRuns(value(out), value(member))


# What the values are is of no importance to ranks: steps of a denormal, or neighbours near 2⁶⁰, are as good as 0, 1, 2.
VALUES = {
    "plain": lambda k: k.astype(float),
    "near 2^60": lambda k: 2.0**60 + 256.0 * k,
    "denormal": lambda k: 5e-324 * k,
}


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "method", [pytest.param(m, marks=pytest.mark.full) if m == "exact-rank, union" else m for m in METHODS]
)
def test_awkward_laws_are_covered(method: str, law: str, sizes: tuple[int, int]) -> None:
    if method == "split" and min(sizes) < 2:
        pytest.skip("nothing to split")
    (epsilon, rates), repetitions = LAWS[law], 20 if method == "eprocess" else 40
    rng = np.random.default_rng([*sizes, len(law)])
    value = VALUES[list(VALUES)[len(law) % 3]]
    claim = PointClaim(epsilon + 1e-9)
    refuted = sum(METHODS[method].test(draw(rates, *sizes, rng, value), claim).refuted for _ in range(repetitions))
    assert not surprising(refuted, repetitions)


@pytest.mark.full
@pytest.mark.parametrize("sizes", [*SIZES, (1000, 300)], ids=str)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("method", [name for name in METHODS if name != "eprocess"])
def test_awkward_laws_are_covered_at_length(method: str, law: str, sizes: tuple[int, int]) -> None:
    if method == "split" and min(sizes) < 2:
        pytest.skip("nothing to split")
    epsilon, rates = LAWS[law]
    rng = np.random.default_rng([*sizes, len(law), 1])
    claim, audits = PointClaim(epsilon + 1e-9), (draw(rates, *sizes, rng, VALUES["plain"]) for _ in count())
    assert covers_at_length(METHODS[method].test(runs, claim).refuted for runs in audits)


def test_ranks_do_not_care_what_the_values_are() -> None:
    rng = np.random.default_rng(2)
    k, j = rng.integers(0, 9, 300), rng.integers(1, 12, 200)
    found = [ExactRank(calibrated=False, rank=30).bound(PairedRuns(value(k), value(j))) for value in VALUES.values()]
    assert len({bound.proof.counts.fp for bound in found}) == 1
    # Ties are broken by the scores themselves, so that the order drawn differs; a bound must not jump for it.
    assert max(bound.epsilon for bound in found) < min(bound.epsilon for bound in found) + 0.35


@pytest.mark.parametrize("claim", [GaussianClaim(0.5), GaussianClaim(2.0)], ids=lambda c: c.describe())
def test_atoms_do_not_refute_true_curves(claim) -> None:
    """Scores rounded to few levels have a ROC below the curve, and random ties bring it back up to it at most."""
    rng, repetitions = np.random.default_rng(3), 600
    for levels in (2, 5, 20):
        refuted = 0
        for _ in range(repetitions):
            outs, ins = rng.normal(size=150), rng.normal(claim.mu, size=150)
            refuted += (
                ExactRank(simulations=4999)
                .test(PairedRuns(np.round(outs * levels / 4), np.round(ins * levels / 4)), claim)
                .refuted
            )
        assert not surprising(refuted, repetitions)


def test_drifts_are_not_covered_and_the_docs_say_so() -> None:
    """Trials that drift while one world has more of the late ones: independent, but not identically distributed.

    Nothing can be certified then. The runner plays both worlds side by side, so that a drift meets both alike.
    """
    rng, refuted = np.random.default_rng(4), 0
    for _ in range(60):
        outs = rng.normal(size=400) + np.linspace(0, 3, 400)
        ins = (rng.normal(size=400) + np.linspace(0, 3, 400))[200:]
        refuted += ExactRank(simulations=1999).test(PairedRuns(outs, ins), PointClaim(0.0)).refuted
    assert refuted > 50
