"""Canaries at coordinates of the model itself: they see noise that misses a layer.

They go through the script's own clipping right after the natural records and get the very noise of the update. What
natural records add up to there is known in this process and taken off (an adversary of differential privacy knows all
other records). Once their noisy sum is read, the canaries are taken out of the gradient again: the training is changed
by rounding only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from epsilometer.watching.collect.canaries import Spots, canary_norm
from epsilometer.watching.frameworks.opacus.extra import clipping_of

_ROWS = 16  # canaries clipped at once: each is as large as the model
_PRIOR, _LEAST = 10.0, 1e-3  # canaries that noise is believed to be right for at first; least variance believed in


@dataclass(frozen=True)
class Inserted:
    """Canaries inside a step that is under way: what natural records add up to there, and what the canaries add."""

    spots: Sequence[Spots]
    clip_norm: float
    natural: NDArray[np.float64]
    added: NDArray[np.float64]

    def parts(self) -> Iterator[tuple[Spots, torch.Tensor]]:
        """What canaries added to each tensor."""
        for spot in self.spots:
            like = spot.parameter
            yield spot, torch.as_tensor(self.added[spot.canaries], device=like.device).to(like.dtype)


class Clarity:
    """How much noise each parameter tensor has got so far, so that canaries whose noise is missing count most.

    A guess may use all that is past: scores are stretched around ½ by stated over seen variance, as a likelihood would.
    """

    def __init__(self) -> None:
        self._seen: dict[int, tuple[float, int]] = {}  # sum of squares in units of the stated noise, and how many

    def stretched(
        self, scores: NDArray[np.float64], coins: NDArray[np.bool_], inserted: Inserted, sigma: float
    ) -> NDArray[np.float64]:
        """Scores of this step by what was seen before it; then this step is taken up as well."""
        result = scores.copy()
        if not sigma > 0:
            return result
        for tensor, spot in enumerate(inserted.spots):
            squares, number = self._seen.get(tensor, (0.0, 0))
            ratio = (_PRIOR + squares) / (_PRIOR + number)
            result[spot.canaries] = 0.5 + (scores[spot.canaries] - 0.5) / max(ratio, _LEAST)
            noise = (scores[spot.canaries] - coins[spot.canaries]) / sigma
            self._seen[tensor] = (squares + float(np.square(noise).sum()), number + len(noise))
        return result


def insert_rows(
    optimizer: Any, clip: Callable[[], object], spots: Sequence[Spots], coins: NDArray[np.bool_], times: float
) -> Inserted:
    """After natural records were clipped and summed: the same clipping, once more, for the canaries that are in. What
    it keeps on the optimizer is as it was afterwards."""
    before = dict(vars(optimizer))
    clip_norm, parameters = float(optimizer.max_grad_norm), optimizer.params
    natural = _at(spots, "summed_grad", len(coins))
    kept = [one.grad_sample for one in parameters]
    try:
        for chosen in np.split(np.flatnonzero(coins), np.arange(_ROWS, int(coins.sum()), _ROWS)):
            for one in parameters:
                one.grad_sample = torch.zeros(len(chosen), *one.shape, device=one.device, dtype=one.dtype)
            for spot in spots:
                here = np.flatnonzero(np.isin(spot.canaries, chosen))
                row = torch.as_tensor(np.searchsorted(chosen, spot.canaries[here]), device=spot.parameter.device)
                index = (row, *(axis[torch.as_tensor(here, device=axis.device)] for axis in spot.index))
                spot.parameter.grad_sample[index] = canary_norm(clip_norm, times)
            clip()
    except Exception:
        _set_back(spots, natural)
        raise
    finally:
        vars(optimizer).clear()
        vars(optimizer).update(before)
        for one, own in zip(parameters, kept, strict=True):
            one.grad_sample = own
    return Inserted(spots, clip_norm, natural, _at(spots, "summed_grad", len(coins)) - natural)


def insert_clipped(
    optimizer: Any, module: Any, spots: Sequence[Spots], coins: NDArray[np.bool_], times: float
) -> Inserted:
    """Ghost clipping, after gradients were taken up: what the module's own clipping leaves of each canary."""
    clip_norm = float(optimizer.max_grad_norm)
    natural = _at(spots, "summed_grad", len(coins))
    norms = torch.full((len(coins),), canary_norm(clip_norm, times), dtype=torch.float64, device="cpu")
    left = (clipping_of(module, torch.nn.Parameter(torch.zeros(1, device="cpu")), norms).cpu() * norms).numpy()
    for spot in spots:
        spot.add(spot.parameter.summed_grad, np.where(coins, left, 0.0)[spot.canaries])
    return Inserted(spots, clip_norm, natural, _at(spots, "summed_grad", len(coins)) - natural)


def read_and_remove(optimizer: Any, inserted: Inserted) -> NDArray[np.float64]:
    """The scores, in units of the clip norm; and the update as it would be without canaries."""
    scale = _divisor(optimizer)
    seen = _at(inserted.spots, "grad", len(inserted.natural)) * scale
    for spot in inserted.spots:
        spot.add(spot.parameter.grad, -inserted.added[spot.canaries] / scale)
    return (seen - inserted.natural) / inserted.clip_norm


def _divisor(optimizer: Any) -> float:
    """By which the noisy sum was divided."""
    mean = optimizer.loss_reduction == "mean"
    return float(optimizer.expected_batch_size * optimizer.accumulated_iterations) if mean else 1.0


def _at(spots: Sequence[Spots], name: str, number: int) -> NDArray[np.float64]:
    """The values of that gradient at all canaries."""
    values = np.zeros(number)
    for spot in spots:
        values[spot.canaries] = spot.of(getattr(spot.parameter, name))
    return values


def _set_back(spots: Sequence[Spots], natural: NDArray[np.float64]) -> None:
    for spot in spots:
        total = spot.parameter.summed_grad
        total[spot.index] = torch.as_tensor(natural[spot.canaries], device=total.device).to(total.dtype)
