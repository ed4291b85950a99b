"""All accountants by name: one mechanism, many proofs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from epsilometer import validate
from epsilometer.accounting import composition, heterogeneous, moments, pld, rdp
from epsilometer.accounting.events import Composition
from epsilometer.accounting.mechanism import DpSgd, UpperBound
from epsilometer.neighbours import AnyNeighbours, Neighbours, Relation
from epsilometer.registry import Registry, instance_of


@dataclass(frozen=True)
class Accountant:
    """An accountant's name, what it is, and its ε(mechanism, δ, relation), for DP-SGD and for unlike parts."""

    name: str
    summary: str
    epsilon: Callable[[DpSgd, float, Relation], float]
    of_parts: Callable[[Composition, float, Relation], float]
    caveat: str = ""


_OWN = (
    Accountant(
        "pld", "privacy loss distributions, numerically composed (default)", pld.epsilon, heterogeneous.pld_epsilon
    ),
    Accountant("rdp", "Rényi DP, improved conversion", rdp.epsilon, heterogeneous.rdp_epsilon),
    Accountant(
        "rdp-classic",
        "Rényi DP, conversion of Mironov 2017",
        rdp.epsilon_classic,
        heterogeneous.rdp_classic_epsilon,
    ),
    Accountant("moments", "moments accountant of Abadi et al. 2016", moments.epsilon, heterogeneous.moments_epsilon),
    Accountant(
        "strong",
        "strong composition as Abadi et al. 2016 compare with",
        composition.strong_epsilon,
        heterogeneous.strong_epsilon,
        composition.STRONG_CAVEAT,
    ),
    Accountant("basic", "basic composition of amplified steps", composition.basic_epsilon, heterogeneous.basic_epsilon),
)


ACCOUNTANTS: Registry[Accountant] = Registry(
    "accountants",
    {one.name: one for one in _OWN},
    argument="accountant",
    expected="an Accountant whose name is {name!r}",
    accept=instance_of(Accountant),
)


def account(
    mechanism: Any,
    delta: float,
    relation: AnyNeighbours = Relation.ADD_REMOVE,
    accountant: str = "pld",
) -> UpperBound:
    """What theory promises for a mechanism: DP-SGD, or any event of dp-accounting.

    Events that are DP-SGD are accounted as that. Of unlike parts, each accountant takes those that it can.

    >>> print(account(DpSgd(sample_rate=0.01, noise_multiplier=4.0, steps=10_000), delta=1e-5))
    ε ≤ 0.947 at δ = 1e-05 (add-remove), pld
    """
    said = Neighbours.of(relation)
    validate.delta(delta)
    chosen = ACCOUNTANTS[accountant]
    parts = mechanism if hasattr(mechanism, "dp_sgd") else Composition.of(mechanism)
    if (alike := parts.dp_sgd) is None:
        epsilon = chosen.of_parts(parts, delta, said.relation) if parts.parts else 0.0  # conversions to δ add some
        return UpperBound(epsilon, delta, said.relation, chosen.name, parts, chosen.caveat, said.unit)
    epsilon = chosen.epsilon(alike, delta, said.relation)
    return UpperBound(epsilon, delta, said.relation, chosen.name, alike, chosen.caveat, said.unit)


def compare(mechanism: DpSgd, delta: float, relation: AnyNeighbours = Relation.ADD_REMOVE) -> tuple[UpperBound, ...]:
    """The same mechanism by every accountant of our own: what a report says depends on no other package."""
    return tuple(account(mechanism, delta, relation, name) for name in ACCOUNTANTS.own)
