"""Privacy loss distributions (Google's dp-accounting): the tightest accountant here, and whole curves."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilometer import validate
from epsilometer.accounting.mechanism import DpSgd
from epsilometer.arrays import Floats
from epsilometer.claims import LARGEST_MU, CurveClaim, GaussianClaim
from epsilometer.neighbours import AnyNeighbours, Neighbours, Relation, sensitivity

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

WIDEST_BIN = 0.05
MANY = (
    1000  # steps from which losses are stored densely: they will be, and finding out takes size ** steps, to the digit
)
MOST_STEPS = 2_000_000  # beyond them composition takes minutes, and then more memory than there is
MANY_BINS = 300_000  # from which sums over them are made here: dp-accounting adds up one after another, in Python
LARGEST_EPSILON = 500.0  # beyond it e^ε overflows, and no audit can tell the difference

_NEIGHBOURS = {
    Relation.ADD_REMOVE: "ADD_OR_REMOVE_ONE",
    Relation.ZERO_OUT: "REPLACE_SPECIAL",
    Relation.REPLACE: "REPLACE_ONE",
}


def _bin_width(mechanism: DpSgd) -> float:
    """The width of a bin of privacy loss. Rounding is upward: coarser bins only give a larger ε.

    Fine beside the loss of a step (ε is right to about 1e-4 of itself for rates from 1e-3), yet not so fine that a
    large loss (σ ≪ 1) or its composition would fill the memory, or so fine beside the whole loss that hundreds of ε
    take half a minute: a record that is drawn, as it is q·T times, loses 1/(2σ²) + log q on average.
    """
    q, sigma = mechanism.sample_rate, mechanism.noise_multiplier
    wanted = min(max(q / (40.0 * sigma), 1e-5), 1e-3)
    largest_step, total = 10.0 / sigma + 1.0 / sigma**2, mechanism.steps * q / sigma**2
    usual = mechanism.steps * q * max(0.0, 0.5 / sigma**2 + math.log(q))
    return max(wanted, largest_step / 1e5, total / 1e7, min(usual / 4e4, WIDEST_BIN))


def require_affordable(mechanism: DpSgd) -> None:
    """Not so many steps that their composition would fill the memory."""
    validate.whole("steps", mechanism.steps, least=1, most=MOST_STEPS, remedy="the accountant rdp takes more")


@functools.lru_cache(maxsize=64)
def _distribution(mechanism: DpSgd, relation: Relation) -> PrivacyLossDistribution:
    require_affordable(mechanism)
    from dp_accounting.pld import privacy_loss_distribution as pld  # half a second: only when it is needed

    if relation is not Relation.REPLACE and mechanism.sample_rate < 1:
        from epsilometer.accounting.gaussian_step import gaussian_step

        step = gaussian_step(mechanism, _bin_width(mechanism))
    else:
        step = pld.from_gaussian_mechanism(
            mechanism.noise_multiplier,
            value_discretization_interval=_bin_width(mechanism),
            sampling_prob=mechanism.sample_rate,
            neighboring_relation=pld.NeighborRel[_NEIGHBOURS[relation]],
        )
    if mechanism.steps >= MANY:
        step = pld.PrivacyLossDistribution(*(pmf.to_dense_pmf() for pmf in _pmfs(step)))
    return step.self_compose(mechanism.steps)


def epsilon_at(whole: PrivacyLossDistribution, delta: float) -> float:
    """The least ε ≥ 0 at δ."""
    parts = _large_parts(whole)
    if not parts:
        return float(whole.get_epsilon_for_delta(delta))
    return max(epsilon_of(*part, delta) for part in parts)


def _deltas_at(whole: PrivacyLossDistribution, epsilons: Floats) -> Floats:
    """At ε ≥ 0 in ascending order."""
    parts = _large_parts(whole) or [_small_part(pmf, float(epsilons[0])) for pmf in _pmfs(whole)]
    found: Floats = np.max([deltas_of(*part, epsilons) for part in parts], axis=0)
    return found


def _pmfs(whole: PrivacyLossDistribution) -> tuple[Any, ...]:
    return (whole._pmf_remove,) if whole._symmetric else (whole._pmf_remove, whole._pmf_add)


def positive_parts(whole: PrivacyLossDistribution) -> list[tuple[Floats, Floats, Floats]]:
    """For `epsilon_of` and `deltas_of`: all that counts for ε ≥ 0, for each order of the worlds."""
    return [_small_part(pmf, 0.0) for pmf in _pmfs(whole)]


def _small_part(pmf: Any, least: float) -> tuple[Floats, Floats, Floats]:
    """Like `_large_parts`, of losses above `least`, and summed up in dp-accounting's order: to its last bit."""
    if hasattr(pmf, "_probs"):
        losses, mass = (np.arange(pmf.size) + pmf._lower_loss) * pmf._discretization, np.asarray(pmf._probs)
    else:
        losses, mass = map(np.asarray, pmf._get_losses_probs())
    first = np.searchsorted(losses, least, side="right")
    losses, mass = losses[first:][::-1], mass[first:][::-1]
    upper = np.cumsum(np.concatenate([[pmf._infinity_mass], mass]))
    lower = np.cumsum(np.concatenate([[0.0], mass * np.exp(-losses)]))
    return losses, upper, lower


