"""The noise of a training as it is added: sums of squares of every parameter, and a few coordinates to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from epsilometer.arrays import Floats

PREFIX = 32  # coordinates of a parameter that are compared
LAGS = (1, 2, 3)  # noise is compared with that of so many steps before, over all steps
_PARAMETERS = 256  # so many parameters are compared with each other; all are weighed
_FIRST_STEPS = 32  # in which single parameters are compared
_JOINT_STEPS = 2048  # in which the noise as a whole is compared
_JOINT = 64  # coordinates of it
_RESOLUTION = 1e-5  # noise below this share of a sum may be lost by rounding, which is no fault of the noise


@dataclass(frozen=True)
class NoisySum:
    """One parameter's part of a step: the sum of clipped gradients, and the same with noise, before it is divided."""

    parameter: Any
    name: str
    total: torch.Tensor
    noisy: torch.Tensor

    def noise(self) -> torch.Tensor:
        return self.noisy.detach().reshape(-1) - self.total.detach().reshape(-1)


@dataclass
class Weighed:
    """One parameter's noise, in units of what it should be."""

    name: str
    size: int
    steps: int = 0
    squares: float = 0.0  # of all steps
    least: float = float("inf")  # sum of squares of the step that has least
    missing: int = 0  # steps without any noise


@dataclass
class Lagged:
    """Products of each parameter's noise with that of some steps before."""

    lag: int
    products: Floats | None = None
    squares: Floats | None = None  # of the earlier ones: given the past, the variance of a product
    _before: list[Floats] = field(default_factory=list)

    def add(self, rows: Floats) -> None:
        if len(self._before) == self.lag:
            earlier = _longer(self._before.pop(0), len(rows))
            self.products = _added(self.products, (rows * earlier).sum(1))
            self.squares = _added(self.squares, (earlier**2).sum(1))
        self._before.append(rows)


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
    _places: dict[int, int] = field(default_factory=dict)  # of parameters, by identity: a script may freeze some
    _first: int = 0  # parameters in the first step

    def add(self, parts: Sequence[NoisySum], scale: float) -> None:
        """The noise that was just added, which should have deviation `scale`."""
        self.steps += 1
        if scale <= 0:
            self.silent += 1
            return
        for one in parts:
            if id(one.parameter) not in self._places:
                self._places[id(one.parameter)] = len(self.parameters)
                self.parameters.append(Weighed(one.name, one.total.numel()))
        self._first = self._first or len(parts)
        places = [self._places[id(one.parameter)] for one in parts]
        with torch.no_grad():
            noises = [one.noise() for one in parts]
            self.coarse = next((str(n.dtype) for n in noises if torch.finfo(n.dtype).eps > 1e-6), "")
            self.on_cpu = self.on_cpu and noises[0].device.type == "cpu"
            device = noises[0].device
            squares = torch.stack([n.square().sum(dtype=torch.float64).to(device) for n in noises]).tolist()
            shown = [(place, n) for place, n in zip(places, noises, strict=True) if place < _PARAMETERS]
            flat = torch.cat([n[:PREFIX].to(device, torch.float64) for _, n in shown]).cpu().numpy() / scale
        for place, one, square in zip(places, parts, squares, strict=True):
            weighed, share = self.parameters[place], square / scale**2
            weighed.steps += 1
            weighed.squares += share
            weighed.least = min(weighed.least, share)
            if square == 0 and scale > _RESOLUTION * float(one.total.abs().max()):
                weighed.missing += 1
        found = np.split(flat, np.cumsum([min(len(n), PREFIX) for _, n in shown])[:-1])
        self._compare(dict(zip((place for place, _ in shown), found, strict=True)))

    def _compare(self, found: dict[int, Floats]) -> None:
        """By place; of a parameter that has no part in this step, nothing."""
        nothing = [np.zeros(min(w.size, PREFIX)) for w in self.parameters[:_PARAMETERS]]
        prefixes = [found.get(place, none) for place, none in enumerate(nothing)]
        if len(self.prefixes) < _FIRST_STEPS:
            self.prefixes.append(prefixes)
        for earlier in self.prefixes:
            earlier.extend(nothing[len(earlier) :])
        first = range(min(self._first, _PARAMETERS))
        if len(self.joint) < _JOINT_STEPS and all(place in found for place in first):
            each = max(1, _JOINT // len(first))
            self.joint.append(np.concatenate([prefixes[place][:each] for place in first])[:_JOINT])
        padded = np.zeros((len(prefixes), PREFIX))
        for row, prefix in zip(padded, prefixes, strict=True):
            row[: len(prefix)] = prefix
        self.products = _added(self.products, padded @ padded.T)
        self.sums = _added(self.sums, padded)
        for lagged in self.lagged:
            lagged.add(padded)

    @property
    def loud(self) -> int:
        """Steps in which noise was asked for."""
        return self.steps - self.silent


def _longer(rows: Floats, length: int) -> Floats:
    """With zeros for parameters that came later."""
    return np.pad(rows, [(0, length - len(rows)), *[(0, 0)] * (rows.ndim - 1)])


def _added(total: Floats | None, more: Floats) -> Floats:
    """A sum over steps, of which later ones may have more parameters."""
    if total is None:
        return more
    return np.pad(total, [(0, new - old) for old, new in zip(total.shape, more.shape, strict=True)]) + more
