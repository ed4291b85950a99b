"""Norms of single records, as a framework computes them for each kind of layer, against plain autograd."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import torch

from epsilometer.watching.collect.inputs import LayerInput
from epsilometer.watching.facts import LayerNorms

Norms = Callable[[Any, torch.Tensor, torch.Tensor], dict[str, torch.Tensor]]

_LARGEST = 1_000_000  # numbers in a layer or a record, above which it is not copied
_RECORDS = 3
_GRADIENT = 1e-3  # its size where it enters a layer
_OURS = ("activations", "max_batch_len", "ft_compute_sample_grad", "autograd_grad_sample_hooks")


def layer_norms(layers: Iterable[LayerInput], norms: Norms) -> LayerNorms:
    """What a framework takes for the norms of records, over what they are: the smallest share for each parameter.

    `norms(layer, records, weights)` are those of each trained parameter, by name, where the loss is
    Σ layer(records)·weights; NotImplementedError says that they are not known for this kind of layer.
    """
    shares: dict[str, float] = {}
    good, unknown = [], []
    for given in layers:
        kind = f"{type(given.layer).__name__} with {len(given.shape) + 1}-d input"
        small = _small(given)
        try:
            found = None if small is None else _compared(norms, *small)
        except NotImplementedError:
            found = None
        if found is None:
            unknown.append(kind)
            continue
        for name, (theirs, true) in found.items():
            shares[f"{given.name}.{name} ({kind})"] = (theirs / true.clamp(min=1e-12)).min().item()
        good.append(kind)
    return LayerNorms(shares, good, unknown)


def _small(given: LayerInput) -> tuple[Any, torch.Tensor] | None:
    """A copy of the layer on its own, cut down where that is easy, and records for it."""
    own = torch.Generator().manual_seed(751)
    layer = given.layer
    shape = tuple(min(side, 7) for side in given.shape)
    if type(layer) is torch.nn.Linear:
        width = min(layer.in_features, 7)
        copied: Any = torch.nn.Linear(width, min(layer.out_features, 5), bias=layer.bias is not None)
        shape = (*shape[:-1], width)
    elif type(layer) is torch.nn.Embedding and layer.padding_idx is None and layer.max_norm is None:
        copied = torch.nn.Embedding(min(layer.num_embeddings, 7), min(layer.embedding_dim, 5))
    else:
        size = sum(p.numel() for p in layer.parameters())
        if max(size, torch.Size(given.shape).numel()) > _LARGEST:
            return None
        copied, shape = _alone(layer), given.shape
    for name, p in copied.named_parameters():
        p.data = torch.randn(p.shape, generator=own)
        p.requires_grad_(getattr(layer, name).requires_grad)
    copied.train()
    if given.whole_numbers:
        most = int(getattr(copied, "num_embeddings", 2))
        return copied, torch.randint(most, (_RECORDS, *shape), generator=own)
    return copied, torch.randn(_RECORDS, *shape, generator=own)


def _alone(layer: Any) -> Any:
    """The layer without hooks and without what others keep on it; `deepcopy` would follow its hooks to everything."""
    alone = copy.copy(layer)
    state = alone.__dict__
    for key, value in list(state.items()):
        if key.endswith("_hooks") or "_hooks_" in key:
            state[key] = OrderedDict() if isinstance(value, dict) else value
    for key in _OURS:
        state.pop(key, None)
    state["_parameters"] = {
        name: p if p is None else torch.nn.Parameter(p.detach().cpu().float().clone())
        for name, p in layer._parameters.items()
    }
    state["_buffers"] = {name: b if b is None else b.detach().cpu().clone() for name, b in layer._buffers.items()}
    return alone


def _compared(norms: Norms, layer: Any, records: torch.Tensor) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Of each parameter: what the framework takes for the norms of these records, and what they are."""
    own = torch.Generator().manual_seed(752)
    trained = {name: p for name, p in layer.named_parameters() if p.requires_grad}
    with torch.enable_grad():
        # Small, as gradients of averaged losses are: a norm that is squared by mistake is too small for these.
        weights = torch.randn(layer(records).shape, generator=own) * _GRADIENT
        true: dict[str, list[torch.Tensor]] = {name: [] for name in trained}
        for i in range(len(records)):
            loss = (layer(records[i : i + 1]) * weights[i : i + 1]).sum()
            gradients = torch.autograd.grad(loss, list(trained.values()))
            for name, gradient in zip(trained, gradients, strict=True):
                true[name].append(gradient.norm())
        found = norms(layer, records, weights)
    return {name: (found[name].detach(), torch.stack(true[name])) for name in trained}
