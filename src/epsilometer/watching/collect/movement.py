"""What moved in a model: parameters and buffers, whole, and who took steps."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from epsilometer.watching.collect.ranks import local

_AT_ONCE = 1 << 20  # values


class Places:
    """Values of tensors, as they were; `look` finds them by name: a script may put others in their place."""

    def __init__(self, look: Callable[[], Mapping[str, torch.Tensor]]) -> None:
        self._look = look
        self._before = {name: (tensor.shape, _digest(tensor)) for name, tensor in look().items()}

    def moved(self) -> list[str]:
        """Names of tensors that have other values now; one of another shape is something else."""
        now = self._look()
        return [
            name
            for name, (shape, digest) in self._before.items()
            if name in now and now[name].shape == shape and _digest(now[name]) != digest
        ]

    def __len__(self) -> int:
        return len(self._before)


def _digest(tensor: torch.Tensor) -> bytes:
    """Of all values: any few of them may be those that nothing moves. NaN is NaN, and −0 is 0."""
    found = hashlib.blake2b(digest_size=16)
    flat = local(tensor).reshape(-1)
    for begin in range(0, len(flat), _AT_ONCE):
        part = torch.nan_to_num(flat[begin : begin + _AT_ONCE]) + 0
        found.update(part.cpu().view(torch.uint8).numpy().tobytes())
    return found.digest()


_PRIVATE: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # private steps of each optimizer, whoever watches


def count_private(optimizer: Any) -> None:
    """This optimizer, which a private one wraps, is about to take a step that was clipped and noised."""
    _PRIVATE[optimizer] = _PRIVATE.get(optimizer, 0) + 1


class StepCounter:
    """Steps of every torch optimizer that has a parameter of the model, seen by torch's own hook for that."""

    def __init__(self, parameters: Iterable[torch.Tensor]) -> None:
        self._private_before = WeakKeyDictionary(_PRIVATE)
        self._parameters = {id(p) for p in parameters}
        self._steps: dict[int, int] = {}
        self._optimizers: dict[int, Any] = {}  # kept, so that no other takes its id
        self._handle: Any = register_optimizer_step_post_hook(self._seen)

    def _seen(self, optimizer: Any, *_: Any) -> None:
        key = id(optimizer)
        if key in self._steps or any(id(p) in self._parameters for g in optimizer.param_groups for p in g["params"]):
            self._optimizers[key] = optimizer
            self._steps[key] = self._steps.get(key, 0) + 1

    @property
    def steps(self) -> int:
        """All of them."""
        return sum(self._steps.values())

    def bare(self) -> list[tuple[Any, int]]:
        """Optimizers with steps that were not private ones, of this training or of another, and how many."""
        found = []
        for key, optimizer in self._optimizers.items():
            private = _PRIVATE.get(optimizer, 0) - self._private_before.get(optimizer, 0)
            if self._steps[key] > private:
                found.append((optimizer, self._steps[key] - private))
        return found

    def close(self) -> None:
        self._handle.remove()
