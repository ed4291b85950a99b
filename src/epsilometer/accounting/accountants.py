"""All accountants by name: one mechanism, many proofs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from epsilometer import checks
from epsilometer.accounting import composition, moments, pld, rdp
from epsilometer.accounting.mechanism import DpSgd, UpperBound
from epsilometer.claims import Relation
from epsilometer.errors import unknown_name


@dataclass(frozen=True)
class Accountant:
    """An accountant's name, what it is, and its ε(mechanism, δ, relation)."""

    name: str
    summary: str
    epsilon: Callable[[DpSgd, float, Relation], float]
    caveat: str = ""


ACCOUNTANTS = {
    a.name: a
    for a in (
        Accountant("pld", "privacy loss distributions, numerically composed (default)", pld.epsilon),
        Accountant("rdp", "Rényi DP, improved conversion", rdp.epsilon),
        Accountant("rdp-classic", "Rényi DP, conversion of Mironov 2017", rdp.epsilon_classic),
        Accountant("moments", "moments accountant of Abadi et al. 2016", moments.epsilon),
        Accountant(
            "strong",
            "strong composition as Abadi et al. 2016 compare with",
            composition.strong_epsilon,
            composition.STRONG_CAVEAT,
        ),
        Accountant("basic", "basic composition of amplified steps", composition.basic_epsilon),
    )
}


def account(
    mechanism: DpSgd,
    delta: float,
    relation: Relation | str = Relation.ADD_REMOVE,
    accountant: str = "pld",
) -> UpperBound:
    """What theory promises for a mechanism.

    >>> print(account(DpSgd(sample_rate=0.01, noise_multiplier=4.0, steps=10_000), delta=1e-5))
    ε ≤ 0.9469 at δ = 1e-05 (add-remove), pld
    """
    relation = Relation.of(relation)
    checks.delta(delta)
    if accountant not in ACCOUNTANTS:
        raise unknown_name("accountant", accountant, ACCOUNTANTS)
    chosen = ACCOUNTANTS[accountant]
    epsilon = chosen.epsilon(mechanism, delta, relation)
    return UpperBound(epsilon, delta, relation, chosen.name, mechanism, chosen.caveat)


def compare(mechanism: DpSgd, delta: float, relation: Relation | str = Relation.ADD_REMOVE) -> tuple[UpperBound, ...]:
    """The same mechanism by every accountant, in the order of `ACCOUNTANTS`."""
    return tuple(account(mechanism, delta, relation, name) for name in ACCOUNTANTS)
