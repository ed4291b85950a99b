"""What an optimizer has, by name: its own state, and numbers such as the learning rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

Names = Callable[[Any], str]


def state_of(optimizer: Any, name: Names) -> dict[str, torch.Tensor]:
    """Tensors that it keeps for parameters, which have such names."""
    return {
        f"state of the optimizer: {name(p)}, {key}": value
        for p, kept in optimizer.state.items()
        for key, value in kept.items()
        if isinstance(value, torch.Tensor)
    }


def places_of(optimizer: Any, attributes: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    """Where numbers are: names, and who has them under which key."""
    for name, key in attributes.items():
        if _number(vars(optimizer).get(key)):
            yield f"{name}: {key}", vars(optimizer), key
    for at, group in enumerate(optimizer.param_groups):
        for key, value in group.items():
            if _number(value):
                what = "learning rate" if key == "lr" else "setting of the optimizer"
                yield f"{what}: {key} of group {at}", group, key


def put(places: Iterator[tuple[str, Any, str]], numbers: Mapping[str, float]) -> None:
    """These in their places."""
    for name, owner, key in places:
        if name in numbers and float(owner[key]) != numbers[name]:
            before = owner[key]
            owner[key] = torch.full_like(before, numbers[name]) if isinstance(before, torch.Tensor) else numbers[name]


def _number(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.numel() == 1
    return isinstance(value, int | float) and not isinstance(value, bool)
