"""The compiled backend: memory for compiled.py's loop, laid out so that results never depend on where it lies."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import DTypeLike

from epsilometer.claims import Floats
from epsilometer.data import Dataset
from epsilometer.training import blas, compiled, threefry
from epsilometer.training.models import Array, Network
from epsilometer.training.recipe import Recipe
from epsilometer.training.threefry import Words
from epsilometer.training.watchers import Watcher

_SAMPLINGS = {
    "poisson": compiled.POISSON,
    "full": compiled.FULL,
    "shuffle": compiled.SHUFFLE,
    "fixed-size": compiled.FIXED_SIZE,
}
_ACTIVATIONS = {"relu": compiled.RELU, "tanh": compiled.TANH}
_LOSSES = {"cross-entropy": compiled.CROSS_ENTROPY, "logistic": compiled.LOGISTIC, "squared": compiled.SQUARED}
_CLIPPINGS = {"flat": compiled.FLAT, "per-layer": compiled.PER_LAYER, "automatic": compiled.AUTOMATIC}
_OPTIMIZERS = {"sgd": compiled.SGD, "momentum": compiled.MOMENTUM, "adam": compiled.ADAM}
CHUNK = 1024  # records that are handled at once; larger batches are handled in several goes


def train_one(
    recipe: Recipe, network: Network, data: Dataset, key: Words, start: Array, watcher: Watcher, noise_scale: float
) -> tuple[Array, Floats]:
    """One training: final parameters and projections."""
    with blas.one_thread():
        return _train_one(recipe, network, data, key, start, watcher, noise_scale)


def _train_one(
    recipe: Recipe, network: Network, data: Dataset, key: Words, start: Array, watcher: Watcher, noise_scale: float
) -> tuple[Array, Floats]:
    real = start.dtype.type
    x, squares = _prepared(data, start.dtype.name)
    theta, total = _aligned_copy(start), _aligned(start.shape, start.dtype)
    noise = _aligned((_fours(len(theta)),), np.float32)
    words, rows = _aligned((_fours(len(data)),), np.uint32), np.zeros(len(data) + 1, np.int64)
    chunk, units, layers = min(CHUNK, _sixteens(len(data))), sum(network.widths[1:]), len(network.widths) - 1
    shapes = (chunk, network.widths[0]), (units, chunk), (units, chunk), (2, chunk), (layers, chunk)
    work = tuple(_aligned(shape, start.dtype) for shape in shapes)
    widths = np.array(network.widths, dtype=np.int64)
    gemm = blas.product_addresses()[0 if start.dtype == np.float32 else 1]
    threshold, clip = threefry.below(recipe.sample_rate), real(recipe.clip_norm)
    spread = real(recipe.noise_multiplier * recipe.clip_norm * noise_scale)
    sampling = _SAMPLINGS[recipe.sampling]
    shape = _ACTIVATIONS[network.activation], _LOSSES[network.loss], _CLIPPINGS[recipe.clipping]
    update = _OPTIMIZERS[recipe.optimizer], recipe.weight_decay, recipe.momentum
    memory = (0, 0) if recipe.optimizer == "sgd" else (len(theta), len(theta) if recipe.optimizer == "adam" else 0)
    first, second = (np.zeros(size, start.dtype) for size in memory)
    rates, inverse_batch = recipe.learning_rates(), 1.0 / recipe.expected_batch
    batch = recipe.batch_size, recipe.batches
    nothing = np.zeros(0, start.dtype)
    inserted = nothing if watcher.inserted is None else np.ascontiguousarray(watcher.inserted, start.dtype)
    probe = np.zeros(0) if watcher.probe is None else np.ascontiguousarray(watcher.probe, np.float64)
    projections = np.zeros(recipe.steps if watcher.probe is not None else 0)
    if not watcher.stepwise:
        compiled.train_steps(
            recipe.steps, theta, total, noise, x, data.y, squares, widths, key, threshold, batch, clip, spread, rates,
            inverse_batch, sampling, shape, update, first, second, words, rows, work, gemm, inserted, probe,
            projections,
        )  # fmt: skip
        return theta, projections
    y = data.y
    for step in range(recipe.steps):
        begin, count = compiled.sample_rows(sampling, key, step, threshold, batch, words, rows)
        asked = watcher.replaced_row is None or watcher.replaced_row in rows[begin : begin + count]
        if asked and (replaced := watcher.replace_record(step, theta)) is not None:
            if y is data.y:  # from now on this training has records of its own
                x, squares, y = _aligned_copy(x), squares.copy(), y.copy()
            row = replaced[0]
            x[row], y[row] = replaced[1:]
            squares[row] = x[row] @ x[row]
        compiled.clipped_sum(theta, total, x, y, squares, rows[begin:], count, widths, clip, shape, work, gemm)
        if watcher.inserted is not None and threefry.tossed(key, step, recipe.sample_rate):
            total += inserted
        watcher.contribute(step, total)
        compiled.noisy_step(
            theta, total, noise, key, step, spread, rates[step], inverse_batch, update, first, second
        )  # fmt: skip
        if watcher.probe is not None:
            projections[step] = total.astype(np.float64) @ probe
        if watcher.observe(step, total, theta):
            break
    return theta, projections


@functools.lru_cache(maxsize=8)
def _prepared(data: Dataset, precision: str) -> tuple[Array, Array]:
    """The records where compiled code wants them, and their squared norms."""
    x = _aligned_copy(data.x.astype(precision))
    return x, np.einsum("ij,ij->i", x, x)


def _aligned_copy(values: Array) -> Array:
    copy = _aligned(values.shape, values.dtype)
    copy[:] = values
    return copy


def _aligned(shape: tuple[int, ...], kind: DTypeLike) -> Array:
    """Zeros that begin at a multiple of 64 bytes: products may round differently elsewhere."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    raw = np.zeros(size + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + size].view(kind).reshape(shape)


def _fours(count: int) -> int:
    return -(-count // 4) * 4


def _sixteens(count: int) -> int:
    return -(-count // 16) * 16
