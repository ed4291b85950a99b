"""Tensors of two runs: by how much they differ, and where."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Difference:
    """Of something that is named "what: name"; its size is relative to the larger one."""

    name: str
    size: float

    def packed(self) -> list[Any]:
        return [self.name, self.size]


def distance(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> tuple[float, str]:
    """The norm of what is between two sums, and the tensor that has most of it."""
    squares = {}
    for name in one.keys() | other.keys():
        if name not in one or name not in other or one[name].shape != other[name].shape:
            return math.inf, name
        if not _same(one[name], other[name]):
            squares[name] = (one[name].double() - other[name].to(one[name].device).double()).square().sum().item()
    total = sum(squares.values())
    if math.isnan(total):
        return math.inf, next(name for name, square in squares.items() if math.isnan(square))
    return math.sqrt(total), max(squares, key=squares.__getitem__, default="")


def differences(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> list[Difference]:
    """Of all that is in either, bit for bit."""
    found = []
    for name in [*one, *(name for name in other if name not in one)]:
        if name not in one or name not in other or one[name].shape != other[name].shape:
            found.append(Difference(name, 1.0))
        elif not _same(one[name], other[name]):
            first, second = one[name].double(), other[name].detach().to(one[name].device).double()
            largest = float(torch.maximum(first.abs(), second.abs()).nan_to_num().max())
            size = float((first - second).abs().max()) / max(largest, 1e-30)
            found.append(Difference(name, 1.0 if math.isnan(size) else size))
    return found


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Also where both are no numbers."""
    other = other.detach().to(one.device)
    if torch.equal(one, other):
        return True
    return one.is_floating_point() and bool((one.isnan() & other.isnan() | (one == other)).all())
