"""A step that several processes take together: what this one gave to it, and what came back, at some coordinates.

Noise may be drawn by one rank or by all, so that nothing can be said of a rank alone: whoever watches adds up what all
of them gave. No rank asks another one: the script's own communication is as it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from epsilometer.arrays import Floats
from epsilometer.watching.collect.aside import Aside
from epsilometer.watching.collect.drawn import NoisySum

_COORDINATES, _FEWEST = 1024, 8  # of a step; of a parameter, if it has so many
_FIRST, _EVERY = 64, 16  # steps


@dataclass(frozen=True)
class Given:
    """Of one step: this rank's part of the sum before and after noise, the gradient that the inner optimizer took the
    step with, all at the same coordinates of each parameter; the records of its batch, if they are known."""

    step: int
    names: list[str]
    sizes: list[int]
    scale: float  # of the noise that is accounted
    divisor: float  # of the noisy sum before it is reduced
    total: Floats
    noisy: Floats
    arrived: Floats
    batch: list[int] | None


@dataclass
class _UnderWay:
    step: int
    sums: Sequence[NoisySum]
    total: Floats
    noisy: Floats
    divisor: float
    batch: list[int] | None
    scale: float = 0.0
    chosen: list[Any] = field(default_factory=list)


class RankShares(Aside):
    """Told of every step that is noised, and of what it is accounted with."""

    def __init__(self, optimizer: Callable[[], Any]) -> None:
        """Who takes the step, as it is at any time."""
        super().__init__()
        self._optimizer = optimizer
        self.rank, self.world, self.group = torch.distributed.get_rank(), torch.distributed.get_world_size(), group()
        self._chosen: dict[int, torch.Tensor] = {}
        self._step: _UnderWay | None = None
        self._ready: list[Given] = []
        self._handle: Any = register_optimizer_step_pre_hook(self._before)

    def noised(self, step: int, sums: Sequence[NoisySum], divisor: float, batch: list[int] | None) -> None:
        """The rank's part of this step, before it is divided and reduced."""
        self._step = None
        if step > _FIRST and step % _EVERY:
            return
        with self.look(), torch.no_grad():
            sums = [one for one in sums if one.noisy.numel()]
            chosen = [self._coordinates(place, one, len(sums)) for place, one in enumerate(sums)]
            total, noisy = (_values([getattr(one, name) for one in sums], chosen) for name in ("total", "noisy"))
            self._step = _UnderWay(step, sums, total, noisy, divisor, batch, chosen=chosen)

    def accounted(self, scale: float) -> None:
        """The deviation that noise of the step should have, as it is accounted."""
        if self._step is not None:
            self._step.scale = scale

    def taken(self) -> list[Given]:
        """Steps that were not asked for before."""
        ready, self._ready = self._ready, []
        return ready

    def close(self) -> None:
        self._handle.remove()

    def _before(self, optimizer: Any, *_: Any) -> None:
        step = self._step
        if step is None or optimizer is not self._optimizer():
            return
        self._step = None
        with self.look(), torch.no_grad():
            gradients = [one.parameter.grad for one in step.sums]
            if any(one is None for one in gradients):
                return
            arrived = _values(gradients, step.chosen)
            names, sizes = [one.name for one in step.sums], [len(one) for one in step.chosen]
            self._ready.append(
                Given(step.step, names, sizes, step.scale, step.divisor, step.total, step.noisy, arrived, step.batch)
            )

    def _coordinates(self, place: int, one: NoisySum, parameters: int) -> torch.Tensor:
        """The same in all ranks, whose parameters are in the same order."""
        key = id(one.parameter)
        if key not in self._chosen:
            size, many = one.noisy.numel(), max(_COORDINATES // max(parameters, 1), _FEWEST)
            drawn = np.random.default_rng(place).permutation(size)[:many] if size > many else np.arange(size)
            self._chosen[key] = torch.as_tensor(np.sort(drawn))
        return self._chosen[key]


def several_processes() -> bool:
    """Do several take each step of this one's trainings together?"""
    distributed = torch.distributed
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


def group() -> str:
    """The same for all ranks that were started together."""
    port = os.environ.get("MASTER_PORT", "")
    return f"{torch.distributed.get_world_size()}:{port}:{os.getppid()}"


def local(tensor: Any) -> torch.Tensor:
    """The part of it that lies here."""
    own: torch.Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return own.detach()


def _values(tensors: Sequence[Any], chosen: Sequence[torch.Tensor]) -> Floats:
    parts = [local(one).reshape(-1)[where.to(one.device)] for one, where in zip(tensors, chosen, strict=True)]
    return np.concatenate([part.double().cpu().numpy() for part in parts]) if parts else np.zeros(0)
