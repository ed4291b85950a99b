"""What goes into a model and its layers: seen once, in the first forward pass, by hooks that go away."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

_NUMBERS = 1 << 22  # in the records that are kept
_KINDS = 32  # layers of different kinds or shapes that are looked at


@dataclass(frozen=True)
class LayerInput:
    """A layer with parameters of its own and what it was given."""

    name: str
    layer: Any
    shape: tuple[int, ...]  # without the records
    whole_numbers: bool


class Inputs:
    """The records of the first batch, and the shapes that layers see."""

    def __init__(self, module: Any, batch_first: bool) -> None:
        self.records: torch.Tensor | None = None
        self.layers: list[LayerInput] = []
        self._batch_first = batch_first
        self._kinds: set[tuple[Any, ...]] = set()
        self._handles: dict[tuple[str, str], Any] = {}
        if isinstance(module, torch.nn.Module):
            root = getattr(module, "_module", module)
            self._hook("records", "", root, self._keep_records)
            for name, layer in root.named_modules():
                trained = tuple(n for n, p in layer.named_parameters(recurse=False) if p.requires_grad)
                if trained and not list(layer.children()):
                    self._hook("shape", name, layer, partial(self._note, name, (type(layer), *trained)))

    def close(self) -> None:
        for handle in self._handles.values():
            handle.remove()
        self._handles.clear()

    def _hook(self, what: str, name: str, module: Any, look: Callable[[Any, Any], bool]) -> None:
        def hook(module: Any, arguments: tuple[Any, ...]) -> None:
            if not (module.training and torch.is_grad_enabled()):
                return
            enough = True
            with suppress(Exception):  # nothing in here is the script's business
                only = arguments[0] if len(arguments) == 1 and self._batch_first else None
                if isinstance(only, torch.Tensor):  # inside vmap or grad there is no tensor that could be kept
                    enough = not _wrapped(only) and look(module, only)
            if enough:
                self._handles.pop((what, name)).remove()

        self._handles[what, name] = module.register_forward_pre_hook(hook)

    def _keep_records(self, _: Any, batch: torch.Tensor) -> bool:
        if batch.dim() and len(batch) < 2:  # an empty batch, or one record: wait for the next
            return False
        most = max(2, _NUMBERS * len(batch) // max(batch.numel(), 1))
        self.records = batch[:most].detach().clone()
        return True

    def _note(self, name: str, trained: tuple[Any, ...], layer: Any, batch: torch.Tensor) -> bool:
        shape = tuple(batch.shape[1:])
        kind = (*trained, len(shape))
        if kind not in self._kinds and len(self._kinds) < _KINDS:
            self._kinds.add(kind)
            self.layers.append(LayerInput(name, layer, shape, not batch.is_floating_point()))
        return True


def _wrapped(tensor: torch.Tensor) -> bool:
    """By a transformation of torch.func; old versions of torch cannot say so."""
    asked = getattr(getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", None)
    return asked is not None and bool(asked(tensor))
