"""Which records were in the batches that a training took its steps on, as data loaders drew them."""

from __future__ import annotations

import hashlib
import math
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler, dataloader

from epsilometer.watching.collect.aside import Aside
from epsilometer.watching.facts import Batches

_LISTENING: weakref.WeakSet[DrawnBatches] = weakref.WeakSet()
_LATEST: list[GaveLast] = []  # where somebody may ask for it later
_MARK = "_epsilometer_drawn"
_POISSON = ("UniformWithReplacementSampler", "DistributedUniformWithReplacementSampler")
_BY_POISSON, _PLAIN = "poisson", "plain"
_IN_EPOCHS = (RandomSampler, SequentialSampler)
_LEVELS = 4  # samplers that draw from samplers
_WAITING = 64  # batches that may make one together


@dataclass(frozen=True)
class GaveLast:
    """In the place of the loader that gave a batch last: what an iterator of torch knows of it."""

    dataset: Any
    _index_sampler: Any
    indices: Any

    @property
    def sample_rate(self) -> float | None:
        """Of a Poisson sampler."""
        rates = (getattr(one, "sample_rate", None) for one in _samplers(self._index_sampler))
        return next((float(rate) for rate in rates if isinstance(rate, int | float)), None)

    def __len__(self) -> int:
        return len(self._index_sampler)


def note_latest() -> None:
    """From now on, for trainings whose loader nobody names."""
    _install()
    if not _LATEST:
        _LATEST.append(GaveLast(None, None, None))


def gave_last() -> GaveLast | None:
    """The loader that gave a batch last, if any did."""
    return next((one for one in _LATEST if one.dataset is not None), None)


class DrawnBatches(Aside):
    """Takes what came from a loader last before gradients were clipped for the batch that they are of."""

    def __init__(self, records: int | None) -> None:
        super().__init__()
        self._records = records
        # Records, and who drew them, since gradients were clipped last.
        self._waiting: deque[tuple[np.ndarray[Any, Any], str]] = deque(maxlen=_WAITING)
        self._step: list[np.ndarray[Any, Any]] = []
        self._clipped = 0
        self.known = self.poisson = self.other = 0  # steps
        self.plain = 0  # batches that torch's own samplers drew, and nobody else can have
        self.fewer = self.more = 0  # batches with fewer, or more, gradients than records
        self._times: set[float] = set()  # gradients for a record, in batches that have any
        self._usual = self._rows = 0  # records of the batch under way, and its gradients
        self._seen = np.zeros(0, np.bool_)
        self._used, self._run_goes_on = 0, True
        self.apart, self.log_chance = 0, 0.0  # batches from the first on without a record that came before
        self.last: list[int] | None = None  # records of the last step, where they are known
        self._digests: dict[bytes, int] = {}
        self.same: list[float] = []  # two steps with the same batch, and the logarithm of the chance of that
        _install()
        _LISTENING.add(self)

    def delivered(self, indices: Any, sampler: Any, records: int) -> None:
        """A loader gave these, as this sampler drew them."""
        if isinstance(indices, torch.Tensor):  # as samplers for several processes give them
            indices = indices.tolist()
        if records == self._records and isinstance(indices, list) and all(type(one) is int for one in indices[:1]):
            self._waiting.append((np.asarray(indices, np.int64), _kind(sampler)))

    def began_late(self, last: GaveLast) -> None:
        """A batch was drawn before anybody listened."""
        with self.look():
            self.delivered(last.indices, last._index_sampler, len(last.dataset))

    def clipped(self, rows: int) -> None:
        """One physical batch, of so many gradients."""
        with self.look():
            self._clipped += 1
            self._rows += rows
            if not self._waiting:
                return
            self._close(self._rows - rows)
            batch = _last_of(self._waiting, rows)
            usual, kind = self._waiting[-1]
            alone = len(self._waiting) == 1 and len(usual) == rows < (self._records or 0)
            # Of several, nobody knows which ones these gradients are of, unless they are of all.
            self._usual = len(usual) if len(self._waiting) == 1 else rows if batch is not None else 0
            self._rows = rows
            self._waiting.clear()
            self.poisson += kind == _BY_POISSON
            self.other += kind != _BY_POISSON
            self.plain += kind == _PLAIN and alone
            if batch is not None:
                self._step.append(batch)

    def stepped(self) -> None:
        """All physical batches of a step were clipped."""
        parts, whole = self._step, len(self._step) == self._clipped > 0
        self.last = [int(one) for part in parts for one in part] if whole else None
        self._step, self._clipped = [], 0
        with self.look():
            self._close(self._rows)
            if not whole or self._records is None:
                self._run_goes_on = False
                return
            self.known += 1
            self._compare(np.sort(parts[0] if len(parts) == 1 else np.concatenate(parts)), self._records)

    def _compare(self, batch: np.ndarray[Any, Any], records: int) -> None:
        size = len(batch)
        chosen = _log_choices(records, size)
        digest = hashlib.blake2b(batch.tobytes(), digest_size=16).digest()
        before = self._digests.setdefault(digest, self.known)
        if before != self.known and (not self.same or -chosen < self.same[2]):
            self.same = [float(before), float(self.known), -chosen]
        if not self._run_goes_on:
            return
        if not len(self._seen):
            self._seen = np.zeros(records, np.bool_)
        if self._seen[batch].any() or self._used + size > records:
            self._run_goes_on = False
            return
        self.log_chance += _log_choices(records - self._used, size) - chosen
        self.apart += 1
        self._used += size
        self._seen[batch] = True

    def _close(self, rows: int) -> None:
        """No more gradients of that batch will come: a script may have cut it, or gone over it more than once."""
        if self._usual:
            self.fewer += rows < self._usual
            self.more += rows > self._usual
            self._times.add(rows / self._usual)
        self._usual = self._rows = 0

    @property
    def never_iterated(self) -> bool:
        """Did all gradients so far come from batches that a plain loader of torch drew?"""
        return 0 < self.plain == self.other and not self.poisson

    @property
    def times(self) -> int:
        """So many gradients for every record, in every batch; 0 if there is no such number."""
        times = next(iter(self._times)) if len(self._times) == 1 else 0
        return int(times) if times == int(times) else 0

    def facts(self) -> Batches | str:
        if self.trouble:
            return self.trouble
        return Batches(
            self.known,
            self.poisson,
            self.other,
            self.apart,
            self.log_chance,
            list(self.same),
            self.fewer,
            self.more,
            self.plain,
            self.times,
        )


