"""One step of DP-SGD as dp-accounting has it, to the last bit, without its loop in Python over every bin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss

from epsilometer.accounting.mechanism import DpSgd
from epsilometer.arrays import Floats


class _Loss(GaussianPrivacyLoss):  # type: ignore[misc]
    """With a sample rate below 1, and a record added or removed."""

    def get_delta_for_epsilon(self, epsilon: Any) -> Any:
        epsilons, q = np.asarray(epsilon, float), self.sampling_prob
        sign = -1.0 if self.adjacency_type is AdjacencyType.ADD else 1.0
        inside = sign * epsilons > math.log1p(-q)
        deltas = np.zeros_like(epsilons)
        if sign > 0:
            deltas[~inside] = -np.expm1(epsilons[~inside])
        chosen = epsilons[inside]
        cutoffs = self._cutoffs(chosen, sign)
        deltas[inside] = self.mu_upper_cdf(cutoffs) - np.exp(chosen + self.mu_lower_log_cdf(cutoffs))
        return np.clip(deltas, 0, 1)

    def _cutoffs(self, epsilons: Floats, sign: float) -> Floats:
        """`inverse_privacy_loss` of each, by the same operations in the same order."""
        q, edge = self.sampling_prob, math.log(1 - self.sampling_prob)
        at_edge = np.abs(epsilons - sign * edge) <= 1e-9 * np.maximum(np.abs(epsilons), abs(edge))  # math.isclose
        losses = np.full_like(epsilons, -np.inf)
        scaled = sign * epsilons[~at_edge] + np.log(1 / q)
        with np.errstate(divide="raise", invalid="raise"):  # theirs raises as well
            losses[~at_edge] = scaled + np.log1p(-np.exp(np.log(-(1 - 1 / q)) - scaled))
        losses[epsilons == 0] = np.log(1 / q + (1 - 1 / q))
        cutoffs: Floats = self._inverse_privacy_loss_without_subsampling_remove(sign * losses)
        return cutoffs + self.sensitivity if sign < 0 else cutoffs


def gaussian_step(mechanism: DpSgd, bin_width: float) -> pld.PrivacyLossDistribution:
    """What `from_gaussian_mechanism` gives for a record that is added, removed or zeroed out."""
    removed, added = (
        pld._create_pld_pmf_from_monotone_privacy_loss(
            _Loss(mechanism.noise_multiplier, sampling_prob=mechanism.sample_rate, adjacency_type=kind),
            value_discretization_interval=bin_width,
            use_connect_dots=True,
        )
        for kind in (AdjacencyType.REMOVE, AdjacencyType.ADD)
    )
    return pld.PrivacyLossDistribution(removed, added)
