"""The noise of one step, in all coordinates of a model: what tests of its law need, at the cost of one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from epsilometer.arrays import Floats
from epsilometer.noise_sample import WEIGHED, Counts, NoiseSample

HEAD = 32  # coordinates of a parameter that are compared with those of others
_COUNTED = 1024  # coordinates of a step whose sizes and grids are looked at
_FEWEST = 8  # of them in a parameter, if it has so many
_SMALL = 1 << 14  # values of tensors that are looked at together
_TOGETHER = 16  # steps that are counted at once
_BLOCK = 1 << 20  # values that are added up in their own type of number
_EXTREME = 1e15  # deviations beyond it, or below its inverse: squares may leave the range of float32


@dataclass(frozen=True)
class NoisySum:
    """One parameter's part of a step: the sum of clipped gradients, and the same with noise, before it is divided."""

    parameter: Any
    name: str
    total: torch.Tensor
    noisy: torch.Tensor


@dataclass(frozen=True)
class Drawn:
    """What is kept of one parameter's noise until the step is accounted for."""

    name: str
    size: int
    squares: float
    added: float  # all of its values
    largest: float  # of the sum
    rounding: float  # of a noisy sum, as a share of it
    head: Floats  # the first values
    noise: Floats  # at some coordinates, and the sum there
    total: Floats
    whole: tuple[torch.Tensor, torch.Tensor] | None  # both everywhere, where rounding may have lost some of the noise


class DrawnNoise:
    """The last step's. Coordinates to look at are drawn once for each parameter, from all over it."""

    def __init__(self) -> None:
        self._parts: list[Drawn] = []
        self._chosen: dict[int, slice | NDArray[np.intp]] = {}  # by identity of parameters
        self._names: dict[int, str] = {}
        self._waiting: list[Floats] = []  # noise, steps between sums, and scale, of steps that are not counted yet
        self._steps = 0
        self._draw = np.random.default_rng(0)  # which they are is no secret

    def keep(self, sums: Sequence[NoisySum], scale: float) -> list[Drawn]:
        """Noise that should have this deviation, as whoever drew it says; of each parameter."""
        each = max(_COUNTED // max(len(sums), 1), _FEWEST)
        extreme = not 1 / _EXTREME < scale < _EXTREME
        groups: dict[Any, list[int]] = {}
        for place, one in enumerate(sums):
            alone = one.noisy.numel() > _SMALL
            groups.setdefault(place if alone else (one.noisy.device, one.noisy.dtype), []).append(place)
        found: dict[int, Drawn] = {}
        for places in groups.values():
            members = [sums[place] for place in places]
            noisy, total = (_flat([getattr(one, name) for one in members], extreme) for name in ("noisy", "total"))
            kept = self._together(members, noisy - total, total, each, scale)
            found.update(zip(places, kept, strict=True))
        self._parts = [found[place] for place in range(len(sums))]
        return self._parts

    def sample(self, scale: float) -> NoiseSample | None:
        """In units of the deviation that it should have; once, for the next step may have none."""
        parts, self._parts = self._parts, []
        if not parts or not scale > 0:
            return None
        weighed = [_weighed(part, scale) for part in parts]
        noise = np.concatenate([part.noise for part in parts])
        steps = np.concatenate([part.rounding * (np.abs(part.total) + scale) for part in parts])
        self._waiting.append(np.stack([noise, steps, np.full(len(noise), scale)]))
        return NoiseSample(
            tuple(part.name for part in parts),
            tuple(size for size, _ in weighed),
            tuple(square for _, square in weighed),
            self._counts(),
        )

    def _counts(self) -> Counts:
        """Of some steps at once, which costs hardly more than of one: after 1, 2, 4, … steps, and every 16."""
        self._steps += 1
        if self._steps % _TOGETHER and self._steps & (self._steps - 1):
            return Counts()
        waiting, self._waiting = np.concatenate(self._waiting, axis=1), []
        noise, steps, scales = waiting[:, np.isfinite(waiting).all(axis=0)]
        return Counts.of(noise, scales, steps)

    def _together(
        self, members: list[NoisySum], noise: torch.Tensor, total: torch.Tensor, each: int, scale: float
    ) -> list[Drawn]:
        """Of one large parameter, or of several small ones whose values follow each other."""
        alone = len(members) == 1
        every = [] if alone else [noise.cpu().numpy(), total.cpu().numpy()]
        ends = np.cumsum([one.noisy.numel() for one in members]).tolist()
        begins = [0, *ends[:-1]]
        if alone:
            squares, largest = [squared(noise).item()], [torch.linalg.vector_norm(total, float("inf")).item()]
            added = [noise.sum().item()]
        else:
            squares = np.add.reduceat(np.square(every[0], dtype=np.float64), begins).tolist()
            added = np.add.reduceat(every[0], begins, dtype=np.float64).tolist()
            largest = np.maximum.reduceat(np.abs(every[1]), begins).tolist()
        rounding = torch.finfo(members[0].noisy.dtype).eps
        found = []
        rows = zip(members, begins, ends, squares, added, largest, strict=True)
        for one, begin, end, square, total_noise, most in rows:
            chosen = self._coordinates(one.parameter, end - begin, each)
            if alone:
                head, *shown = (part.cpu().numpy() for part in (noise[:HEAD], noise[chosen], total[chosen]))
            else:
                head, shown = every[0][begin:end][:HEAD], [part[begin:end][chosen] for part in every]
            lost = not rounding * (most + scale) <= WEIGHED * scale
            whole = (noise[begin:end], total[begin:end]) if lost else None
            head, drawn, sums = (part.astype(np.float64) for part in (head, *shown))
            found.append(
                Drawn(self._name(one), end - begin, square, total_noise, most, rounding, head, drawn, sums, whole)
            )
        return found

    def _name(self, one: NoisySum) -> str:
        """Two parameters may have no name, or the same."""
        key = id(one.parameter)
        if key not in self._names:
            taken = set(self._names.values())
            self._names[key] = one.name if one.name not in taken else f"{one.name} ({len(taken) + 1})"
        return self._names[key]

    def _coordinates(self, parameter: Any, size: int, number: int) -> slice | NDArray[np.intp]:
        key = id(parameter)
        if key not in self._chosen:
            drawn = self._draw.choice(size, number, replace=False, shuffle=False) if size > number else None
            self._chosen[key] = slice(None) if drawn is None else np.sort(drawn)
        return self._chosen[key]


def _weighed(part: Drawn, scale: float) -> tuple[int, float]:
    """Coordinates whose noise is not lost by rounding, as their sums say, and the sum of its squares in units."""
    size, squares = part.size, part.squares
    if part.whole is not None:
        noise, total = part.whole
        noise = noise[part.rounding * (total.abs() + scale) <= WEIGHED * scale]
        size, squares = len(noise), squared(noise).item()
    found = squares / scale / scale
    return (size, found) if np.isfinite(found) else (0, 0.0)


def _flat(tensors: list[torch.Tensor], extreme: bool) -> torch.Tensor:
    """In float32 at least: the difference of numbers of half that precision would be rounded again."""
    flat = [one.detach().reshape(-1) for one in tensors]
    values = flat[0] if len(flat) == 1 else torch.cat(flat)
    if extreme:
        return values.double()
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def squared(values: torch.Tensor) -> torch.Tensor:
    """The sum of squares of a flat tensor."""
    if len(values) <= _BLOCK:
        return torch.dot(values, values)
    return torch.stack([torch.dot(block, block) for block in torch.split(values, _BLOCK)]).sum()
