"""A record may act through its own gradient only: not through other records' outputs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from epsilometer.watching.facts import Mixing


def mixing(root: Any, records: torch.Tensor | None, batch_norms: list[str] | None) -> Mixing:
    """Batch normalisation (`batch_norms`, as they were in training), and anything else by which a record's output
    depends on its neighbours in the batch; `records` are two that went into the module."""
    found = batch_norms or mixing_batch_norms(root)
    if found:
        return Mixing(found, None, "")
    if records is None:
        return Mixing([], None, "no single tensor as input was seen")
    influence = _influence(root, records)
    return Mixing([], influence, "" if influence is not None else "the model does not give one row a record")


def mixing_batch_norms(root: Any) -> list[str]:
    """Layers of batch normalisation that are not frozen."""
    kind = torch.nn.modules.batchnorm._BatchNorm
    layers = ((plain(name), layer) for name, layer in root.named_modules() if isinstance(layer, kind))
    return [name for name, layer in layers if layer.training or layer.running_mean is None]


def plain(name: str) -> str:
    """Without what Opacus wraps around a module."""
    return name.replace("_module.", "")


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