def _last_of(delivered: Sequence[tuple[np.ndarray[Any, Any], str]], rows: int) -> np.ndarray[Any, Any] | None:
    """The last batch, or the last few, that have so many records."""
    parts: list[np.ndarray[Any, Any]] = []
    for indices, _ in reversed(delivered):
        parts.append(indices)
        if sum(map(len, parts)) >= rows:
            break
    if sum(map(len, parts)) != rows:
        return None
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _log_choices(records: int, size: int) -> float:
    return math.lgamma(records + 1) - math.lgamma(size + 1) - math.lgamma(records - size + 1)


def _install() -> None:
    """Around the iterators of all torch loaders of this process, once."""
    kind: Any = dataloader._BaseDataLoaderIter
    if hasattr(kind, _MARK):
        return
    next_index, next_batch = kind._next_index, kind.__next__

    def with_index(self: Any) -> Any:
        indices = next_index(self)
        if _LISTENING or _LATEST:
            vars(self).setdefault(_MARK, deque()).append(indices)
        return indices

    def with_batch(self: Any) -> Any:
        batch = next_batch(self)
        waiting = vars(self).get(_MARK)
        if waiting:
            _tell(self, waiting.popleft())
        return batch

    setattr(kind, _MARK, True)
    kind._next_index, kind.__next__ = with_index, with_batch


def _tell(iterator: Any, indices: Any) -> None:
    sampler = getattr(iterator, "_index_sampler", None)
    if _LATEST:
        _LATEST[:] = [GaveLast(iterator._dataset, sampler, indices)]
    for one in list(_LISTENING):
        with one.look():
            one.delivered(indices, sampler, len(iterator._dataset))


def _kind(sampler: Any) -> str:
    """Who draws the records: a Poisson sampler, those of torch alone that shuffle or go in order, or another."""
    found = list(_samplers(sampler))
    if any(type(one).__name__ in _POISSON for one in found):
        return _BY_POISSON
    own = [type(one) for one in found]
    return _PLAIN if len(own) == 2 and own[0] is BatchSampler and own[1] in _IN_EPOCHS else ""


def sampled_by(loader: Any) -> tuple[bool, str]:
    """Does a Poisson sampler draw its batches? And the name of a sampler that is none of torch's, if there is one."""
    found = list(_samplers(getattr(loader, "_index_sampler", None)))
    own = [type(one).__name__ for one in found if not type(one).__module__.startswith("torch.")]
    return any(name in _POISSON for name in own), next(iter(own), "")


def _samplers(sampler: Any) -> Iterator[Any]:
    """One, and those that it draws from."""
    for _ in range(_LEVELS):
        if sampler is None:
            return
        yield sampler
        sampler = getattr(sampler, "sampler", None) or getattr(sampler, "batch_sampler", None)
