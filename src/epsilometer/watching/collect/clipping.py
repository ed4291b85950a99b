"""Crafted records through the script's own clipper: one with a huge gradient, and some that are no numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from epsilometer.watching.facts import Clipping

if TYPE_CHECKING:
    from epsilometer.watching.collect.seen import SeenTraining

_HUGE = 1000.0  # times the clip norm
_NO_NUMBERS = (("NaN", math.nan), ("infinity", math.inf))


def clipping(seen: SeenTraining) -> Clipping:
    """A record whose gradient is 1000·C, in all parameters or in any one of them, and records that are no numbers."""
    limit = _limit(seen.optimizer)
    if not math.isfinite(limit) or limit <= 0:
        return Clipping(limit, math.inf, math.inf, [], [])
    huge, alone = _HUGE * limit, [] if seen.ghost else added_alone(seen)
    if seen.ghost:
        added = max(_ghost_norm(seen, huge), huge * _ghost_factor(seen, huge))
    else:
        count = len(seen.optimizer.params)
        rows = torch.full((1, count), huge / math.sqrt(count))
        added = max(torch.cat([s.reshape(-1) for s in clipped(seen, rows)]).norm().item(), *alone)
    not_finite = [name for name, value in _NO_NUMBERS if not _finite(seen, value)]
    return Clipping(limit, huge, added, alone, not_finite, 0.0 if seen.ghost else _idle(seen))


def _idle(seen: SeenTraining) -> float:
    """What the clipper makes of nothing: a script may add noise there."""
    nothing = torch.zeros(2, len(seen.optimizer.params))
    return float(torch.cat([s.reshape(-1) for s in clipped(seen, nothing)]).norm())


def _finite(seen: SeenTraining, value: float) -> bool:
    """Is the sum still a number, with a record that has such a gradient?"""
    if seen.ghost:
        return math.isfinite(_ghost_norm(seen, value))
    count = len(seen.optimizer.params)
    rows = torch.full((2, count), _limit(seen.optimizer) / 4 / count)
    rows[0] = value
    return all(bool(torch.isfinite(s).all()) for s in clipped(seen, rows))


def added_alone(seen: SeenTraining) -> list[float]:
    """What a record adds to each parameter whose gradient there is huge, and zero elsewhere."""
    huge = torch.eye(len(seen.optimizer.params)) * _HUGE * _limit(seen.optimizer)
    return [added.norm().item() for added in clipped(seen, huge)]


def clipped(seen: SeenTraining, norms: torch.Tensor) -> list[torch.Tensor]:
    """What the optimizer's clipper makes of records (rows) with these gradient norms in the parameters (columns)."""
    probes = []
    for p, column in zip(seen.optimizer.params, norms.T, strict=True):
        probe: Any = torch.nn.Parameter(torch.zeros([min(side, 2) for side in p.shape], dtype=p.dtype))
        entry = column.to(p.dtype) / math.sqrt(probe.numel())
        probe.grad_sample = entry.reshape(-1, *(1 for _ in probe.shape)).expand(-1, *probe.shape).clone()
        probe.summed_grad = None
        probes.append(probe)
    with _in_place_of_parameters(seen.optimizer, probes):
        seen.optimizer.clip_and_accumulate()
    return [probe.summed_grad for probe in probes]


@contextmanager
def _in_place_of_parameters(optimizer: Any, probes: list[Any]) -> Iterator[None]:
    """The real object with its real methods, patched ones too, works on other parameters for a moment."""
    before = dict(optimizer.__dict__)
    groups = {key: value for key, value in before["original_optimizer"].param_groups[0].items() if key != "params"}
    stand_in = torch.optim.SGD(probes, lr=0.0)
    stand_in.param_groups[0].update({**groups, "params": probes})
    try:
        optimizer.original_optimizer = stand_in
        if "param_groups" in before:  # Opacus up to 1.4.1 keeps a second reference
            optimizer.param_groups = stand_in.param_groups
        yield
    finally:
        optimizer.__dict__.clear()
        optimizer.__dict__.update(before)


def _limit(optimizer: Any) -> float:
    return float(optimizer.max_grad_norm)


def _ghost_factor(seen: SeenTraining, norm: float) -> float:
    """By what the real module multiplies a record whose gradient has this norm."""
    module = seen.module

    class Probe:
        _norm_sample = torch.tensor([norm])

    before = dict(module.__dict__)
    try:
        module.trainable_parameters = [Probe()]
        factor = getattr(module, "get_clipping_coef", None) or module.get_coeff
        return float(factor()[0])
    finally:
        module.__dict__.clear()
        module.__dict__.update(before)


def _ghost_norm(seen: SeenTraining, norm: float) -> float:
    """What a record with this gradient norm adds to a layer of two weights, by Opacus' own two backward passes."""
    from opacus.grad_sample import grad_sample_module_fast_gradient_clipping as grad_sample
    from opacus.utils import fast_gradient_clipping_utils as two_passes

    class NoOptimizer:
        loss_reduction = "sum"

        def zero_grad(self) -> None:
            for p in layer.parameters():
                p.grad = None

    layer = torch.nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        layer.weight.fill_(0.0)
    module = grad_sample.GradSampleModuleFastGradientClipping(
        layer, loss_reduction="sum", max_grad_norm=seen.module.max_grad_norm, use_ghost_clipping=True
    )
    with torch.enable_grad():
        output = module(torch.tensor([[norm, 0.0]]))[:, 0]
        if hasattr(two_passes, "double_backward"):  # up to 1.5.2
            two_passes.double_backward(module, NoOptimizer(), output + 1)
        else:
            loss = torch.nn.L1Loss(reduction="sum")
            criterion = two_passes.DPLossFastGradientClipping(module, NoOptimizer(), loss, "sum")
            criterion(output, torch.tensor([-1.0])).backward()
    assert layer.weight.grad is not None
    return float(layer.weight.grad.norm())
