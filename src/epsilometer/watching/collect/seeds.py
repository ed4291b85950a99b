"""Noise that somebody can compute again: is it that of a new generator with a common seed?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from epsilometer.watching.collect.noise import NoiseTally
from epsilometer.watching.collect.reseeded import Reseeded
from epsilometer.watching.facts import Seeds

_STEPS = 4
_GUESSES = (*range(1001), 1234, 1337, 2020, 2021, 2022, 2023, 2024, 2025, 2026, 4321, 12345, 31337, 54321, 123456,
            1234567, 123456789, 0xDEADBEEF)  # fmt: skip
_CHANCE = 1e-9  # with which two directions that have nothing to do with each other are taken for one


def seeds(tally: NoiseTally, seed: int | None, own_generator: bool, reseeded: Reseeded) -> Seeds:
    """Of a training's noise, whose generator says of itself that it began with `seed`."""
    first = [[float(x) for x in step] for step in tally.joint[:_STEPS]]
    guessed = _guessed(tally) if tally.loud else None
    each = guessed is not None and _second_too(tally, guessed)
    return Seeds(guessed, each, seed, own_generator, first, reseeded.again, reseeded.back)


def _guessed(tally: NoiseTally) -> int | None:
    if not tally.on_cpu:
        return None
    first = tally.prefixes[0][0]
    return next((seed for seed in _GUESSES if _same(first, _drawn(seed, tally))), None)


def _second_too(tally: NoiseTally, seed: int) -> bool:
    return len(tally.prefixes) > 1 and _same(tally.prefixes[1][0], _drawn(seed, tally))


def _drawn(seed: int, tally: NoiseTally) -> Any:
    # Torch fills 16 numbers or more in another way than fewer, and the first 32 are the same however many follow.
    size, used = tally.parameters[0].size, len(tally.prefixes[0][0])
    many = used if size == used else used + 16
    drawn = torch.empty(many).normal_(generator=torch.Generator().manual_seed(seed))
    return drawn[:used].double().numpy()


def _same(a: Any, b: Any) -> bool:
    """Of n independent directions, cos² is above c² with probability (1 − c²)^((n − 1)/2) at most, about."""
    n = min(len(a), len(b))
    length = float(np.linalg.norm(a[:n]) * np.linalg.norm(b[:n]))
    if n < 2 or not length:
        return False
    rest = max(1.0 - (float(np.dot(a[:n], b[:n])) / length) ** 2, 1e-30)
    return 0.5 * (n - 1) * math.log(rest) < math.log(_CHANCE / len(_GUESSES))
