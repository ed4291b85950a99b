"""Who is in a batch: the plain twin of compiled.sample_rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from epsilometer.training import threefry
from epsilometer.training.recipe import Recipe
from epsilometer.training.threefry import Words


def sample(recipe: Recipe, key: Words, step: int, records: int) -> NDArray[np.int64]:
    """The rows of the batch of a step: a pure function of (key, step)."""
    if recipe.sampling == "full":
        return np.arange(records)
    if recipe.sampling == "poisson":
        return np.flatnonzero(threefry.words(key, threefry.SAMPLE, step, records) < threefry.below(recipe.sample_rate))
    size = recipe.batch_size
    if recipe.sampling == "fixed-size":
        return _drawn(key, step, records, size)
    order = _drawn(key, step - step % recipe.batches, records, records)
    return order[step % recipe.batches * size :][:size]


def _drawn(key: Words, step: int, records: int, places: int) -> NDArray[np.int64]:
    """Fisher and Yates: a random draw without replacement."""
    rows = np.arange(records)
    words = threefry.words(key, threefry.SAMPLE, step, records).astype(np.uint64)
    for i in range(places):
        j = i + int((words[i] * np.uint64(records - i)) >> np.uint64(32))
        rows[i], rows[j] = rows[j], rows[i]
    return rows[:places]
