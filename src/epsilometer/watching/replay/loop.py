"""A training of a loop that somebody wrote by hand: an optimizer, and the models that have its parameters."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from epsilometer.watching.replay.optimizers import places_of, put, state_of

_LINEAR = {"momentum_buffer", "step"}  # states with which a step is linear in its gradients


class Models:
    """Modules that were called, but for their parts."""

    def __init__(self) -> None:
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()
        self._roots: list[Any] = []

    def called(self, module: Any) -> None:
        if module not in self._known:
            self._known.update(module.modules())
            self._roots.append(module)

    def of(self, parameters: set[int]) -> list[Any]:
        """Those that have any of these parameters, by identity."""
        return [root for root in self._roots if any(id(p) in parameters for p in root.parameters())]


class Loop:
    """Its tensors and numbers by name."""

    def __init__(self, number: int, optimizer: Any, models: Models) -> None:
        self.number, self._optimizer, self._models = number, optimizer, models
        self._names: dict[int, str] = {}
        self.steps = 0
        self.by_line = hasattr(optimizer, "names")  # it is none, and has nothing but gradients

    def gradients(self) -> dict[str, torch.Tensor]:
        """As they are; those that are sparse are not followed."""
        found = {}
        for p in self._parameters():
            if p.grad is not None and p.grad.layout is torch.strided:
                found[self._name(p)] = p.grad.detach()
        return found

    def weights(self) -> dict[str, torch.Tensor]:
        return {self._name(p): p.detach() for p in self._parameters()}

    def state(self) -> dict[str, torch.Tensor]:
        """All that lasts: names begin with what it is, then a colon."""
        own = {id(p) for p in self._parameters()}
        found = {f"weights: {name}": one for name, one in self.weights().items()}
        for at, root in enumerate(self._models.of(own)):
            along = f" of model {at}" if at else ""
            others = {name: p.detach() for name, p in root.named_parameters() if id(p) not in own}
            found |= {f"weights of others: {name}{along}": one for name, one in others.items()}
            found |= {f"buffers: {name}{along}": one for name, one in root.named_buffers()}
        return found | state_of(self._optimizer, self._name)

    def numbers(self) -> dict[str, float]:
        return {name: float(owner[key]) for name, owner, key in self._places()}

    def set_numbers(self, numbers: dict[str, float]) -> None:
        put(self._places(), numbers)

    @property
    def linear(self) -> bool:
        """Do weights move by a multiple of the gradient, and of those before?"""
        return all(set(kept) <= _LINEAR for kept in self._optimizer.state.values())

    def _places(self) -> Iterator[tuple[str, Any, str]]:
        return places_of(self._optimizer, {})

    def _parameters(self) -> Iterator[torch.Tensor]:
        for group in self._optimizer.param_groups:
            yield from group["params"]

    def _name(self, parameter: Any) -> str:
        if not self._names and self.by_line:
            self._names = dict(zip((id(p) for p in self._parameters()), self._optimizer.names, strict=True))
        if id(parameter) not in self._names:
            for root in self._models.of({id(parameter)}):
                self._names |= {id(p): name for name, p in root.named_parameters() if id(p) not in self._names}
        return self._names.setdefault(id(parameter), f"tensor {len(self._names)}")


@dataclass
class Step:
    """One that is under way, or waits until all runs meet."""

    loop: Loop
    place: str  # where runs meet: weights where that is not known
    depth: int = 0
    met: bool = False
    gradients: dict[str, dict[str, torch.Tensor]] = field(default_factory=dict)  # by place
    digests: dict[str, str] = field(default_factory=dict)  # of random numbers, by place
