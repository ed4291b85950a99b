"""Records of loops that have no loader: rows that they take out of a tensor, or arrays that they make tensors of."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from epsilometer.watching.replay import before
from epsilometer.watching.replay.draws import DRAWS, NORMAL, OTHER
from epsilometer.watching.replay.noting import by_us
from epsilometer.watching.replay.roles import HUGE, HUGE_LABEL, LABEL, REPLACED

_LEAST = 20  # rows: fewer are no data
_TIMES = 1000.0


class Rows:
    """What a step takes, of which a run may change one record: features where they are taken, and then its label,
    which is taken by the same index."""

    def __init__(self, outside: Any) -> None:
        self._outside = outside
        self._index: Any = None  # by which the changed record was taken
        self._row, self._other, self._kind = 0, 0, ""
        self._step = -1

    def attach(self) -> None:
        """To functions of torch."""
        take = torch.Tensor.__getitem__
        select = torch.Tensor.index_select

        def __getitem__(self: Any, index: Any) -> Any:  # noqa: N807
            return rows.taken(self, index, take(self, index))

        def index_select(self: Any, dim: int, index: Any) -> Any:
            found = select(self, dim, index)
            return rows.taken(self, index, found) if dim == 0 else found

        rows = self
        torch.Tensor.__getitem__ = functools.wraps(take)(__getitem__)  # type: ignore[method-assign]
        torch.Tensor.index_select = functools.wraps(select)(index_select)  # type: ignore[method-assign]
        for name in ("tensor", "as_tensor", "from_numpy"):
            setattr(torch, name, self._made(getattr(torch, name)))

    def _made(self, make: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(make)
        def made(data: Any, *arguments: Any, **named: Any) -> Any:
            found = make(data, *arguments, **named)
            if isinstance(data, np.ndarray) and data.ndim and self._looks(found, 3):
                return self._array(found)
            return found

        return made

    def taken(self, source: Any, index: Any, found: Any) -> Any:
        """Rows of a tensor."""
        outside = self._outside
        if not outside.active or not isinstance(found, torch.Tensor) or not self._looks(source, 4):
            return found
        changed = outside.guarded(self._taken, source, index, found)
        return found if changed is None else changed

    def _array(self, found: torch.Tensor) -> torch.Tensor:
        outside = self._outside
        if not outside.active or not outside.met:
            return found
        changed = outside.guarded(self._converted, found)
        return found if changed is None else changed

    def _looks(self, source: Any, caller: int) -> bool:
        """May this be data, and does the script take it?"""
        return not (
            self._outside.depth
            or source.requires_grad
            or not source.dim()
            or before.inside()
            or by_us(caller)
            or _wrapped(source)
        )

    def _taken(self, source: torch.Tensor, index: Any, found: torch.Tensor) -> torch.Tensor | None:
        key = _key(index)
        if key is None or len(source) < _LEAST:
            return None
        self._forget()
        if source.dim() == 1:
            return self._labels(key, source, found)
        if source.dim() < 2 or self._outside.has_batch:
            return None
        self._outside.from_source((source.data_ptr(), tuple(source.shape)), len(source), _numbers(index, len(source)))
        if not self._outside.wants_change():
            return self._once_more(key, source, found)
        self._index, self._kind = key, self._outside.next_kind()
        size = len(source) if key[0] == "one" else len(found)
        if not size or (key[0] != "one" and size < 2 and len(source) < 2):
            return None
        draw = self._outside.other
        self._row = 0 if key[0] == "one" else int(draw.integers(size))
        self._other = int(draw.integers(len(source)))
        self._outside.changes(self._kind)
        return self._features(key, source, found)

    def _once_more(self, key: Any, source: torch.Tensor, found: torch.Tensor) -> torch.Tensor | None:
        """The same record, taken again in this step."""
        return self._features(key, source, found) if self._kind and key == self._index else None

    def _features(self, key: Any, source: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
        if self._kind == LABEL:
            return found
        new = found.clone()
        row = new if key[0] == "one" else new[self._row]
        if self._kind in (HUGE, HUGE_LABEL) and new.is_floating_point():
            row.mul_(_TIMES)
        else:
            row.copy_(source[self._other])
        return new

    def _labels(self, key: Any, source: torch.Tensor, found: torch.Tensor) -> torch.Tensor | None:
        if not self._kind or key != self._index or self._kind == HUGE:
            return None
        new = found.clone()
        row = new if key[0] == "one" else new[self._row]
        if self._kind == REPLACED or new.is_floating_point():
            row.copy_(source[self._other])
        else:
            others = torch.unique(source)
            others = others[others != row]
            if len(others):
                row.copy_(others[self._other % len(others)])
        return new

    def _converted(self, found: torch.Tensor) -> torch.Tensor | None:
        """An array that became a tensor: a batch, if anything is."""
        self._forget()
        key = ("array", len(found))
        if found.dim() == 1:
            return self._labels(key, found, found)
        if self._outside.has_batch or not len(found):
            return None
        drawn = DRAWS.numbers  # since the last step: the array may be noise
        if drawn[NORMAL] or drawn[OTHER] >= found.numel() or not self._outside.wants_change():
            return None
        self._index, self._kind = key, self._outside.next_kind()
        self._row, self._other = (int(one) for one in self._outside.other.integers(len(found), size=2))
        self._outside.changes(self._kind)
        return self._features(key, found, found)

    def _forget(self) -> None:
        """What was changed in the step before."""
        if self._step != self._outside.met:
            self._step, self._index, self._kind = self._outside.met, None, ""


def _key(index: Any) -> Any:
    """The same for the same rows; none if it takes no rows."""
    found: Any = None
    if isinstance(index, slice):
        found = "slice", index.start, index.stop, index.step
    elif isinstance(index, int | np.integer) and not isinstance(index, bool):
        found = "one", int(index)
    elif isinstance(index, torch.Tensor) and not _wrapped(index) and not index.is_floating_point():
        found = _key(index.detach().cpu().numpy()) if index.dim() else ("one", int(index))
    elif isinstance(index, np.ndarray) and index.ndim == 1 and index.dtype.kind in "iub":
        found = "rows", index.tobytes()
    elif isinstance(index, list) and index and all(isinstance(one, int | np.integer) for one in index):
        found = "rows", np.asarray(index).tobytes()
    return found


def _numbers(index: Any, size: int) -> list[int]:
    """Of the rows that it takes."""
    if isinstance(index, slice):
        return list(range(size))[index]
    found = np.asarray(index.detach().cpu() if isinstance(index, torch.Tensor) else index)
    found = np.flatnonzero(found) if found.dtype.kind == "b" else np.atleast_1d(found)
    return [int(one) % size for one in found]


def _wrapped(one: torch.Tensor) -> bool:
    """By functorch, which has no numbers to look at."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(one))
