"""Streams of randomness: everything that is drawn follows from a plan's seed, and no two uses share a stream."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]


@enum.unique  # two names for one number would be one stream
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
    CHECKING = 8  # trials that tell beforehand what an audit could show
    CLIP_NORM = 9  # the training whose gradient norms choose a clip norm
    UTILITY = 10  # trainings that tell how good models are
    DRAWING = 11  # the game of a trial, where every trial has another
    TIMING = 12  # trials that tell how many fit into a time
    QUERYING = 20  # noisy copies of records that a label-only attack asks about
    SPLITTING = 21  # which records are tossed for, and which are in no model
    INSTANCES = 30  # trainings that tell what each record costs, and which records are looked at
    BATCHES = 31  # that are drawn at a checkpoint
    RECONSTRUCTING = 50  # which records are rebuilt, and the noise that hides them
    COLLABORATING = 51  # batches, coins and noise of participants who train together
    PRETRAINING = 52  # weights, order and augmentation of a feature extractor's training


def seed_of(seed: int, stream: int, *indices: int) -> np.random.SeedSequence:
    """The seed of one use.

    >>> seed_of(5, Stream.IN, 7).spawn_key
    (1, 7)
    """
    return np.random.SeedSequence(seed, spawn_key=(int(stream), *indices))


class Seeds(Sequence[np.random.SeedSequence]):
    """The seeds of many uses, each made when it is asked for: making one takes longer than some trials do.

    >>> Seeds(5, [(Stream.IN, 7), (Stream.IN, 8)])[1].spawn_key
    (1, 8)
    """

    def __init__(self, seed: int, keys: Sequence[tuple[int, int]]) -> None:
        self.seed, self.keys = seed, keys

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, index: int) -> np.random.SeedSequence: ...
    @overload
    def __getitem__(self, index: slice) -> Seeds: ...
    def __getitem__(self, index: int | slice) -> np.random.SeedSequence | Seeds:
        if isinstance(index, slice):
            return Seeds(self.seed, self.keys[index])
        return seed_of(self.seed, *self.keys[index])


def words_of(seeds: Sequence[np.random.SeedSequence], count: int) -> Words:
    """`seed.generate_state(count)` of each, a row a seed; of `Seeds` for all at once, without making any.

    >>> keys = [(Stream.OUT, 3), (Stream.IN, 4)]
    >>> words_of(Seeds(9, keys), 2).tolist() == [seed_of(9, *key).generate_state(2).tolist() for key in keys]
    True
    """
    if not isinstance(seeds, Seeds):
        return np.array([seed.generate_state(count) for seed in seeds], np.uint32).reshape(-1, count)
    keys = np.asarray(seeds.keys, np.uint32).reshape(-1, 2)
    return _generated(_pool(seeds.seed, keys.T), count)


# numpy's SeedSequence for many spawn keys. Its algorithm is fixed: numpy promises the same streams in all versions.
_POOL, _WORD = 4, 2**32 - 1
_FIRST_IN, _NEXT_IN = 0x43B0D7E5, 0x931E8875
_FIRST_OUT, _NEXT_OUT = 0x8B51F9DD, 0x58F38DED
_LEFT, _RIGHT, _SHIFT = np.uint32(0xCA01F9DD), np.uint32(0x4973F715), np.uint32(16)


class _Hash:
    """Multiplies by another constant each time."""

    def __init__(self, first: int, factor: int) -> None:
        self._constant, self._factor = first, factor

    def __call__(self, values: Words) -> Words:
        values = values ^ np.uint32(self._constant)
        self._constant = self._constant * self._factor & _WORD
        values = values * np.uint32(self._constant)
        return values ^ (values >> _SHIFT)


def _pool(seed: int, keys: Words) -> list[Words]:
    """The mixed entropy of the seed's words, at least four of them, and a key's; an array for each word of the pool."""
    entropy = [seed >> shift & _WORD for shift in range(0, max(seed.bit_length(), 32 * _POOL), 32)]
    words = [*(np.array([word], np.uint32) for word in entropy), *keys]
    hashed = _Hash(_FIRST_IN, _NEXT_IN)
    pool = [hashed(word) for word in words[:_POOL]]
    for source in range(_POOL):
        for target in (index for index in range(_POOL) if index != source):
            pool[target] = _mixed(pool[target], hashed(pool[source]))
    for word in words[_POOL:]:
        pool = [_mixed(part, hashed(word)) for part in pool]
    return pool


def _mixed(one: Words, other: Words) -> Words:
    values: Words = _LEFT * one - _RIGHT * other
    return values ^ (values >> _SHIFT)


def _generated(pool: list[Words], count: int) -> Words:
    hashed = _Hash(_FIRST_OUT, _NEXT_OUT)
    return np.stack([hashed(pool[index % _POOL]) for index in range(count)], axis=1)
