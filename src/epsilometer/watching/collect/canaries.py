"""Canaries of torch trainings: rows of gradients that are clipped for sure, and coordinates of a model to look at."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

TIMES = (10.0, 5.0, 3.0, 1.5)  # how much larger than the clip norm a canary's gradient is; the first that arrives
_ARRIVES = 0.01  # of a clip norm
_SMALLEST = 1e-3  # of a clip norm: Opacus adds 1e-6 to every norm


def canary_norm(clip_norm: float, times: float = TIMES[0]) -> float:
    """Large enough to be clipped for sure."""
    return times * max(clip_norm, _SMALLEST)


def canary_rows(
    coins: NDArray[np.bool_], clip_norm: float, like: torch.Tensor, times: float = TIMES[0]
) -> torch.Tensor:
    """One gradient for each canary that is in, each on a coordinate of its own, for a parameter like this one."""
    chosen = torch.from_numpy(np.flatnonzero(coins)).to(like.device)
    return _all_rows(len(coins), canary_norm(clip_norm, times), like.device, like.dtype).index_select(0, chosen)


def arriving(added: Callable[[float], float]) -> float:
    """The size of canaries, in clip norms, of which a script's clipping leaves most; `added` says how much."""
    left = {times: added(times) for times in TIMES}
    most = max(left.values())
    if not most > _ARRIVES:
        sizes = ", ".join(f"{times:g}·C" for times in TIMES)
        raise ValueError(f"they do not arrive: its clipping drops records with gradients of {sizes}")
    return next(times for times in TIMES if left[times] >= (1 - _ARRIVES) * most)


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
