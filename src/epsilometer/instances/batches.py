"""Batches drawn at a checkpoint, for the mean rule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from epsilometer.data import Dataset
from epsilometer.instances.mean_rule import Batches
from epsilometer.training import Array, ModuleNetwork, Network, Recipe

_ROUNDING = 32.0  # units of precision; sums of a hundred gradients have errors of a few


def draw_batches(
    recipe: Recipe,
    network: Network | ModuleNetwork,
    parameters: Array,
    data: Dataset,
    rows: NDArray[np.int64],
    *,
    draws: int,
    tuples: int,
    order: int,
    seed: np.random.SeedSequence,
) -> Batches:
    """Poisson batches of the data: `draws` of them alone, and `tuples` of `order` each, which all draws share; and how
    the records in `rows` lie to them. The cost is linear in the number of batches and in that of records."""
    rng = np.random.default_rng(seed)
    x, clip = data.x.astype(parameters.dtype), recipe.clip_norm
    count = draws + tuples * order
    sums = np.empty((count, len(parameters)), parameters.dtype)
    sizes, members = np.empty(count, np.int64), np.zeros((count, len(rows)), np.bool_)

    def update(chosen: NDArray[np.int64]) -> Array:
        with np.errstate(over="ignore"):  # a gradient of 0 is scaled by what is too large for single precision
            total = network.clipped_gradient_sum(parameters, x[chosen], data.y[chosen], clip, recipe.clipping)
        return np.asarray(total / clip)

    for i in range(count):
        chosen = _poisson(rng, len(data), recipe.sample_rate)
        sums[i], sizes[i], members[i] = update(chosen), len(chosen), np.isin(rows, chosen)
    gradients = np.array([update(row[None]) for row in rows])
    inner = sums[draws:].reshape(tuples, order, -1)
    cross = (sums[:draws] @ sums[draws:].T).astype(np.float64)
    return Batches(
        sizes=sizes,
        members=members,
        products=(sums @ gradients.T).astype(np.float64),
        squares=np.einsum("ij,ij->i", sums, sums, dtype=np.float64),
        record_squares=np.minimum(np.einsum("ij,ij->i", gradients, gradients, dtype=np.float64), 1.0),
        tuple_products=(inner @ inner.swapaxes(1, 2)).astype(np.float64),
        cross_products=cross.reshape(draws, tuples, order),
        rounding=_ROUNDING * float(np.finfo(parameters.dtype).eps),
    )


def _poisson(rng: np.random.Generator, records: int, rate: float) -> NDArray[np.int64]:
    """Every record by its own coin: a binomial number of them, and then which."""
    if rate == 1.0:
        return np.arange(records)
    chosen: NDArray[np.int64] = rng.choice(records, rng.binomial(records, rate), replace=False, shuffle=False)
    return chosen
