"""How often each record is in a data set that was put together of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from torch.utils.data import ConcatDataset, Subset

from epsilometer.watching.facts import Copies

_MOST = 1 << 24  # records


def copies(dataset: Any) -> Copies | str:
    """As far as it says where its records come from."""
    if not isinstance(dataset, ConcatDataset | Subset):
        return "the data set is not put together of others"
    if len(dataset) > _MOST:
        return f"the data set has more than {_MOST} records"
    found = Counter(_origins(dataset, range(len(dataset))))
    several = [times for times in found.values() if times > 1]
    return Copies(len(found), len(several), max(several, default=1))


def _origins(dataset: Any, chosen: Any) -> Iterator[tuple[int, int]]:
    """Of these records: which data set has them first, and where."""
    if isinstance(dataset, Subset):
        yield from _origins(dataset.dataset, [int(dataset.indices[i]) for i in chosen])
    elif isinstance(dataset, ConcatDataset):
        begins = [0, *dataset.cumulative_sizes]
        for part, begin, end in zip(dataset.datasets, begins, begins[1:], strict=False):
            yield from _origins(part, [i - begin for i in chosen if begin <= i < end])
    else:
        for i in chosen:
            yield id(dataset), i
