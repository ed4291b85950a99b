"""What is crafted is remembered: several games of one training begin with the same."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

Made = TypeVar("Made")


def remembered(size: int) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """`functools.lru_cache` for functions whose last argument is a seed, which counts by what it holds.

    >>> seeds = remembered(2)(lambda seed: seed)
    >>> seeds(np.random.SeedSequence([1, 2])) is seeds(np.random.SeedSequence([1, 2]))
    True
    """

    def decorate(make: Callable[..., Made]) -> Callable[..., Made]:
        @functools.lru_cache(maxsize=size)
        def kept(others: tuple[Any, ...], entropy: Any, spawn_key: tuple[int, ...]) -> Made:
            return make(*others, np.random.SeedSequence(entropy, spawn_key=spawn_key))

        @functools.wraps(make)
        def found(*arguments: Any) -> Made:
            *others, seed = arguments
            entropy = int(seed.entropy) if np.ndim(seed.entropy) == 0 else tuple(seed.entropy)
            return kept(tuple(others), entropy, seed.spawn_key)

        return found

    return decorate
