"""What a script writes by `torch.save`, wherever it goes and however long it is kept: digests, and numbers."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from epsilometer.watching.replay.files import tensors_of
from epsilometer.watching.replay.lockstep import Lockstep

_MOST = 256  # saves that are looked at


def attach(lockstep: Lockstep) -> None:
    """Tell it of every save."""
    original, number = torch.save, 0

    @functools.wraps(original)
    def save(obj: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal number
        if number < _MOST:
            number += 1
            lockstep.guarded(lambda: lockstep.saved(number, _digests(obj)))
        return original(obj, *arguments, **named)

    torch.save = save


def _digests(obj: Any) -> dict[str, str]:
    """By name; numbers as they are."""
    return {name: _digest(array) for name, array in tensors_of(obj, "")} | dict(_numbers(obj, ""))


def _numbers(found: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(found, int | float):
        yield name, repr(found)
    elif isinstance(found, Mapping):
        for key, value in found.items():
            yield from _numbers(value, f"{name}.{key}" if name else str(key))
    elif isinstance(found, list | tuple):
        for at, value in enumerate(found):
            yield from _numbers(value, f"{name}[{at}]")


def _digest(array: np.ndarray[Any, Any]) -> str:
    found = hashlib.blake2b(f"{array.dtype} {array.shape}".encode(), digest_size=12)
    found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
