"""Privacy loss distributions (Google's dp-accounting): the tightest accountant here, and whole curves."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from epsilometer.accounting.mechanism import DpSgd
from epsilometer.claims import CurveClaim, GaussianClaim, Relation

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

ROUND_OFF = 1e-12  # larger than what the fast Fourier transforms of a composition lose
WIDEST_BIN = 0.05
LARGEST_EPSILON = 500.0  # beyond it e^ε overflows, and no audit can tell the difference

_NEIGHBOURS = {
    Relation.ADD_REMOVE: "ADD_OR_REMOVE_ONE",
    Relation.ZERO_OUT: "REPLACE_SPECIAL",
    Relation.REPLACE: "REPLACE_ONE",
}


def _bin_width(mechanism: DpSgd) -> float:
    """The width of a bin of privacy loss. Rounding is upward: coarser bins only give a larger ε.

    Fine beside the loss of a step (ε is then right to about 1e-4 of itself), yet not so fine that a large
    loss (σ ≪ 1) or its composition would fill the memory.
    """
    q, sigma = mechanism.sample_rate, mechanism.noise_multiplier
    wanted = min(max(q / (40.0 * sigma), 1e-5), 1e-3)
    largest_step, total = 10.0 / sigma + 1.0 / sigma**2, mechanism.steps * q / sigma**2
    return max(wanted, largest_step / 1e5, total / 1e7)


@functools.lru_cache(maxsize=64)
def _distribution(mechanism: DpSgd, relation: Relation) -> PrivacyLossDistribution:
    from dp_accounting.pld import privacy_loss_distribution as pld  # half a second: only when it is needed

    step = pld.from_gaussian_mechanism(
        mechanism.noise_multiplier,
        value_discretization_interval=_bin_width(mechanism),
        sampling_prob=mechanism.sample_rate,
        neighboring_relation=pld.NeighborRel[_NEIGHBOURS[relation]],
    )
    return step.self_compose(mechanism.steps)


def _unsampled(mechanism: DpSgd, relation: Relation) -> GaussianClaim | None:
    """The curve without subsampling, √T·Δ/σ-Gaussian DP: exact for q = 1, and an upper bound for any q.

    Used where it is exact, and where the noise is so little (ε in the thousands) that bins would not fit.
    """
    if mechanism.sample_rate < 1 and _bin_width(mechanism) <= WIDEST_BIN:
        return None
    sensitivity = 2.0 if relation is Relation.REPLACE else 1.0
    return GaussianClaim(math.sqrt(mechanism.steps) * sensitivity / mechanism.noise_multiplier, relation)


def epsilon(mechanism: DpSgd, delta: float, relation: Relation) -> float:
    """ε at δ by numerical composition of the privacy loss.

    >>> round(epsilon(DpSgd(250 / 6000, 1.01, 576), 1e-5, Relation.ADD_REMOVE), 3)
    6.489
    """
    if mechanism.noise_multiplier == 0:
        return math.inf
    if (gaussian := _unsampled(mechanism, relation)) is not None:
        return gaussian.epsilon_at(delta)
    return float(_distribution(mechanism, relation).get_epsilon_for_delta(delta))


@functools.lru_cache(maxsize=256)
def curve(mechanism: DpSgd, relation: Relation = Relation.ADD_REMOVE, points: int = 400) -> CurveClaim:
    """The trade-off curve that DP-SGD with these settings promises.

    >>> claim = curve(DpSgd(1.0, 2.0, 4))  # four releases with σ = 2 are one with σ = 1
    >>> claim.max_tpr(0.05).round(3).item()  # Φ(Φ⁻¹(.05) + 1) = .2595
    0.26
    """
    name = mechanism.describe()
    if mechanism.noise_multiplier == 0:
        return CurveClaim((math.inf,), (1.0,), relation, name)
    largest = min(max(2e-3, epsilon(mechanism, 1e-10, relation)), LARGEST_EPSILON)
    epsilons = np.concatenate([[0.0], np.geomspace(1e-3, largest, points - 1)])
    if (gaussian := _unsampled(mechanism, relation)) is not None:
        deltas = reverse = np.array([gaussian.delta_at(float(e)) for e in epsilons])
    else:
        distribution = _distribution(mechanism, relation)
        # dp-accounting's public method takes the worse of the two directions; a game has only one of them.
        deltas = distribution._pmf_remove.get_delta_for_epsilon(epsilons)
        reverse = distribution._pmf_add.get_delta_for_epsilon(epsilons)
    return CurveClaim(tuple(epsilons.tolist()), _padded(deltas), relation, name, _padded(reverse))


def _padded(deltas: np.ndarray) -> tuple[float, ...]:
    return tuple(np.clip(deltas + ROUND_OFF, 0.0, 1.0).tolist())
