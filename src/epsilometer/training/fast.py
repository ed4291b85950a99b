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

CHUNK = 1024  # records that are handled at once; larger batches are handled in several goes


def train_one(
    recipe: Recipe, network: Network, data: Dataset, key: Words, start: Array, watcher: Watcher, noise_scale: float
) -> tuple[Array, Floats]:
    """One training: final parameters and projections."""
    blas.use_one_thread()
    real = start.dtype.type
    x, squares = _prepared(data, start.dtype.name)
    theta, total = _aligned(start.shape, start.dtype), _aligned(start.shape, start.dtype)
    theta[:] = start
    noise = _aligned((_fours(len(theta)),), np.float32)
    words, rows = _aligned((_fours(len(data)),), np.uint32), np.zeros(len(data) + 1, np.int64)
    chunk, units = min(CHUNK, _sixteens(len(data))), sum(network.widths[1:])
    shapes = (chunk, network.widths[0]), (units, chunk), (units, chunk), (3, chunk), (chunk,)
    work = tuple(_aligned(shape, start.dtype) for shape in shapes)
    widths = np.array(network.widths, dtype=np.int64)
    gemm = blas.product_addresses()[0 if start.dtype == np.float32 else 1]
    activation = compiled.TANH if network.activation == "tanh" else compiled.RELU
    threshold, clip = threefry.below(recipe.sample_rate), real(recipe.clip_norm)
    spread = real(recipe.noise_multiplier * recipe.clip_norm * noise_scale)
    rate = real(recipe.learning_rate / recipe.expected_batch)
    nothing = np.zeros(0, start.dtype)
    inserted = nothing if watcher.inserted is None else np.ascontiguousarray(watcher.inserted, start.dtype)
    probe = np.zeros(0) if watcher.probe is None else np.ascontiguousarray(watcher.probe, np.float64)
    projections = np.zeros(recipe.steps if watcher.probe is not None else 0)
    if not watcher.stepwise:
        compiled.train_steps(
            0, recipe.steps, theta, total, noise, x, data.y, squares, widths, key, threshold, clip, spread, rate,
            activation, words, rows, work, gemm, inserted, probe, projections,
        )  # fmt: skip
        return theta, projections
    for step in range(recipe.steps):
        count = compiled.poisson_rows(key, step, threshold, words, rows)
        compiled.clipped_sum(theta, total, x, data.y, squares, rows, count, widths, clip, activation, work, gemm)
        if watcher.inserted is not None and threefry.words(key, threefry.COIN, step, 4)[0] < threshold:
            total += inserted
        watcher.contribute(step, total)
        compiled.noisy_step(theta, total, noise, key, step, spread, rate)
        if watcher.probe is not None:
            projections[step] = total.astype(np.float64) @ probe
        watcher.observe(step, total)
    return theta, projections


@functools.lru_cache(maxsize=8)
def _prepared(data: Dataset, precision: str) -> tuple[Array, Array]:
    """The records where compiled code wants them, and their squared norms."""
    x = _aligned(data.x.shape, precision)
    x[:] = data.x
    return x, np.einsum("ij,ij->i", x, x)


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
