"""What several engines of one process have spent together: each accountant knows its own steps only."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epsilometer.watching.frameworks.opacus.seen import SeenOpacus

_ALL: weakref.WeakSet[Any] = weakref.WeakSet()


def note(seen: SeenOpacus) -> None:
    """One more training."""
    _ALL.add(seen)


def spent_together(seen: SeenOpacus, delta: float) -> tuple[int, float]:
    """How many engines have trained parameters of this model on this data set, and ε of all their steps."""
    accountants = {id(one.engine.accountant): one.engine.accountant for one in _ALL if one.steps and _alike(one, seen)}
    accountants[id(seen.engine.accountant)] = seen.engine.accountant
    if len(accountants) == 1:
        return 1, 0.0
    together = type(seen.engine.accountant)()
    together.history = [entry for one in accountants.values() for entry in one.history]
    return len(accountants), float(together.get_epsilon(delta))


def _alike(one: SeenOpacus, other: SeenOpacus) -> bool:
    return _data(one) is _data(other) and bool(_parameters(one) & _parameters(other))


def _data(seen: SeenOpacus) -> Any:
    return getattr(seen.settings.get("data_loader", seen.loader), "dataset", seen)


def _parameters(seen: SeenOpacus) -> set[int]:
    return {id(p) for p in seen.root.parameters()}
