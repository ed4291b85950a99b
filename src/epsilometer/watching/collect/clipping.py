"""Crafted records through the script's own clipper: one with a huge gradient, and some that are no numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch

from epsilometer.watching.facts import Clipping

HUGE = 1000.0  # times the clip norm
LADDER = (1.5, 3.0, 5.0, 10.0, HUGE)  # a script may treat some of them in another way
NO_NUMBERS = (("NaN", math.nan), ("infinity", math.inf))

# What comes of records (rows) whose gradients have these norms in the parameters (columns): a sum for each parameter.
Clip = Callable[[torch.Tensor], list[torch.Tensor]]


def clipping(clip: Clip, parameters: int, limit: float, records: int = 2) -> Clipping:
    """A record whose gradient is 1000·C, in all parameters or in any one of them; one among as many `records` as a
    batch has; and records that are no numbers."""
    if not math.isfinite(limit) or limit <= 0:
        return Clipping(limit, math.inf, math.inf, [], [])
    huge = HUGE * limit
    alone = [added.norm().item() for added in clip(torch.eye(parameters) * huge)]
    rows = torch.full((1, parameters), huge / math.sqrt(parameters))
    added = max(_norm(clip(rows)), *alone)
    not_finite = [name for name, value in NO_NUMBERS if not _finite(clip, parameters, limit, value)]
    # What the clipper makes of nothing: a script may add noise there.
    idle = _norm(clip(torch.zeros(2, parameters)))
    return Clipping(limit, huge, added, alone, not_finite, idle, _ladder(clip, parameters, limit, max(records, 2)))


def _ladder(clip: Clip, parameters: int, limit: float, records: int) -> list[list[float]]:
    """Others in the batch have half of the clip norm. What they add may change with the one record, too."""
    rows = torch.full((records, parameters), limit / 2 / math.sqrt(parameters))

    def total(times: float) -> list[torch.Tensor]:
        torch.manual_seed(0)  # in a fork: a clipper that draws random numbers draws the same
        rows[0] = times * limit / math.sqrt(parameters)
        return clip(rows.clone())

    without = total(0.0)
    return [[times, _norm([a - b for a, b in zip(total(times), without, strict=True)])] for times in LADDER]


def gradients_with(norms: torch.Tensor, parameters: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Gradients of records that have these norms in the parameters: of each parameter a row a record, cut down to two
    values along every axis."""
    rows = []
    for p, column in zip(parameters, norms.T, strict=True):
        shape = [min(side, 2) for side in p.shape]
        entry = column.to(p.dtype) / math.sqrt(math.prod(shape))
        rows.append(entry.reshape(-1, *(1 for _ in shape)).expand(-1, *shape).clone())
    return rows


def _finite(clip: Clip, parameters: int, limit: float, value: float) -> bool:
    """Is the sum still a number, with a record that has such a gradient?"""
    rows = torch.full((2, parameters), limit / 4 / parameters)
    rows[0] = value
    return all(bool(torch.isfinite(total).all()) for total in clip(rows))


def _norm(sums: list[torch.Tensor]) -> float:
    return float(torch.cat([total.reshape(-1) for total in sums]).norm())
