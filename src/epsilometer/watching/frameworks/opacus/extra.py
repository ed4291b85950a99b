"""Canaries on an extra parameter that no model has: the default, because it changes nothing.

After the script's own step is clipped, noised and accounted for, the same optimizer object takes the same step once
more, for the extra parameter alone: its own clipping gets rows of ten times the clip norm, its own noise is added, its
own scaling done. So what the script does with gradients is under test, whichever class or patch does it, and model,
accountant and random numbers stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from epsilometer.watching.collect.canaries import arriving, canary_rows
from epsilometer.watching.collect.randomness import apart
from epsilometer.watching.frameworks.opacus.support import ghost_clipping, is_ghost


def scores_of_a_step(
    optimizer: Any, module: Any, coins: NDArray[np.bool_], times: float, draw: np.random.Generator
) -> NDArray[np.float64]:
    """The noisy sum at each canary's coordinate in units of the clip norm; gradients are so many times as large."""
    like = optimizer.params[0]
    extra = torch.nn.Parameter(torch.zeros(len(coins), device=like.device, dtype=like.dtype))
    clip_norm = float(optimizer.max_grad_norm)
    with _alone(optimizer, extra), apart(like.device, optimizer.generator, draw):
        rows = canary_rows(coins, clip_norm, extra, times)
        if is_ghost(optimizer):
            extra.grad = torch.einsum("i,ij->j", clipping_of(module, extra, rows.norm(dim=1)), rows)
        else:
            extra.grad_sample = rows  # type: ignore[attr-defined]
        optimizer.pre_step()
        assert extra.grad is not None
        total = extra.grad.detach()
        if optimizer.loss_reduction == "mean":
            total = total * (optimizer.expected_batch_size * optimizer.accumulated_iterations)
    return np.asarray(total.double().cpu().numpy() / clip_norm)


def times_that_arrive(optimizer: Any, module: Any, draw: np.random.Generator) -> float:
    """How large canaries are to be, so that the script's clipping leaves something of them."""
    like = optimizer.params[0]
    clip_norm = max(float(optimizer.max_grad_norm), 1e-30)
    extra = torch.nn.Parameter(torch.zeros(1, device=like.device, dtype=like.dtype))

    def added(times: float) -> float:
        rows = canary_rows(np.ones(1, np.bool_), clip_norm, extra, times)
        with _alone(optimizer, extra), apart(like.device, optimizer.generator, draw):
            if is_ghost(optimizer):
                total = clipping_of(module, extra, rows.norm(dim=1)) * rows.norm(dim=1)
            else:
                extra.grad_sample = rows  # type: ignore[attr-defined]
                optimizer.clip_and_accumulate()
                total = extra.summed_grad  # type: ignore[attr-defined]
            return float(total.detach().norm()) / clip_norm

    return arriving(added)


def clipping_of(module: Any, parameter: torch.nn.Parameter, norms: torch.Tensor) -> torch.Tensor:
    """What the ghost module itself multiplies records of such norms by; its own notes stay as they are."""
    before = dict(vars(module))
    try:
        parameter._norm_sample = norms  # type: ignore[attr-defined]
        module.trainable_parameters = [parameter]
        return torch.as_tensor(getattr(module, ghost_clipping(module))()).detach().to(norms.dtype)
    finally:
        _put_back(module, before)


@contextmanager
def _alone(optimizer: Any, extra: torch.nn.Parameter) -> Iterator[None]:
    """Meanwhile the optimizer has this parameter only, no hook and no skipped steps; afterwards all is as before."""
    before, groups = dict(vars(optimizer)), optimizer.param_groups
    extra.summed_grad = None  # type: ignore[attr-defined]
    extra.grad = torch.zeros_like(extra)  # a parameter after a backward pass has one: Opacus 1.1 takes its shape
    try:
        optimizer.param_groups = [{"params": [extra]}]
        optimizer.step_hook = None
        optimizer._step_skip_queue = []
        if "max_grad_norms" in before:  # clipping by layer: the only layer has the whole norm
            optimizer.max_grad_norms = [optimizer.max_grad_norm]
        yield
    finally:
        optimizer.param_groups = groups
        _put_back(optimizer, before)


def _put_back(thing: Any, attributes: dict[str, Any]) -> None:
    vars(thing).clear()
    vars(thing).update(attributes)
