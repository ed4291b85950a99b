"""Accountants for parts that are unlike: each takes the parts that it can prove something about, and refuses others."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilometer.accounting.events import Composition, own_event, sampled_gaussian
from epsilometer.accounting.moments import LARGEST_LAMBDA
from epsilometer.accounting.pld import LARGEST_EPSILON, deltas_of, epsilon_of, positive_parts
from epsilometer.accounting.rdp import ORDERS
from epsilometer.accounting.renyi import log_moment
from epsilometer.arrays import Floats
from epsilometer.claims import CurveClaim, GaussianClaim
from epsilometer.errors import InvalidInput
from epsilometer.neighbours import AnyNeighbours, Neighbours, Relation

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

BIN, WIDEST_BIN = 1e-4, 2.0  # of a privacy loss; wider ones say nothing of an ε that anybody claims
MOST_BINS, MOST_TOGETHER = 10**6, 10**7  # of a part, and of the whole
ROUND_OFF = 1e-12  # of δ, more than a few transforms lose
_RELATIONS = {
    Relation.ADD_REMOVE: "ADD_OR_REMOVE_ONE",
    Relation.ZERO_OUT: "REPLACE_SPECIAL",
    Relation.REPLACE: "REPLACE_ONE",
}


def pld_epsilon(whole: Composition, delta: float, relation: Relation) -> float:
    """By privacy loss distributions of the parts, composed here. The exponential mechanism counts as any ε-DP one."""
    if delta == 0:  # transforms lose some δ; and what parts are at δ = 0, they are together
        return basic_epsilon(whole, delta, relation)
    total, allowed = _distribution(whole, relation), delta - ROUND_OFF
    if total is None or allowed <= 0:
        return math.inf
    return max(epsilon_of(*part, allowed) for part in positive_parts(total))


def pld_curve(whole: Composition, neighbours: AnyNeighbours, points: int = 400) -> CurveClaim:
    """The whole curve of unlike parts; where all of them have an ε at δ = 0, that point too.

    >>> from dp_accounting import LaplaceDpEvent
    >>> curve = pld_curve(Composition.of(LaplaceDpEvent(4.0), 2), Relation.ADD_REMOVE)
    >>> curve.epsilon_at(0.0), round(curve.epsilon_at(0.1), 2)
    (0.5, 0.1)
    """
    said, name = Neighbours.of(neighbours), whole.describe()
    relation = said.relation
    total = _distribution(whole, relation)
    if total is None:
        return CurveClaim((math.inf,), (1.0,), relation, name, unit=said.unit)
    largest = min(max(2e-3, pld_epsilon(whole, 1e-10, relation)), LARGEST_EPSILON)
    tail = points // 4  # most points evenly, some towards 0
    epsilons = np.unique(np.concatenate([np.linspace(0.0, largest, points - tail), np.geomspace(1e-3, largest, tail)]))
    found = np.max([deltas_of(*part, epsilons) for part in positive_parts(total)], axis=0)
    deltas = np.clip(found + ROUND_OFF, 0.0, 1.0)
    profile = dict(zip(epsilons.tolist(), deltas.tolist(), strict=True))
    with suppress(InvalidInput):  # parts that basic composition does not know
        pure = basic_epsilon(whole, 0.0, relation)
        profile |= {pure: 0.0} if pure <= LARGEST_EPSILON else {}
    order = sorted(profile)
    return CurveClaim(tuple(order), tuple(profile[epsilon] for epsilon in order), relation, name, unit=said.unit)


@functools.lru_cache(maxsize=32)
def _distribution(whole: Composition, relation: Relation) -> PrivacyLossDistribution | None:
    """The privacy loss of all parts; none where some part is not private at all."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    parts = list(_private(whole, relation))
    width = _bin_width(parts)
    if width > WIDEST_BIN or any(leaf is None for leaf, _ in parts):
        return None
    total = pld.identity(value_discretization_interval=width)
    for leaf, count in parts:
        if (own := own_event(leaf)) is not None:
            pure = common.DifferentialPrivacyParameters(own.pure, 0)
            part = pld.from_privacy_parameters(pure, value_discretization_interval=width)
        else:
            accountant = PLDAccountant(_neighbours(relation), width)
            _compose(accountant, leaf, "pld", relation)
            if accountant._contains_non_dp_event:
                return None
            part = accountant._pld
        total = total.compose(part.self_compose(count) if count > 1 else part)
    return total


def _bin_width(parts: list[tuple[Any, int]]) -> float:
    """The width of a bin of privacy loss: fine, unless the losses of hardly private parts would fill the memory.

    Rounding is upward, so coarser bins only give a larger ε; and they are that only where ε is large.
    """
    largest = together = 0.0
    for leaf, count in parts:
        rate, span = (1.0, 0.0) if leaf is None else _span(leaf)
        largest, together = max(largest, span), together + count * rate * span**2  # as variances add up
    return max(BIN, largest / MOST_BINS, math.sqrt(together) / MOST_TOGETHER)


def _span(leaf: Any) -> tuple[float, float]:
    """How often a part has a loss at all, and how far apart the least and the largest lie, about; 0 of parts that are
    not looked through."""
    if (gaussian := sampled_gaussian(leaf)) is not None:
        rate, sigma = gaussian
        return rate, math.inf if sigma == 0 else 1.0 / sigma**2 + 20.0 / sigma
    return 1.0, 2.0 * (_pure(leaf) or 0.0)


def rdp_epsilon(whole: Composition, delta: float, relation: Relation) -> float:
    """By Rényi divergences, which add up; improved conversion."""
    from dp_accounting import rdp

    total = _divergences(whole, relation, "rdp")
    if delta == 0 or not np.isfinite(total).any():
        return math.inf if whole.parts else 0.0
    return max(0.0, float(rdp.compute_epsilon(ORDERS, total, delta)[0]))


