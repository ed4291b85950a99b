"""A record may act through its own gradient only: not through other records' outputs, and not through buffers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from epsilometer.watching.checks.check import Finding, failed, not_applicable, passed
from epsilometer.watching.checks.seen import SeenTraining, mixing_batch_norms

_TOLERANCE = 1e-4
_REMEDY = "replace such layers by GroupNorm or LayerNorm (opacus.validators.ModuleValidator.fix)"


def mixing(seen: SeenTraining) -> Finding:
    """Batch normalisation, and anything else by which a record's output depends on its neighbours in the batch."""
    root = seen.root
    found = seen.batch_norms or mixing_batch_norms(root)
    if found:
        return failed(f"batch normalisation in {found[0]}", "outputs that depend on one record only", _REMEDY)
    if seen.inputs.records is None:
        return passed("no batch normalisation; outputs were not compared: no single tensor as input was seen")
    difference = _influence(root, seen.inputs.records)
    if difference is None:
        return passed("no batch normalisation; outputs were not compared: the model does not give one row a record")
    if difference > _TOLERANCE:
        return failed(
            f"a record's output changes by {difference:.2g} of its size with the other records of the batch",
            "outputs that depend on one record only", "remove statistics over the batch from the model",
        )  # fmt: skip
    return passed("no batch normalisation; a record's output does not depend on other records")


def buffers(seen: SeenTraining) -> Finding:
    """Buffers are released with the model, and nothing clips or noises what goes into them."""
    if not seen.steps:
        return not_applicable("no private step was taken")
    if not len(seen.buffers):
        return passed("the model has no buffers")
    counters = {name for name, b in seen.root.named_buffers() if b.numel() == 1 and not b.is_floating_point()}
    moved = [name for name in seen.buffers.moved() if name not in counters]  # num_batches_tracked counts steps only
    if moved:
        return failed(
            f"buffer {moved[0]} changed in the training", "buffers that no record has changed",
            "keep running statistics of records out of the model, e.g. track_running_stats=False",
        )  # fmt: skip
    return passed(f"none of {len(seen.buffers)} buffers changed")


def _influence(module: Any, records: torch.Tensor) -> float | None:
    """By which share the first record's output changes when the second record is another one."""
    other = records.clone()
    other[1] = (
        other[1] * 2 + 1 if records.is_floating_point() else records[1].flatten().flip(0).reshape(records[1].shape)
    )
    if not records.is_floating_point() and torch.equal(other, records):
        other[1] = records[0]
    outputs = []
    for batch in (records, other):
        state = {
            **{name: p.detach() for name, p in module.named_parameters()},
            **{name: b.detach().clone() for name, b in module.named_buffers()},  # forward passes may change them
        }
        with torch.random.fork_rng(), torch.no_grad(), _training(module):
            torch.manual_seed(0)  # the same dropout twice, in a fork
            output = torch.func.functional_call(module, state, (batch,))
        if not isinstance(output, torch.Tensor) or not output.dim() or len(output) != 2:
            return None
        outputs.append(output[0].double())
    size = max(outputs[0].abs().max().item(), 1e-12)
    difference = (outputs[0] - outputs[1]).abs().max().item() / size
    return None if math.isnan(difference) else difference


@contextmanager
def _training(module: Any) -> Iterator[None]:
    """A script may have switched to evaluation, in which layers behave in another way."""
    modes = [(part, part.training) for part in module.modules()]
    module.train()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
