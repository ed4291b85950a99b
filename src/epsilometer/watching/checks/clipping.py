"""Crafted records through the script's own clipper: one with a huge gradient, and some that are no numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from epsilometer.watching.checks.check import Finding, failed, not_applicable, passed
from epsilometer.watching.checks.seen import SeenTraining

_HUGE = 1000.0  # times the clip norm
_SLACK = 1e-3


def huge_record(seen: SeenTraining) -> Finding:
    """A record whose gradient is 1000·C in all parameters, or in any one of them, adds C at most."""
    limit = _limit(seen.optimizer)
    if not math.isfinite(limit) or limit <= 0:
        return failed(f"clip norm {limit}", "a positive number", "give make_private a max_grad_norm")
    if seen.ghost:
        added = max(_ghost_norm(seen, _HUGE * limit), _HUGE * limit * _ghost_factor(seen, _HUGE * limit))
    else:
        count = len(seen.optimizer.params)
        huge = torch.full((count,), _HUGE * limit / math.sqrt(count))
        together = torch.cat([s.reshape(-1) for s in clipped(seen, huge[None, :])]).norm().item()
        added = max(together, *added_alone(seen))
    if not added <= limit * (1 + _SLACK):
        return failed(
            f"a record with gradient norm {_HUGE * limit:.4g} adds {added:.4g}", f"at most C = {limit:.4g}",
            "clip every record's gradient over all parameters together (DPOptimizer.clip_and_accumulate)",
        )  # fmt: skip
    return passed(f"a record with gradient norm {_HUGE * limit:.4g} adds {added:.4g}, C = {limit:.4g}")


def nonfinite_record(seen: SeenTraining) -> Finding:
    """A record with NaN or infinity must not show in what is released."""
    bad = []
    for name, value in (("NaN", math.nan), ("infinity", math.inf)):
        if seen.ghost:
            finite = math.isfinite(_ghost_norm(seen, value))
        else:
            count = len(seen.optimizer.params)
            rows = torch.full((2, count), _limit(seen.optimizer) / 4 / count)
            rows[0] = value
            finite = all(bool(torch.isfinite(s).all()) for s in clipped(seen, rows))
        if not finite:
            bad.append(name)
    if bad:
        return failed(
            f"one record with {' or '.join(bad)} in its gradient makes the whole sum NaN: all can see that it is there",
            "a finite sum, whatever a record is",
            "no Opacus up to 1.6.0 guards against this: set such rows of grad_sample to 0 before the clipping, "
            "in a subclass of DPOptimizer",
        )  # fmt: skip
    return passed("records with NaN or infinity leave the sum finite")


def ghost_clip_norm(seen: SeenTraining) -> Finding:
    """In ghost mode the module clips and the optimizer adds noise: both need the same C."""
    if not seen.ghost:
        return not_applicable("no ghost clipping")
    norms = seen.clip_norms or {(float(seen.module.max_grad_norm), float(seen.optimizer.max_grad_norm))}
    for clips, noise in sorted(norms):
        if clips > noise * (1 + 1e-6):
            return failed(
                f"records are clipped at {clips:.4g}", f"C = {noise:.4g}, for which noise is added",
                "use Opacus 1.5.3 or later (PR 664), or set module.max_grad_norm",
            )  # fmt: skip
    return passed("records are clipped at the norm for which noise is added")


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
