"""Which records a data set has, so that others can be held against it: a sample of them, by number.

The sample is that of the smallest numbers, so that samples of two data sets say how much these share. Numbers are keyed
with a secret of the command that is watched, which is written nowhere: whoever has the recording only cannot look a
record up in it.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np
import torch
from torch.utils.data import ConcatDataset, Subset

from epsilometer.watching.replay.changes import names_of
from epsilometer.watching.settings import SECRET

SAMPLE = 256
_HERE = os.urandom(16).hex()  # where no command is watched
_DEPTH = 8  # data sets made of others

Names = np.ndarray[Any, np.dtype[np.uint64]]


def sample_of(dataset: Any) -> list[int]:
    """The smallest numbers of its records, all of them if there are few; none if records cannot be told apart."""
    names = _names(dataset, _DEPTH)
    if names is None:
        return []
    return [int(one) for one in np.unique(_keyed(names, os.environ.get(SECRET, _HERE)))[:SAMPLE]]


def _keyed(names: Names, secret: str) -> Names:
    """Other numbers, in another order, for every secret."""
    for word in np.frombuffer(hashlib.blake2b(secret.encode(), digest_size=32).digest(), np.uint64):
        names = (names ^ word) * (word | np.uint64(1))
        names ^= names >> np.uint64(29)
    return names


def _names(dataset: Any, depth: int) -> Names | None:
    """A number for each record: its features, as labels may be others. No code of the script's runs for it."""
    if not depth:
        return None
    if isinstance(dataset, Subset):
        within = _names(dataset.dataset, depth - 1)
        return None if within is None else within[[int(i) for i in dataset.indices]]
    if isinstance(dataset, ConcatDataset):
        parts = [_names(one, depth - 1) for one in dataset.datasets]
        known = [one for one in parts if one is not None]
        return np.concatenate(known) if len(known) == len(parts) else None
    features = _features(dataset)
    return None if features is None else names_of(features)


def _features(dataset: Any) -> torch.Tensor | None:
    """The largest tensor or array that it keeps with a row for each record."""
    kept = vars(dataset) if hasattr(dataset, "__dict__") else {}
    values = [part for one in kept.values() for part in (one if isinstance(one, tuple) else (one,))]
    arrays = [torch.from_numpy(one) if _plain(one) else one for one in values]
    tensors = [one for one in arrays if isinstance(one, torch.Tensor) and one.dim() and len(one)]
    rows = [one for one in tensors if len(one) == _length(dataset)]
    return max(rows, key=lambda one: one.numel(), default=None)


def _plain(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.dtype.isnative


def _length(dataset: Any) -> int:
    try:
        return len(dataset)
    except TypeError:
        return -1
