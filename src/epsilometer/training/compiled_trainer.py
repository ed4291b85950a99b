"""The compiled backend: memory for compiled.py's loop, laid out so that results never depend on where it lies."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import DTypeLike

from epsilometer.data import Dataset
from epsilometer.training import blas, compiled, sparse, threefry
from epsilometer.training.models import Array, Labels, Network
from epsilometer.training.recipe import Recipe
from epsilometer.training.side_by_side import Training
from epsilometer.training.threefry import Words
from epsilometer.training.watchers import Poisoner, Watcher

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


class CompiledTrainer:
    """Trains by a recipe, one model at a time or several in turns, which share all memory that no model keeps."""

    def __init__(self, recipe: Recipe, noise_scale: float) -> None:
        self._recipe = recipe
        self._spread = recipe.noise_multiplier * recipe.clip_norm * noise_scale
        self._rates, self._inverse_batch = recipe.learning_rates(), 1.0 / recipe.expected_batch
        self._threshold = threefry.below(recipe.sample_rate)
        self._sampling = _SAMPLINGS[recipe.sampling]
        self._batch = recipe.batch_size, recipe.batches
        self._update = _OPTIMIZERS[recipe.optimizer], recipe.weight_decay, recipe.momentum
        self._scratch = functools.lru_cache(maxsize=4)(_scratch)
        self._own_records = functools.lru_cache(maxsize=2)(_copied)

    def train(self, network: Network, data: Dataset, key: Words, start: Array, watcher: Watcher) -> Training:
        """One training; waits for a record wherever a batch has the poisoner's row."""
        recipe, real, poisoner = self._recipe, start.dtype.type, watcher.poisoner
        prepared = _prepared if poisoner is None else self._own_records
        records, y, squares = prepared(data, start.dtype.name)
        compressed = len(records[1][0]) > 0
        members = np.zeros(0, np.int64) if watcher.rows is None else np.ascontiguousarray(watcher.rows, np.int64)
        size = len(data) if watcher.rows is None else len(members)
        total, noise, words, work = self._scratch(network, size, compressed, start.dtype.name)
        theta, rows, chosen = _aligned_copy(start), *np.zeros((2, size + 1), np.int64)
        widths = np.array(network.widths, dtype=np.int64)
        gemm = blas.product_addresses()[0 if start.dtype == np.float32 else 1]
        clip, spread = real(recipe.clip_norm), real(self._spread)
        shape = _ACTIVATIONS[network.activation], _LOSSES[network.loss], _CLIPPINGS[recipe.clipping]
        memory = (0, 0) if recipe.optimizer == "sgd" else (len(theta), len(theta) if recipe.optimizer == "adam" else 0)
        first, second = (np.zeros(size, start.dtype) for size in memory)
        nothing = np.zeros(0, start.dtype)
        inserted = nothing if watcher.inserted is None else np.ascontiguousarray(watcher.inserted, start.dtype)
        probe = np.zeros(0) if watcher.probe is None else np.ascontiguousarray(watcher.probe, np.float64)
        projections = np.zeros(recipe.steps if watcher.probe is not None else 0)
        if not watcher.stepwise:
            with blas.one_thread():
                compiled.train_steps(
                    recipe.steps, theta, total, noise, records, y, squares, widths, key, self._threshold, self._batch,
                    clip, spread, self._rates, self._inverse_batch, self._sampling, shape, self._update, first, second,
                    words, rows, members, chosen, work, gemm, inserted, probe, projections,
                )  # fmt: skip
            return theta, projections
        for step in range(recipe.steps):
            watcher.before(step, theta)
            begin, count = compiled.sample_rows(self._sampling, key, step, self._threshold, self._batch, words, rows)
            compiled.choose(rows, begin, count, members, chosen)
            poison = None
            if poisoner is not None and poisoner.row in chosen[:count]:
                poison = yield step, theta
            with _replaced(records[0], y, squares, poisoner, poison), blas.one_thread():
                compiled.clipped_sum(
                    theta, total, records, y, squares, chosen, count, widths, clip, shape, work, gemm
                )  # fmt: skip
            if watcher.inserted is not None and threefry.tossed(key, step, recipe.sample_rate):
                total += inserted
            watcher.contribute(step, total)
            compiled.noisy_step(
                theta, total, noise, key, step, spread, self._rates[step], self._inverse_batch, self._update, first,
                second,
            )  # fmt: skip
            if watcher.probe is not None:
                projections[step] = total.astype(np.float64) @ probe
            if watcher.observe(step, total, theta):
                break
        return theta, projections


def _scratch(
    network: Network, records: int, compressed: bool, precision: str
) -> tuple[Array, Array, Array, tuple[Array, ...]]:
    """Memory for a gradient sum, noise, words that choose a batch, and what a batch passes through."""
    total, noise = _aligned((network.parameters,), precision), _aligned((_fours(network.parameters),), np.float32)
    chunk = _apart(min(compiled.CHUNK, _sixteens(max(records, 1))))
    units, layers = sum(network.widths[1:]), len(network.widths) - 1
    inputs, outputs = network.widths[:2]
    batch, tile, turned = (0, sparse.TILE, inputs) if compressed else (chunk, 0, 0)
    shapes = (
        (batch, inputs), (units, chunk), (units, chunk), (2, chunk), (layers, chunk), (tile, outputs), (turned, outputs)
    )  # fmt: skip
    return total, noise, _aligned((_fours(records),), np.uint32), tuple(_aligned(shape, precision) for shape in shapes)


Records = tuple[Array, sparse.Compressed]  # as they are, and compressed where that is worth it


@functools.lru_cache(maxsize=8)
def _prepared(data: Dataset, precision: str) -> tuple[Records, Labels, Array]:
    """The records where compiled code wants them, labels, and squared norms; for reading only."""
    x = _aligned_copy(data.x.astype(precision, copy=False))
    return (x, sparse.compress(x)), data.y, np.einsum("ij,ij->i", x, x)


def _copied(data: Dataset, precision: str) -> tuple[Records, Labels, Array]:
    """The same, to be changed for a moment; not compressed, since a poison may have any number of cells."""
    (x, _), y, squares = _prepared(data, precision)
    return (_aligned_copy(x), sparse.nothing(x.dtype)), y.copy(), squares.copy()


@contextmanager
def _replaced(
    x: Array, y: Labels, squares: Array, poisoner: Poisoner | None, poison: tuple[Array, int] | None
) -> Iterator[None]:
    """Within, the poisoner's row is another; others who share the records never see it."""
    if poisoner is None or poison is None:
        yield
        return
    row = poisoner.row
    before = x[row].copy(), y[row], squares[row]
    x[row], y[row] = poison
    squares[row] = x[row] @ x[row]
    try:
        yield
    finally:
        x[row], y[row], squares[row] = before


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


def _apart(length: int) -> int:
    """A length for rows, or sixteen more: with a power of two, all of a column shares few places in the cache."""
    return length + 16 if length % 32 == 0 else length
