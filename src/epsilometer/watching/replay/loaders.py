"""Around the loaders of torch: when a training asks for its next batch, and what it gets."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from epsilometer.watching.replay.lockstep import Lockstep

_DEPTH = 4  # samplers around samplers


class Loaders:
    """Those of trainings, known by their samplers, and all others."""

    def __init__(self, lockstep: Lockstep, *, every: bool = False) -> None:
        self._lockstep, self._samplers, self._all = lockstep, list[Any](), every

    def add(self, loader: Any) -> None:
        """Of a training."""
        if isinstance(loader, DataLoader):
            self._samplers.append(loader._index_sampler)

    def attach(self) -> None:
        begin, following = DataLoader.__iter__, _BaseDataLoaderIter.__next__
        lockstep = self._lockstep

        @functools.wraps(begin)
        def __iter__(loader: Any) -> Any:  # noqa: N807
            self._enter(loader)
            try:
                return begin(loader)
            finally:
                lockstep.guarded(lockstep.settle)

        @functools.wraps(following)
        def __next__(iterator: Any) -> Any:  # noqa: N807
            trains = self._enter(iterator)
            try:
                batch = following(iterator)
            except StopIteration:
                if trains:
                    lockstep.guarded(lockstep.exhausted)
                raise
            finally:
                lockstep.guarded(lockstep.settle)
            if not trains or not lockstep.active:
                return batch
            changed = lockstep.guarded(lockstep.batch, batch, getattr(iterator, "_dataset", None))
            return batch if changed is None else changed

        DataLoader.__iter__ = __iter__  # type: ignore[method-assign]
        _BaseDataLoaderIter.__next__ = __next__  # type: ignore[method-assign, assignment]

    def _enter(self, asked: Any) -> bool:
        """Is it a training's?"""
        lockstep = self._lockstep
        lockstep.guarded(lockstep.look)
        trains = self._of_training(asked._index_sampler)
        if trains:
            lockstep.guarded(lockstep.request)
        return trains

    def _of_training(self, sampler: Any) -> bool:
        if self._all:
            return True
        for _ in range(_DEPTH):
            if any(sampler is one for one in self._samplers):
                return True
            sampler = getattr(sampler, "sampler", None)
        return False


def before_forward(lockstep: Lockstep, module: Any) -> None:
    """A model is about to see records."""
    lockstep.guarded(lockstep.look)
    if module.training and torch.is_grad_enabled():
        lockstep.guarded(lockstep.forward, _coarse(module))


def _coarse(module: Any) -> bool:
    """Does it calculate with so few digits that sums depend on the size of the batch?"""
    weights = next(module.parameters(), None)
    if weights is None:
        return False
    device = weights.device.type
    quick = device == "cuda" and bool(torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32)
    return quick or torch.is_autocast_enabled(device) or weights.dtype in (torch.float16, torch.bfloat16)
