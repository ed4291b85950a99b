"""The mean rule: moments of a step that releases the *mean* of a batch's clipped gradients with noise N(0, (σC)²).

A batch may have one record, so the worst case is that of the sum rule. With many records it is far away: a record that
comes to a batch moves its mean by (ḡ − mean)/(|B| + 1) only. Two bounds, each for both directions:

- *paired*: worlds share the batch of other records, so that by joint convexity the step's moment is at most the
  expectation over such batches B of the moment for a record of norm ‖ḡ − mean(B)‖/(|B| + 1) (‖ḡ‖ for an empty batch).
- *sensitivity distribution*: Theorem 3.6 of Thudi et al. (2024), from batches that are drawn for each world by itself.
  With u_1, …, u_α updates of the one world and v one of the other, Σ‖u_i‖² − (α−1)‖v‖² − ‖Σu_i − (α−1)v‖² is
  −Σ_{i≠j} ⟨u_i − v, u_j − v⟩. Batches of one world differ among themselves, which counts as if the record did it.

Both are expectations over batches, estimated from draws; limits hold for each record with the stated confidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from epsilometer.arrays import Floats
from epsilometer.instances.moments import StepMoments
from epsilometer.instances.monte_carlo import log_mean_limit

BOTH = 2.0  # bounds of which the smaller is taken: each may fail half as often


@dataclass(frozen=True, eq=False)
class Batches:
    """Poisson batches of all data at one model, and what records have to do with them; norms are in units of C.

    The first `draws` batches stand alone (X_B), the others in tuples of `order` (X'_B): tuples × order of them.
    """

    sizes: NDArray[np.int64]  # of each batch
    members: NDArray[np.bool_]  # batches × records
    products: Floats  # ⟨sum of the batch's clipped gradients, the record's⟩: batches × records
    squares: Floats  # of each batch's sum
    record_squares: Floats
    tuple_products: Floats  # of sums within a tuple: tuples × order × order
    cross_products: Floats  # of the draws' sums with the tuples': draws × tuples × order
    rounding: float = 0.0  # by which a squared distance may be too small in the precision of the gradients

    @property
    def draws(self) -> int:
        return len(self.cross_products)

    @property
    def order(self) -> int:
        return int(self.tuple_products.shape[-1])

    def shifts(self) -> Floats:
        """By how much each record moves the mean of each batch of others: batches × records."""
        others, sums, squares = self._without()
        distances = self.record_squares - 2.0 * sums / np.maximum(others, 1) + squares / np.maximum(others, 1) ** 2
        shifts: Floats = np.sqrt(np.maximum(distances, 0.0) + self.rounding) / (others + 1)
        return np.minimum(shifts, 1.0)

    def _without(self) -> tuple[Floats, Floats, Floats]:
        """Of each batch without each record: its size, ⟨sum, record's gradient⟩, ‖sum‖²."""
        others = (self.sizes[:, None] - self.members).astype(np.float64)
        sums = self.products - self.members * self.record_squares
        squares = self.squares[:, None] - self.members * (2.0 * self.products - self.record_squares)
        return others, np.where(others > 0, sums, 0.0), np.where(others > 0, squares, 0.0)


@dataclass(frozen=True, eq=False)
class StepBound:
    """Log-moments of a step, one a record: from the draws as they are, and with their error accounted for."""

    estimate: Floats
    limit: Floats


def paired(batches: Batches, step: StepMoments, order: float, confidence: float) -> StepBound:
    """The paired bound; see the module."""
    moments = step.of_levels(order)
    seen = moments[step.levels(batches.shifts())]
    estimate = special.logsumexp(seen, axis=0) - math.log(len(seen))
    return StepBound(estimate, log_mean_limit(seen, moments[-1], confidence))


def sensitivity_distribution(batches: Batches, noise_multiplier: float, order: int, confidence: float) -> StepBound:
    """Theorem 3.6 of Thudi et al. (2024), the larger of both directions; at whole orders, up to the tuples'.

    (α−1)·D_α ≤ E_{X_B} ln E_{X'_B} exp(−Δ/2σ²). The limit assumes nothing but norms ≤ C, and is far from the estimate
    unless there is much noise: an exponential moment cannot be known from few draws.
    """
    found = [
        _log_moments(batches, noise_multiplier, order, record_in_tuples, confidence)
        for record_in_tuples in (True, False)
    ]
    return StepBound(
        np.maximum(found[0].estimate, found[1].estimate), np.maximum(found[0].limit, found[1].limit)
    )  # fmt: skip


def mean_rule(batches: Batches, step: StepMoments, order: float, confidence: float) -> StepBound:
    """The smaller of both bounds, and of the worst case; orders above the tuples' have the paired one only."""
    each = 1.0 - (1.0 - confidence) / BOTH
    first = paired(batches, step, order, each)
    if math.ceil(order) > batches.order:
        return first
    second = sensitivity_distribution(batches, step.noise_multiplier, max(2, math.ceil(order)), each)
    worst = step.of_levels(order)[-1]
    return StepBound(
        np.minimum(np.minimum(first.estimate, second.estimate), worst),
        np.minimum(np.minimum(first.limit, second.limit), worst),
    )


def _log_moments(
    batches: Batches, noise_multiplier: float, order: int, record_in_tuples: bool, confidence: float
) -> StepBound:
    """One direction: tuples are of the world with the record or of the one without it, and draws of the other."""
    draws, tuples = batches.draws, len(batches.tuple_products)
    own_squares = _squares_and_sums(batches, order, record_in_tuples)
    exponents = np.empty((draws, tuples, len(batches.record_squares)))
    scale = order * (order - 1) / (2.0 * noise_multiplier**2)
    for j in range(draws):
        products, squares = _against(batches, j, order, record_in_tuples)
        exponents[j] = own_squares - 2.0 * (order - 1) * products + order * (order - 1) * squares
    exponents /= 2.0 * noise_multiplier**2
    inner = special.logsumexp(exponents, axis=1) - math.log(tuples)
    cap = 4.0 * scale  # ‖u − v‖ ≤ 2
    miss = 1.0 - confidence
    limits = log_mean_limit(exponents.swapaxes(0, 1), cap, 1.0 - miss / (2.0 * draws))
    with np.errstate(divide="ignore"):
        outer = np.exp(log_mean_limit(np.log(np.maximum(limits, 0.0)), math.log(cap), 1.0 - miss / 2.0))
    return StepBound(np.maximum(inner.mean(axis=0), 0.0), outer)


def _squares_and_sums(batches: Batches, order: int, with_record: bool) -> Floats:
    """‖Σu_i‖² − Σ‖u_i‖² of each tuple: tuples × records."""
    factors, taken, products = _members(batches, order, with_record)
    grams = batches.tuple_products[:, :order, :order]
    pairs = grams - np.eye(order) * grams  # i ≠ j
    sums = np.einsum("kir,kij,kjr->kr", factors, pairs, factors)
    shared = factors * taken  # how much of the record's gradient is to be taken out of each update
    reach = factors * products
    linear = shared.sum(1) * reach.sum(1) - (shared * reach).sum(1)
    square = shared.sum(1) ** 2 - (shared**2).sum(1)
    found: Floats = sums - 2.0 * linear + square * batches.record_squares
    return found


def _members(batches: Batches, order: int, with_record: bool) -> tuple[Floats, Floats, Floats]:
    """Of each tuple's batches (tuples × order × records): 1/size, whether the record goes, ⟨sum, record⟩."""
    shape = (len(batches.tuple_products), batches.order, -1)
    members = batches.members[batches.draws :].reshape(shape)[:, :order]
    sizes = batches.sizes[batches.draws :].reshape(shape)[:, :order]
    products = batches.products[batches.draws :].reshape(shape)[:, :order]
    taken = np.zeros(members.shape) if with_record else members.astype(np.float64)
    left = sizes - taken
    return np.where(left > 0, 1.0 / np.maximum(left, 1), 0.0), taken, products


def _against(batches: Batches, j: int, order: int, with_record: bool) -> tuple[Floats, Floats]:
    """⟨Σu_i, v⟩ (tuples × records) and ‖v‖² (records) for the j-th draw."""
    factors, taken, products = _members(batches, order, with_record)
    out = batches.members[j].astype(np.float64) if with_record else np.zeros(len(batches.record_squares))
    left = batches.sizes[j] - out
    factor = np.where(left > 0, 1.0 / np.maximum(left, 1), 0.0)
    cross = np.einsum("kir,ki->kr", factors, batches.cross_products[j, :, :order])
    own = batches.products[j] - out * batches.record_squares  # ⟨v's sum, record⟩
    dots = cross - out * (factors * products).sum(1) - (factors * taken).sum(1) * own
    squares = batches.squares[j] - out * (2.0 * batches.products[j] - batches.record_squares)
    return factor * dots, factor**2 * np.maximum(squares, 0.0)
