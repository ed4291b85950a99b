"""One line of code in a loop that steps no optimizer: `gradient = epsilometer.watch_step(gradient)`."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

_WATCH = "EPSILOMETER_WATCH"  # see `launch.environment`


def watch_step(gradient: Any, name: str = "") -> Any:
    """The noisy gradient of a step that a loop is about to take by itself, for `epsilometer watch --noise-multiplier`.

    `gradient` is an array of torch, numpy or JAX, or a dict, list or tuple of them, with all noise in it; `name` tells
    several trainings of one process apart. What comes back is to be used in its place: the same values, and in runs
    beside others those of the first run. Where nobody watches it does nothing. Torch must be installed.

    >>> watch_step([0.5, 1.0])
    [0.5, 1.0]
    """
    if not os.environ.get(_WATCH):
        return gradient
    importlib.import_module("torch")  # whoever watches takes hold of it
    hooks = importlib.import_module("epsilometer.watching.frameworks.torch.attach").HOOKS
    if not hooks:
        return gradient
    leaves: dict[str, Any] = {}
    _walk(gradient, "", leaves.__setitem__)
    found = hooks[0].by_line(name, leaves)
    return _walk(gradient, "", found.get)


def _walk(one: Any, at: str, act: Callable[[str, Any], Any]) -> Any:
    """The same structure, with what comes of each array."""
    if isinstance(one, Mapping):
        return {key: _walk(value, f"{at}.{key}" if at else str(key), act) for key, value in one.items()}
    if isinstance(one, list | tuple):
        found = [_walk(value, f"{at}[{key}]", act) for key, value in enumerate(one)]
        return type(one)(*found) if hasattr(one, "_fields") else type(one)(found)
    return act(at or "gradient", one)


def _tensor(leaf: Any) -> Any:
    """On the processor where it is, with all of its digits."""
    import torch

    return leaf.detach() if isinstance(leaf, torch.Tensor) else torch.from_numpy(np.array(leaf))


class Line:
    """What such a loop has in the place of an optimizer: a parameter for each array, of which only the gradient says
    anything."""

    def __init__(self, leaves: Mapping[str, Any]) -> None:
        import torch

        self.state: dict[Any, Any] = {}
        self.names = list(leaves)
        self._parameters = [torch.zeros_like(_tensor(leaf)) for leaf in leaves.values()]
        self.param_groups = [{"params": self._parameters}]

    def put(self, leaves: Mapping[str, Any]) -> None:
        """Copies of these, as gradients."""
        for p, leaf in zip(self._parameters, leaves.values(), strict=True):
            p.grad = _tensor(leaf).clone()

    def taken(self, leaves: Mapping[str, Any]) -> dict[str, Any]:
        """What the gradients are now, each of the kind that it was."""
        import torch

        found: dict[str, Any] = {}
        for p, (name, leaf) in zip(self._parameters, leaves.items(), strict=True):
            assert p.grad is not None
            if isinstance(leaf, torch.Tensor):
                with torch.no_grad():
                    found[name] = leaf.copy_(p.grad.to(leaf.dtype))
            elif isinstance(leaf, np.ndarray):
                found[name] = p.grad.numpy().astype(leaf.dtype)
            else:
                found[name] = importlib.import_module("jax.numpy").asarray(p.grad.numpy(), leaf.dtype)
        return found