def rdp_classic_epsilon(whole: Composition, delta: float, relation: Relation) -> float:
    """The same with the conversion of Mironov (2017)."""
    total = _divergences(whole, relation, "rdp-classic")
    if delta == 0:
        return math.inf if whole.parts else 0.0
    return float(np.min(total + math.log(1.0 / delta) / (ORDERS - 1.0)))


def moments_epsilon(whole: Composition, delta: float, relation: Relation) -> float:
    """Moments of Gaussian parts, sampled or not, which add up (Abadi et al. 2016, Theorem 2)."""
    found = []
    for leaf, count in _private(whole, relation):
        if leaf is None:
            return math.inf
        gaussian = sampled_gaussian(leaf)
        if gaussian is None:
            raise _refused(leaf, "moments", "Gaussian noise, of Poisson samples or of all records")
        found.append((*gaussian, count))
    if delta == 0 or any(sigma == 0 for _, sigma, _ in found):
        return math.inf if found else 0.0
    totals = (
        (sum(n * log_moment(lam + 1.0, q, sigma, relation) for q, sigma, n in found) + math.log(1.0 / delta)) / lam
        for lam in range(1, LARGEST_LAMBDA + 1)
    )
    return min(totals)


def basic_epsilon(whole: Composition, delta: float, relation: Relation) -> float:
    """ε of every part added up; parts with Gaussian noise share δ evenly, and samples amplify privacy."""
    parts = list(_private(whole, relation))
    if any(leaf is None for leaf, _ in parts):
        return math.inf
    noisy = sum(count for leaf, count in parts if _pure(leaf) is None)
    total = 0.0
    for leaf, count in parts:
        pure = _pure(leaf)
        if pure is None:
            gaussian = sampled_gaussian(leaf)
            if gaussian is None:
                raise _refused(leaf, "basic", "Gaussian or Laplace noise, exponential mechanism, randomized response")
            rate, sigma = gaussian
            if sigma == 0 or delta == 0:
                return math.inf
            full = GaussianClaim(1.0 / sigma).epsilon_at(min(delta / (noisy * rate), 0.5))
            pure = full + math.log(rate) if full > 700 else math.log1p(rate * math.expm1(full))
        total += count * max(pure, 0.0)
    return total


def strong_epsilon(_whole: Composition, _delta: float, _relation: Relation) -> float:
    """Not for unlike parts: what Abadi et al. (2016) compare with is a formula for equal steps."""
    raise InvalidInput("accountant", "strong", "one for unlike parts: pld, rdp, rdp-classic, moments or basic")


def _private(whole: Composition, relation: Relation) -> Iterator[tuple[Any, int]]:
    """The parts, with none for what is not private at all."""
    import dp_accounting

    for leaf, count in whole.parts:
        if isinstance(leaf, dp_accounting.NonPrivateDpEvent):
            yield None, count
            continue
        if relation is Relation.ADD_REMOVE and isinstance(leaf, dp_accounting.RandomizedResponseDpEvent):
            expected = "replace or zero-out for randomized response: one answer more or fewer is seen"
            raise InvalidInput("relation", relation.value, expected)
        own = own_event(leaf)
        answers = isinstance(leaf, dp_accounting.RandomizedResponseDpEvent)
        whole_records = answers if own is None else own.of_whole_records
        if relation is Relation.REPLACE and not whole_records:
            remedy = "state noise multipliers under add-remove or zero-out, or pass a DpSgd"
            raise InvalidInput("relation", relation.value, f"one that says what {type(leaf).__name__} is for", remedy)
        yield leaf, count


def _divergences(whole: Composition, relation: Relation, name: str) -> Floats:
    from dp_accounting.rdp import RdpAccountant

    logging.getLogger("absl").setLevel(logging.ERROR)  # it warns of every order that it leaves out
    total = np.zeros(len(ORDERS))
    for leaf, count in _private(whole, relation):
        if leaf is None:
            return np.full(len(ORDERS), np.inf)
        if (own := own_event(leaf)) is not None:
            total += count * own.divergences(ORDERS)
            continue
        accountant = RdpAccountant(ORDERS, _neighbours(relation))
        _compose(accountant, leaf, name, relation)
        total += count * np.asarray(accountant.rdp)
    return total


def _compose(accountant: Any, leaf: Any, name: str, relation: Relation) -> None:
    from dp_accounting import UnsupportedEventError

    try:
        accountant.compose(leaf)
    except UnsupportedEventError as error:
        raise _refused(leaf, name, f"a part that it knows under {relation} ({error})") from None
    except ValueError as error:
        raise _refused(leaf, name, f"settings that make sense ({error})") from None


def _pure(leaf: Any) -> float | None:
    """ε of a part that has one at δ = 0."""
    import dp_accounting

    if (own := own_event(leaf)) is not None:
        return own.pure
    if isinstance(leaf, dp_accounting.LaplaceDpEvent):
        return 1.0 / leaf.noise_multiplier if leaf.noise_multiplier > 0 else math.inf
    if isinstance(leaf, dp_accounting.RandomizedResponseDpEvent):
        if leaf.noise_parameter == 0:
            return math.inf
        # The true answer has 1 − p + p/k, each other one p/k.
        return math.log1p((1.0 - leaf.noise_parameter) * leaf.num_buckets / leaf.noise_parameter)
    return None


def _neighbours(relation: Relation) -> Any:
    from dp_accounting import NeighboringRelation

    return NeighboringRelation[_RELATIONS[relation]]


def _refused(leaf: Any, accountant: str, expected: str) -> InvalidInput:
    return InvalidInput("event", leaf, f"for {accountant}: {expected}", "try another accountant")
