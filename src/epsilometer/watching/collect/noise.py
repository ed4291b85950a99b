"""The noise of a training as it is added: sums of squares of every parameter, and a few coordinates to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from epsilometer.arrays import Floats
from epsilometer.watching.collect.drawn import HEAD, DrawnNoise, NoisySum

LAGS = (1, 2, 3)  # noise is compared with that of so many steps before, over all steps
_PARAMETERS = 256  # so many parameters are compared with each other; all are weighed
_FIRST_STEPS = 32  # in which single parameters are compared
_JOINT_STEPS = 2048  # in which the noise as a whole is compared
_JOINT = 64  # coordinates of it
_TOGETHER = 16  # steps whose products are added up at once
_RESOLUTION = 1e-5  # noise below this share of a sum may be lost by rounding, which is no fault of the noise


@dataclass
class Weighed:
    """One parameter's noise, in units of what it should be."""

    name: str
    size: int
    steps: int = 0
    squares: float = 0.0  # of all steps
    least: float = float("inf")  # sum of squares of the step that has least
    missing: int = 0  # steps without any noise
    added: float = 0.0  # squares of the sum of all its values, over their number, of all steps


class Lagged:
    """Products of each parameter's noise with that of some steps before."""

    def __init__(self, lag: int) -> None:
        self.lag = lag
        self.products: Floats | None = None
        self.squares: Floats | None = None  # of the earlier ones: given the past, the variance of a product
        self._before: Floats = np.zeros((0, 0, HEAD))

    def add(self, rows: Floats) -> None:
        """Of some steps (first axis), with the parameters that there are by now."""
        before = _added(self._before, np.zeros((len(self._before), *rows.shape[1:])))
        joined = np.concatenate([before, rows])
        now, earlier = joined[self.lag :], joined[: -self.lag]
        self.products = _added(self.products, np.einsum("tpk,tpk->p", now, earlier))
        self.squares = _added(self.squares, np.einsum("tpk,tpk->p", earlier, earlier))
        self._before = joined[-self.lag :]


@dataclass
class NoiseTally:
    """Adds up what is needed later, at the cost of about one pass over the parameters a step."""

    steps: int = 0
    silent: int = 0  # steps in which no noise was asked for
    parameters: list[Weighed] = field(default_factory=list)
    joint: list[Floats] = field(default_factory=list)
    prefixes: list[list[Floats]] = field(default_factory=list)  # [step][parameter]
    products: Floats | None = None  # of prefixes of two parameters, summed over steps
    sums: Floats | None = None  # of prefixes, over steps
    lagged: list[Lagged] = field(default_factory=lambda: [Lagged(lag) for lag in LAGS])
    on_cpu: bool = True
    coarse: str = ""  # a type of number too coarse to weigh noise in
    drawn: DrawnNoise = field(default_factory=DrawnNoise)  # of the last step
    _places: dict[int, int] = field(default_factory=dict)  # of parameters, by identity: a script may freeze some
    _first: int = 0  # parameters in the first step
    _waiting: list[Floats] = field(default_factory=list)  # steps whose products are not added yet

    def add(self, parts: Sequence[NoisySum], scale: float) -> None:
        """The noise that was just added, which should have deviation `scale`."""
        self.steps += 1
        parts = [one for one in parts if one.noisy.numel()]
        with torch.no_grad():
            drawn = self.drawn.keep(parts, scale)
        if scale <= 0:
            self.silent += 1
            return
        for one in parts:
            if id(one.parameter) not in self._places:
                self._places[id(one.parameter)] = len(self.parameters)
                self.parameters.append(Weighed(one.name, one.noisy.numel()))
        self._first = self._first or len(parts)
        self.coarse = next((str(one.noisy.dtype) for one in parts if torch.finfo(one.noisy.dtype).eps > 1e-6), "")
        self.on_cpu = self.on_cpu and all(one.noisy.device.type == "cpu" for one in parts)
        heads: dict[int, Floats] = {}
        for one, found in zip(parts, drawn, strict=True):
            place = self._places[id(one.parameter)]
            weighed, share = self.parameters[place], found.squares / scale**2
            weighed.steps += 1
            weighed.squares += share
            weighed.least = min(weighed.least, share)
            weighed.added += (found.added / scale) ** 2 / weighed.size
            weighed.missing += found.squares == 0 and scale > _RESOLUTION * found.largest
            if place < _PARAMETERS:
                heads[place] = found.head / scale
        self._compare(heads)

    def _compare(self, found: dict[int, Floats]) -> None:
        """By place; of a parameter that has no part in this step, nothing."""
        sizes = [min(w.size, HEAD) for w in self.parameters[:_PARAMETERS]]
        padded = np.zeros((len(sizes), HEAD))
        for place, prefix in found.items():
            padded[place, : len(prefix)] = prefix
        if len(self.prefixes) < _FIRST_STEPS:
            self.prefixes.append([row[:size] for row, size in zip(padded, sizes, strict=True)])
        for earlier in self.prefixes:
            earlier.extend(np.zeros(size) for size in sizes[len(earlier) :])
        first = range(min(self._first, _PARAMETERS))
        if len(self.joint) < _JOINT_STEPS and all(place in found for place in first):
            each = max(1, _JOINT // len(first))
            self.joint.append(np.concatenate([found[place][:each] for place in first])[:_JOINT])
        self._waiting.append(padded)
        if len(self._waiting) >= _TOGETHER:
            self.settle()

    def settle(self) -> None:
        """Products and sums of steps that wait for it: several at once cost hardly more than one."""
        if not self._waiting:
            return
        rows = np.zeros((len(self._waiting), len(self._waiting[-1]), HEAD))
        for row, padded in zip(rows, self._waiting, strict=True):
            row[: len(padded)] = padded
        self._waiting = []
        flat = rows.transpose(1, 0, 2).reshape(rows.shape[1], -1)
        self.products = _added(self.products, flat @ flat.T)
        self.sums = _added(self.sums, rows.sum(axis=0))
        for lagged in self.lagged:
            lagged.add(rows)

    @property
    def loud(self) -> int:
        """Steps in which noise was asked for."""
        return self.steps - self.silent


def _added(total: Floats | None, more: Floats) -> Floats:
    """A sum over steps, of which later ones may have more parameters."""
    if total is None or total.shape == more.shape:
        return more if total is None else total + more
    added = np.zeros(np.maximum(total.shape, more.shape))
    for one in (total, more):
        added[tuple(slice(length) for length in one.shape)] += one
    return added
