"""Crafted records through the clipping of Opacus' optimizers, or of its modules in ghost mode."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from epsilometer.watching.collect.clipping import HUGE, LADDER, NO_NUMBERS, clipping, gradients_with
from epsilometer.watching.facts import Clipping


def through_optimizer(optimizer: Any, records: int) -> Clipping:
    """By its `clip_and_accumulate`, whichever that is by now, in batches of so many records."""

    def clip(norms: torch.Tensor) -> list[torch.Tensor]:
        probes = []
        for rows in gradients_with(norms, optimizer.params):
            probe: Any = torch.nn.Parameter(torch.zeros(rows.shape[1:], dtype=rows.dtype))
            probe.grad_sample, probe.summed_grad = rows, None
            probes.append(probe)
        with _in_place_of_parameters(optimizer, probes):
            optimizer.clip_and_accumulate()
        return [probe.summed_grad for probe in probes]

    return clipping(clip, len(optimizer.params), float(optimizer.max_grad_norm), records)


def through_module(module: Any, limit: float, records: int) -> Clipping:
    """Ghost clipping: by the module's own coefficients, and by Opacus' two backward passes."""
    if not math.isfinite(limit) or limit <= 0:
        return Clipping(limit, math.inf, math.inf, [], [])
    huge = HUGE * limit
    added = max(_norm_added(module, huge), huge * _coefficient(module, [huge]))
    others = [limit / 2] * (max(records, 2) - 1)
    ladder = [[times, times * limit * _coefficient(module, [times * limit, *others])] for times in LADDER]
    not_finite = [name for name, value in NO_NUMBERS if not math.isfinite(_norm_added(module, value))]
    return Clipping(limit, huge, added, [], not_finite, ladder=ladder)


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


def _coefficient(module: Any, norms: list[float]) -> float:
    """By what the real module multiplies the first of several records whose gradients have these norms."""

    class Probe:
        _norm_sample = torch.tensor(norms)

    before = dict(module.__dict__)
    try:
        module.trainable_parameters = [Probe()]
        if any("FSDP" in kind.__name__ for kind in type(module).__mro__):  # its norms lie in its parts
            module.get_norm_sample = lambda: torch.tensor(norms)
        factor = getattr(module, "get_clipping_coef", None) or module.get_coeff
        return float(factor()[0])
    finally:
        module.__dict__.clear()
        module.__dict__.update(before)


def _norm_added(module: Any, norm: float) -> float:
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
    own = grad_sample.GradSampleModuleFastGradientClipping(
        layer, loss_reduction="sum", max_grad_norm=module.max_grad_norm, use_ghost_clipping=True
    )
    with torch.enable_grad():
        output = own(torch.tensor([[norm, 0.0]]))[:, 0]
        if hasattr(two_passes, "double_backward"):  # up to 1.5.2
            two_passes.double_backward(own, NoOptimizer(), output + 1)
        else:
            loss = torch.nn.L1Loss(reduction="sum")
            criterion = two_passes.DPLossFastGradientClipping(own, NoOptimizer(), loss, "sum")
            criterion(output, torch.tensor([-1.0])).backward()
    assert layer.weight.grad is not None
    return float(layer.weight.grad.norm())