def _large_parts(whole: PrivacyLossDistribution) -> list[tuple[Floats, Floats, Floats]]:
    """Of a distribution with many bins, for each order of the worlds: losses from the largest down, and the mass at or
    above each in the one world and in the other. None where dp-accounting is quick enough."""
    pmfs = _pmfs(whole)
    if not all(hasattr(pmf, "_probs") and pmf.size > MANY_BINS for pmf in pmfs):
        return []
    found = []
    for pmf in pmfs:
        losses = ((np.arange(pmf.size) + pmf._lower_loss) * pmf._discretization)[::-1]
        if np.abs(losses[[0, -1]]).max() > LARGEST_EPSILON:
            return []
        mass = np.asarray(pmf._probs)[::-1]
        upper = np.concatenate([[0.0], np.cumsum(mass)]) + pmf._infinity_mass
        lower = np.concatenate([[0.0], np.cumsum(mass * np.exp(-losses))])
        found.append((losses, upper, lower))
    return found


def epsilon_of(losses: Floats, upper: Floats, lower: Floats, delta: float) -> float:
    """The smallest ε ≥ 0 with upper − e^ε·lower ≤ δ over losses above ε, as dp-accounting finds it."""
    if upper[0] > delta:
        return math.inf
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        reached = np.log((upper - delta) / lower)
    ends = np.flatnonzero((upper[:-1] > delta) & (lower[:-1] > 0) & (reached[:-1] >= losses))
    last = int(ends[0]) if ends.size else len(losses)
    return 0.0 if upper[last] <= lower[last] + delta else max(0.0, float(reached[last]))


def deltas_of(losses: Floats, upper: Floats, lower: Floats, epsilons: Floats) -> Floats:
    above = np.searchsorted(-losses, -epsilons, side="left")  # how many losses exceed each
    deltas: Floats = upper[above] - np.exp(epsilons) * lower[above]
    return deltas


def unsampled(mechanism: DpSgd, relation: Relation) -> GaussianClaim | None:
    """The curve without subsampling, √T·Δ/σ-Gaussian DP: exact for q = 1, and an upper bound for any q.

    Used where it is exact, and where the noise is so little (ε in the thousands) that bins would not fit.
    """
    if mechanism.sample_rate < 1 and _bin_width(mechanism) <= WIDEST_BIN:
        return None
    mu = math.sqrt(mechanism.steps) * sensitivity(relation) / mechanism.noise_multiplier
    return GaussianClaim(mu if mu <= LARGEST_MU else math.inf, relation)


def round_off(mechanism: DpSgd) -> float:
    """More than what the fast Fourier transforms of a composition can lose of δ: it grows with the steps."""
    return max(1e-12, 2e-15 * mechanism.steps)


def epsilon(mechanism: DpSgd, delta: float, relation: Relation) -> float:
    """ε at δ by numerical composition of the privacy loss; infinite for a δ that is lost in rounding.

    >>> round(epsilon(DpSgd(250 / 6000, 1.01, 576), 1e-5, Relation.ADD_REMOVE), 3)
    6.489
    """
    if mechanism.noise_multiplier == 0:
        return math.inf
    if (gaussian := unsampled(mechanism, relation)) is not None:
        return gaussian.epsilon_at(delta)
    if delta <= round_off(mechanism):
        return math.inf
    return epsilon_at(_distribution(mechanism, relation), delta - round_off(mechanism))


def curve(mechanism: DpSgd, relation: AnyNeighbours = Relation.ADD_REMOVE, points: int = 400) -> CurveClaim:
    """The trade-off curve that DP-SGD with these settings promises, for the two worlds in either order.

    >>> claim = curve(DpSgd(1.0, 2.0, 4))  # four releases with σ = 2 are one with σ = 1
    >>> claim.max_tpr(0.05).round(3).item()  # Φ(Φ⁻¹(.05) + 1) = .2595
    0.26
    """
    said = Neighbours.of(relation)
    promised = _curve(mechanism, said.relation, validate.whole("points", points, least=8))
    return promised if promised.unit == said.unit else replace(promised, unit=said.unit)


@functools.lru_cache(maxsize=256)
def _curve(mechanism: DpSgd, relation: Relation, points: int) -> CurveClaim:
    name = mechanism.describe()
    if mechanism.noise_multiplier == 0:
        return CurveClaim((math.inf,), (1.0,), relation, name)
    lost = round_off(mechanism)
    largest = min(max(2e-3, epsilon(mechanism, max(1e-10, 10 * lost), relation)), LARGEST_EPSILON)
    tail = points // 4  # most points evenly, some towards 0
    epsilons = np.unique(np.concatenate([np.linspace(0.0, largest, points - tail), np.geomspace(1e-3, largest, tail)]))
    if (gaussian := unsampled(mechanism, relation)) is not None:
        deltas = np.array([gaussian.delta_at(float(e)) for e in epsilons])
    else:
        deltas = _deltas_at(_distribution(mechanism, relation), epsilons)
    padded = np.clip(deltas + lost, 0.0, 1.0)
    return CurveClaim(tuple(epsilons.tolist()), tuple(padded.tolist()), relation, name)
