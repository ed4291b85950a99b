"""Trainings of one process on the same records: each accountant knows its own steps, and what they spend adds up."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from epsilometer.watching.facts import Together
from epsilometer.watching.frameworks.opacus.accountants import history_of
from epsilometer.watching.replay.changes import names_of

if TYPE_CHECKING:
    from epsilometer.watching.frameworks.opacus.seen import SeenOpacus

_ALL: weakref.WeakSet[SeenOpacus] = weakref.WeakSet()


def note(seen: SeenOpacus) -> int:
    """One more training; its number."""
    _ALL.add(seen)
    return len(_ALL)


def trainings_of(accountant: Any) -> list[SeenOpacus]:
    """That it counts."""
    return [seen for seen in _ALL if seen.engine.accountant is accountant]


def whose(optimizer: Any) -> SeenOpacus | None:
    """The training whose parameters a private optimizer has that no engine has made: the latest of several."""
    parameters = {id(p) for p in optimizer.params}
    found = [seen for seen in _ALL if parameters and parameters <= {id(p) for p in seen.root.parameters()}]
    return max(found, key=lambda seen: seen.number, default=None)


def together(seen: SeenOpacus) -> Together | str:
    """This training, and those on some of the same records that other accountants count."""
    if not seen.steps:
        return "no private step was taken"
    alike = [(one, shared) for one in _ALL if one is not seen and one.steps and (shared := _shared(one, seen))]
    found = (one.engine.accountant for one in (seen, *(one for one, _ in alike)))
    accountants = {id(one): one for one in found if one is not None}
    histories = [[[float(part) for part in entry] for entry in history_of(one) or ()] for one in accountants.values()]
    records = min((shared for _, shared in alike), default=seen.records or 0)
    return Together(histories, seen.steps + sum(one.steps for one, _ in alike), records)


def _shared(one: SeenOpacus, other: SeenOpacus) -> int:
    """How many records are in the data of both, as far as that can be told without running the script's code."""
    first, second = _data(one), _data(other)
    if first is second:
        return other.records or 0
    names, others = _names(first), _names(second)
    return 0 if names is None or others is None else len(np.intersect1d(names, others))


def _data(seen: SeenOpacus) -> Any:
    return getattr(seen.settings.get("data_loader", seen.loader), "dataset", seen)


def _names(data: Any) -> Any:
    """A number for each record: its features, as labels may be others."""
    chosen: Any = slice(None)
    if isinstance(data, torch.utils.data.Subset):
        chosen, data = list(data.indices), data.dataset
    if not isinstance(data, torch.utils.data.TensorDataset) or not data.tensors:
        return None
    names = names_of(max(data.tensors, key=lambda one: one.numel()))
    return None if names is None else names[chosen]
