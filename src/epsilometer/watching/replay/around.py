"""Other models that are made of a private one: whoever gets them has what they have learnt as well."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from epsilometer.watching.collect.mixing import plain
from epsilometer.watching.replay.roles import AROUND, COPY

_MOST = 8  # that are kept


class Around:
    """Modules that were called since their part, or their model, was made private."""

    def __init__(self) -> None:
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()
        self._private: dict[int, Any] = {}  # its parameters, by identity
        self._shapes: list[list[torch.Size]] = []
        self._kept: list[tuple[str, Any]] = []

    def add(self, module: Any) -> None:
        """It was made private."""
        if not self._shapes:
            torch.nn.modules.module.register_module_forward_pre_hook(self._called)
        self._seen.update(module.modules())
        self._private |= {id(p): p for p in module.parameters()}
        self._shapes.append(_shapes(module))

    def state(self) -> dict[str, torch.Tensor]:
        """Of those that are there, without the private model itself."""
        found: dict[str, torch.Tensor] = {}
        for at, (kind, module) in enumerate(self._kept):
            name = f"{kind}: {type(module).__name__}" + (f" {at}" if at else "")
            for part, tensors in (("weights", module.named_parameters()), ("buffers", module.named_buffers())):
                found |= {
                    f"{name}, {part} {plain(own)}": t.detach() for own, t in tensors if id(t) not in self._private
                }
        return found

    def _called(self, module: Any, _: Any) -> None:
        if module in self._seen:
            return
        self._seen.add(module)
        if len(self._kept) >= _MOST:
            return
        if any(id(p) in self._private for p in module.parameters()):
            self._keep(AROUND, module)
        elif _shapes(module) in self._shapes:
            self._keep(COPY, module)

    def _keep(self, kind: str, module: Any) -> None:
        """And not its parts, once more."""
        self._seen.update(module.modules())
        self._kept.append((kind, module))


def _shapes(module: Any) -> list[torch.Size]:
    return [p.shape for p in module.parameters()]
