"""A record may act through its own gradient only: not through other records' outputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from epsilometer.watching.facts import Mixing


def mixing(
    root: Any, records: torch.Tensor | None, batch_norms: list[str] | None, modes: Sequence[tuple[Any, bool]] = ()
) -> Mixing:
    """Batch normalisation (`batch_norms`, as they were in training), and anything else by which a record's output
    depends on its neighbours in the batch; `records` are a batch that went into the module. A part that was evaluated
    while it was trained (`modes`), as frozen layers are, is so here."""
    found = mixing_batch_norms(root) if batch_norms is None else batch_norms
    if found:
        return Mixing(found, None, "")
    if records is None:
        return Mixing([], None, "no single tensor as input was seen")
    influence = _influence(root, records, modes)
    return Mixing([], influence, "" if influence is not None else "the model does not give one row a record")


def mixing_batch_norms(root: Any) -> list[str]:
    """Layers of batch normalisation that are not frozen."""
    kind = torch.nn.modules.batchnorm._BatchNorm
    layers = ((plain(name), layer) for name, layer in root.named_modules() if isinstance(layer, kind))
    return [name for name, layer in layers if layer.training or layer.running_mean is None]


def plain(name: str) -> str:
    """Without what Opacus wraps around a module."""
    return name.replace("_module.", "")


def _influence(module: Any, records: torch.Tensor, modes: Sequence[tuple[Any, bool]]) -> float | None:
    """By which share the first record's output changes when all others are other ones: a script may treat batches of
    two records in another way than those that it trains on."""
    others = records[1:]
    changed = others * 2 + 1 if records.is_floating_point() else others.flatten(1).flip(1).reshape(others.shape)
    if torch.equal(changed, others):
        changed = records[:1].expand_as(others)
    other = torch.cat([records[:1], changed])
    outputs = []
    for batch in (records, other):
        state = {
            **{name: p.detach() for name, p in module.named_parameters()},
            **{name: b.detach().clone() for name, b in module.named_buffers()},  # forward passes may change them
        }
        with torch.random.fork_rng(), torch.no_grad(), _as_trained(module, modes):
            torch.manual_seed(0)  # the same dropout twice, in a fork
            output = torch.func.functional_call(module, state, (batch,))
        if not isinstance(output, torch.Tensor) or not output.dim() or len(output) != len(records):
            return None
        outputs.append(output[0].double())
    size = max(outputs[0].abs().max().item(), 1e-12)
    difference = (outputs[0] - outputs[1]).abs().max().item() / size
    return None if math.isnan(difference) else difference


@contextmanager
def _as_trained(module: Any, modes: Sequence[tuple[Any, bool]]) -> Iterator[None]:
    """A script may have switched to evaluation since, in which layers behave in another way."""
    before = [(part, part.training) for part in module.modules()]
    if not modes:
        module.train()
    try:
        for part, mode in modes:
            part.training = mode
        yield
    finally:
        for part, mode in before:
            part.training = mode
