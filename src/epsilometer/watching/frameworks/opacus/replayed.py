"""A training that `make_private` has returned, as runs in lockstep ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch

from epsilometer.watching.collect.mixing import plain
from epsilometer.watching.frameworks.opacus.seen import rows
from epsilometer.watching.replay.data import TrainingData
from epsilometer.watching.replay.lockstep import Trained
from epsilometer.watching.replay.optimizers import places_of, put, state_of
from epsilometer.watching.replay.process import present, watch_forward
from epsilometer.watching.settings import Replaying

_ATTRIBUTES = {
    "clip norm": "max_grad_norm",
    "divisor": "expected_batch_size",
    "noise multiplier": "noise_multiplier",
}
_COUNTS = ("unclipped_num", "sample_size")


class ReplayedOpacus(Trained):
    """Its tensors and numbers by name."""

    def __init__(self, number: int, module: Any, optimizer: Any) -> None:
        self.number = number
        self._module, self._optimizer = module, optimizer  # kept, as what is left in the end is compared then
        self._names = {id(p): plain(name) for name, p in module.named_parameters()}

    def sums(self) -> dict[str, torch.Tensor]:
        return {self._name(p): p.summed_grad for p in self._optimizer.params if p.summed_grad is not None}

    def gradients(self) -> dict[str, torch.Tensor]:
        return {self._name(p): p.grad for p in self._optimizer.params if p.grad is not None}

    def state(self) -> dict[str, torch.Tensor]:
        module, optimizer = self._module, self._optimizer
        found = {f"weights: {plain(name)}": p.detach() for name, p in module.named_parameters()}
        found |= {f"buffers: {plain(name)}": one for name, one in module.named_buffers()}
        return found | state_of(optimizer, self._name)

    def numbers(self) -> dict[str, float]:
        return {name: float(owner[key]) for name, owner, key in self._places()}

    def set_numbers(self, numbers: dict[str, float]) -> None:
        put(self._places(), numbers)

    def released(self) -> dict[str, float]:
        """Adaptive clipping pays for the noisy count that moves its clip norm, and knows how many records there are."""
        return {name: float(value) for name, value in vars(self._optimizer).items() if name in _COUNTS}

    def set_released(self, numbers: dict[str, float]) -> None:
        optimizer = self._optimizer
        for name, value in numbers.items():
            before = vars(optimizer)[name]
            setattr(optimizer, name, torch.full_like(before, value) if isinstance(before, torch.Tensor) else value)

    def clip_norm(self) -> float:
        return float(self._optimizer.max_grad_norm)

    def records(self) -> int | None:
        return rows(self._optimizer)

    def norms(self) -> list[float] | None:
        squares: Any = 0.0
        for p in self._optimizer.params:
            found: Any = getattr(p, "grad_sample", None)
            samples = found if isinstance(found, list) else [found]
            if any(not isinstance(one, torch.Tensor) for one in samples):
                return None
            norms = [torch.linalg.vector_norm(one.reshape(len(one), -1), dim=1) for one in samples]  # makes no copy
            squares = squares + torch.cat(norms).square()
        return torch.as_tensor(squares).sqrt().tolist() if isinstance(squares, torch.Tensor) else None

    def _name(self, parameter: Any) -> str:
        return self._names.get(id(parameter)) or self._names.setdefault(id(parameter), f"tensor {len(self._names)}")

    def _places(self) -> Iterator[tuple[str, Any, str]]:
        """Where numbers are: names, and who has them under which key."""
        return places_of(self._optimizer, _ATTRIBUTES)


def replayed(replaying: Replaying, number: int, module: Any, optimizer: Any, loader: Any, dataset: Any) -> Any:
    """The lockstep of this process, which follows this training from now on; none in another process."""
    found = present(replaying)
    if found is None:
        return None
    lockstep, loaders = found
    training = ReplayedOpacus(number, module, optimizer)
    loaders.add(loader)
    watch_forward(module)
    lockstep.guarded(lockstep.around.add, module)
    lockstep.guarded(lockstep.begin, training, TrainingData(dataset))
    return _Hooks(lockstep, training)


class _Hooks:
    """What the optimizer's methods tell."""

    def __init__(self, lockstep: Any, training: ReplayedOpacus) -> None:
        self._lockstep, self._training, self._noised = lockstep, training, False

    def apart(self) -> AbstractContextManager[None]:
        """Around what is ours."""
        around: AbstractContextManager[None] = self._lockstep.apart()
        return around

    def summed(self) -> None:
        """Clipping is done, and noise comes next."""
        self._lockstep.guarded(self._lockstep.summed, self._training)

    def noised(self) -> None:
        """Noise is added, and nothing else done."""
        self._noised = True
        self._lockstep.guarded(self._lockstep.stepped, self._training)

    def stepped(self) -> None:
        """The step is ready; where its noise was not seen, this is the time."""
        if not self._noised:
            self.summed()
            self.noised()
        self._noised = False
