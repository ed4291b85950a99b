"""Streams of randomness: everything that is drawn follows from a plan's seed, and no two uses share a stream."""

from __future__ import annotations

import enum

import numpy as np


class Stream(enum.IntEnum):
    """The first part of a spawn key. Trials of worlds 0 and 1 have their world's number."""

    OUT = 0
    IN = 1
    PREPARING = 2  # what an adversary makes before the first trial
    COINS = 3  # which canaries are in a training
    INSERTING = 4  # what an insertion draws while a training runs
    PILOT = 5  # trials that choose an adversary
    CONTROL = 6  # trials of the A/A control
    LEARNING = 7  # trials that a score is learned from


def seed_of(seed: int, stream: int, *indices: int) -> np.random.SeedSequence:
    """The seed of one use.

    >>> seed_of(5, Stream.IN, 7).spawn_key
    (1, 7)
    """
    return np.random.SeedSequence(seed, spawn_key=(int(stream), *indices))
