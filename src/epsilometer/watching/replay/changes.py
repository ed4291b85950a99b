"""One record changed: a row of a batch as a loader yields it, or a record of the data set itself."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from epsilometer.watching.replay.roles import HUGE, HUGE_LABEL, LABEL, LEFT_OUT, REPLACED

_TIMES = 1000.0
_ALL_OTHERS = "all replaced by others"
_FACTORS = np.random.default_rng(20).integers(0, 2**63, 4096, dtype=np.uint64) | np.uint64(1)


def tensors_of(batch: Any) -> Iterator[torch.Tensor]:
    """All that are in it."""
    if isinstance(batch, torch.Tensor):
        yield batch
    elif isinstance(batch, Mapping):
        for value in batch.values():
            yield from tensors_of(value)
    elif isinstance(batch, list | tuple):
        for value in batch:
            yield from tensors_of(value)


def size_of(batch: Any) -> int | None:
    """How many records it has, if all of its tensors agree."""
    found = {len(one) if one.dim() else -1 for one in tensors_of(batch)}
    return found.pop() if len(found) == 1 and -1 not in found else None


def names_of(batch: Any) -> np.ndarray[Any, np.dtype[np.uint64]] | None:
    """A number for each record, the same for the same record; none if its rows are no records."""
    size = size_of(batch)
    if size is None:
        return None
    found = np.zeros(size, np.uint64)
    for which, tensor in enumerate(tensors_of(batch)):
        if not size:
            break
        flat = tensor.detach().cpu().contiguous().reshape(size, -1).view(torch.uint8).numpy()
        wide = np.zeros((size, -(-flat.shape[1] // 8) * 8), np.uint8)
        wide[:, : flat.shape[1]] = flat
        words = wide.view(np.uint64)
        factors = np.resize(_FACTORS, words.shape[1] + which)[which:] + np.arange(words.shape[1], dtype=np.uint64)
        found += (words * (factors | np.uint64(1))).sum(axis=1, dtype=np.uint64)
        found ^= found >> np.uint64(29)
        found *= _FACTORS[which]
    return found


def changed_batch(batch: Any, kind: str, draw: np.random.Generator) -> tuple[Any, str]:
    """The same with one row changed, and how; the batch itself and no word if that cannot be done."""
    size = size_of(batch)
    if not size or (size < 2 and kind in (REPLACED, LEFT_OUT)):
        return batch, ""
    row, other = (int(i) for i in draw.choice(size, 2, replace=False)) if size > 1 else (0, 0)
    if kind == LEFT_OUT:
        keep = torch.arange(size) != row
        return _mapped(batch, lambda one: one[keep.to(one.device)]), kind
    kind, change = _change(list(tensors_of(batch)), row, other, kind)

    def changed(one: torch.Tensor) -> torch.Tensor:
        new = one.clone()
        change(new)
        return new

    return (_mapped(batch, changed), kind) if kind else (batch, "")


def changed_dataset(dataset: Any, index: int, other: int, kind: str) -> str:
    """Change a record of a data set for good, through whatever selects from it; how, or no word if it cannot be."""
    while isinstance(dataset, torch.utils.data.Subset):
        index, other, dataset = int(dataset.indices[index]), int(dataset.indices[other]), dataset.dataset
    if isinstance(dataset, torch.utils.data.TensorDataset):
        with torch.no_grad():
            kind, change = _change(list(dataset.tensors), index, other, kind)
            for one in dataset.tensors:
                change(one)
        return kind
    if isinstance(dataset, list):
        dataset[index] = dataset[other]
        return REPLACED
    return _redirected(dataset, {index: other}, REPLACED)


def changed_whole(dataset: Any, draw: np.random.Generator) -> str:
    """Give every record another one's features, and the label of a third; how, or no word if that cannot be done."""
    indices = None
    while isinstance(dataset, torch.utils.data.Subset):
        own = list(dataset.indices)
        indices, dataset = own if indices is None else [own[i] for i in indices], dataset.dataset
    size = len(dataset)
    chosen = np.arange(size) if indices is None else np.asarray(indices, np.int64)
    one, other = (draw.choice(chosen, len(chosen)) for _ in range(2))
    if isinstance(dataset, torch.utils.data.TensorDataset):
        with torch.no_grad():
            for at, tensor in enumerate(dataset.tensors):
                taken = other if at and at == len(dataset.tensors) - 1 else one
                tensor[torch.from_numpy(chosen)] = tensor[torch.from_numpy(taken)].clone()
        return _ALL_OTHERS
    if isinstance(dataset, list):
        before = list(dataset)
        for index, source in zip(chosen, one, strict=True):
            dataset[index] = before[source]
        return _ALL_OTHERS
    return _redirected(dataset, dict(zip(chosen.tolist(), one.tolist(), strict=True)), _ALL_OTHERS)


