"""Canaries of torch trainings: rows of gradients that are clipped for sure, and coordinates of a model to look at."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from epsilometer.watching.collect.noise import NoisySum

_TIMES = 10.0  # how much larger than the clip norm a canary's gradient is
_SMALLEST = 1e-3  # of a clip norm: Opacus adds 1e-6 to every norm


def canary_norm(clip_norm: float) -> float:
    """Large enough to be clipped for sure."""
    return _TIMES * max(clip_norm, _SMALLEST)


def canary_rows(coins: NDArray[np.bool_], clip_norm: float, like: torch.Tensor) -> torch.Tensor:
    """One gradient for each canary that is in, each on a coordinate of its own, for a parameter like this one."""
    return _all_rows(len(coins), canary_norm(clip_norm), like.device, like.dtype)[np.flatnonzero(coins)]


@functools.lru_cache(maxsize=4)
def _all_rows(number: int, norm: float, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    return torch.eye(number, device=device, dtype=dtype) * norm


@dataclass(frozen=True)
class Spots:
    """Canaries at coordinates of one parameter tensor."""

    parameter: Any
    canaries: NDArray[np.intp]
    index: tuple[torch.Tensor, ...]

    def of(self, tensor: torch.Tensor) -> NDArray[np.float64]:
        return np.asarray(tensor.detach()[self.index].double().cpu().numpy())

    def add(self, tensor: torch.Tensor, values: NDArray[np.float64]) -> None:
        with torch.no_grad():
            tensor[self.index] += torch.as_tensor(values, device=tensor.device).to(tensor.dtype)


def places(parameters: Sequence[Any], number: int, draw: np.random.Generator) -> list[Spots]:
    """Different coordinates, of every parameter tensor about as many as of any other: a bias counts like a matrix."""
    parameters = [one for one in parameters if one.ndim]
    room = [min(one.numel(), number) for one in parameters]
    turns = sorted((turn, which) for which, most in enumerate(room) for turn in range(most))[:number]
    spots: list[Spots] = []
    for which, parameter in enumerate(parameters):
        canaries = np.array([canary for canary, (_, chosen) in enumerate(turns) if chosen == which], dtype=np.intp)
        flat = draw.choice(parameter.numel(), len(canaries), replace=False, shuffle=False)
        index = tuple(
            torch.as_tensor(axis, device=parameter.device) for axis in np.unravel_index(flat, parameter.shape)
        )
        spots.append(Spots(parameter, canaries, index))
    return spots


def own_noise(
    sums: Sequence[NoisySum], divisor: float, clip_norm: float, number: int, draw: np.random.Generator
) -> NDArray[np.float64]:
    """How large that is which a step has beside the sum of clipped gradients, at random coordinates of the model, in
    order of size and units of the clip norm; nothing if it cannot be told. Noisy sums were divided by `divisor`."""
    spots = places([one.parameter for one in sums], number, draw)
    of = {id(one.parameter): one for one in sums}
    noise = np.zeros(sum(len(spot.canaries) for spot in spots))
    for spot in spots:
        one = of[id(spot.parameter)]
        noise[spot.canaries] = spot.of(one.noisy) * divisor - spot.of(one.total)
    noise = np.sort(np.abs(noise)) / clip_norm
    return noise if np.isfinite(noise).all() else np.zeros(0)
