"""Trainings of one process on the same records: each accountant knows its own steps, and what they spend adds up."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from epsilometer.watching.facts_together import Spent, Together, shared_records
from epsilometer.watching.frameworks.opacus.accountants import history_of

if TYPE_CHECKING:
    from epsilometer.watching.frameworks.opacus.seen import SeenOpacus

_NO_STEP = "no private step was taken"
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


def spent(seen: SeenOpacus) -> Spent | str:
    """For whoever sees the trainings of all processes."""
    if not seen.steps:
        return _NO_STEP
    accountant = seen.engine.accountant
    return Spent(id(accountant), _history(accountant), seen.steps, seen.records or 0, seen.sample)


def together(seen: SeenOpacus) -> Together | str:
    """This training, and those of this process on some of the same records, or parameters, that others count."""
    if not seen.steps:
        return _NO_STEP
    alike = [(one, shared) for one in _ALL if one is not seen and one.steps and (shared := _shared(one, seen)) >= 0]
    found = (one.engine.accountant for one in (seen, *(one for one, _ in alike)))
    accountants = {id(one): one for one in found if one is not None}
    histories = [_history(one) for one in accountants.values()]
    records = min((shared for _, shared in alike), default=seen.records or 0)
    return Together(histories, seen.steps + sum(one.steps for one, _ in alike), records)


def _history(accountant: Any) -> list[list[float]]:
    return [[float(part) for part in entry] for entry in history_of(accountant) or ()]


def _shared(one: SeenOpacus, other: SeenOpacus) -> int:
    """How many records are in the data of both, as far as can be told; 0 if they cannot be told apart, and the
    parameters are the same; −1 if they share nothing."""
    if _data(one) is _data(other):
        return other.records or 0
    if one.sample and other.sample:
        return shared_records(one.sample, one.records or 0, other.sample, other.records or 0) or -1
    parameters = {id(p) for p in one.root.parameters()}
    return 0 if any(id(p) in parameters for p in other.root.parameters()) else -1


def _data(seen: SeenOpacus) -> Any:
    return getattr(seen.settings.get("data_loader", seen.loader), "dataset", seen)