def _redirected(dataset: Any, sources: Mapping[int, int], how: str) -> str:
    """Let a data set that finds records by number find others in their places."""
    if not hasattr(type(dataset), "__getitem__") or isinstance(dataset, torch.utils.data.IterableDataset):
        return ""
    dataset.__class__ = _with_others(type(dataset), sources)
    return how


def _change(tensors: list[torch.Tensor], row: int, other: int, kind: str) -> tuple[str, Callable[[torch.Tensor], None]]:
    """What is done to each tensor; another kind where this one is not possible, none if nothing would change."""
    if kind == HUGE_LABEL:
        (first, enlarge_one), (second, label_one) = (_change(tensors, row, other, each) for each in (HUGE, LABEL))
        if (first, second) == (HUGE, LABEL):
            return kind, lambda one: (enlarge_one(one), label_one(one))[0]
        kind = HUGE if first == HUGE else LABEL
    if kind == HUGE and any(_measured(one) for one in tensors):

        def enlarge(one: torch.Tensor) -> None:
            if _measured(one):
                one[row] *= _TIMES

        return HUGE, enlarge
    labels = [one for one in tensors if _labels(one)]
    if kind == LABEL and labels:
        known = torch.unique(labels[-1])
        others = known[known != labels[-1][row]]
        if len(others):
            which, shape = others[other % len(others)].item(), labels[-1].shape

            def label(one: torch.Tensor) -> None:
                if _labels(one) and one.shape == shape:
                    one[row] = which

            return LABEL, label
    if all(torch.equal(one[row], one[other]) for one in tensors):
        return "", lambda _: None

    def replace(one: torch.Tensor) -> None:
        one[row] = one[other].clone()

    return REPLACED, replace


def _measured(one: torch.Tensor) -> bool:
    return one.is_floating_point() and one.dim() > 1


def _labels(one: torch.Tensor) -> bool:
    return not one.is_floating_point() and not one.is_complex() and one.dim() == 1


def _with_others(owner: type, sources: Mapping[int, int]) -> type:
    """A class whose objects have other records in the places of some."""

    class Changed(owner):  # type: ignore[misc]
        def __getitem__(self, key: Any) -> Any:
            return super().__getitem__(_source(key, sources))

        def __getitems__(self, keys: Any) -> Any:
            wanted = [_source(key, sources) for key in keys]
            if hasattr(owner, "__getitems__"):
                return super().__getitems__(wanted)
            return [super(Changed, self).__getitem__(key) for key in wanted]

    Changed.__name__, Changed.__qualname__, Changed.__module__ = owner.__name__, owner.__qualname__, owner.__module__
    return Changed


def _source(key: Any, sources: Mapping[int, int]) -> Any:
    try:
        return sources.get(int(key), key)
    except (TypeError, ValueError):
        return key


def _mapped(batch: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """A copy with other tensors."""
    if isinstance(batch, torch.Tensor):
        return change(batch)
    if isinstance(batch, Mapping):
        made = copy.copy(batch)
        for name in list(batch):
            made[name] = _mapped(batch[name], change)  # type: ignore[index]
        return made
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(_mapped(one, change) for one in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(_mapped(one, change) for one in batch)
    return batch
