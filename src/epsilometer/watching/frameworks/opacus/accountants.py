"""What accountants of Opacus have noted, in all its versions; and who is told when a script calls one itself."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_MARK = "_epsilometer_told"

Told = Callable[[Any, float, float], None]  # the accountant, a noise multiplier and a sample rate


def history_of(accountant: Any) -> list[Any] | None:
    """Runs of steps as (noise multiplier, sample rate, number); Opacus 1.0 has another name for it."""
    found = getattr(accountant, "history", None)
    if found is None:
        found = getattr(accountant, "steps", None)
    return list(found) if isinstance(found, list | tuple) else None


def steps_accounted(accountant: Any) -> int | None:
    try:
        return sum(int(entry[2]) for entry in history_of(accountant) or ()) if accountant is not None else None
    except (TypeError, IndexError):
        return None


def last_accounted(accountant: Any) -> tuple[int, Any] | None:
    """Enough of an accountant's history to see that a step was added."""
    history = history_of(accountant)
    return (len(history), tuple(history[-1])) if history else None


def listen(told: Told) -> None:
    """To every step of every accountant of this process."""
    from opacus import accountants

    for owner in vars(accountants).values():
        own = vars(owner).get("step") if isinstance(owner, type) else None
        if callable(own) and not hasattr(own, _MARK):
            _follow(owner, told)


def _follow(owner: Any, told: Told) -> None:
    original = owner.step

    @functools.wraps(original)
    def step(self: Any, *arguments: Any, **named: Any) -> Any:
        result = original(self, *arguments, **named)
        if set(named) >= {"noise_multiplier", "sample_rate"}:
            told(self, named["noise_multiplier"], named["sample_rate"])
        return result

    setattr(step, _MARK, True)
    owner.step = step
