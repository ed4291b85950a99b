"""Private optimizers that no engine has made (dp-transformers, Hugging Face's Trainer).

What an engine would know of them is found where the script has it: the module is the one that has their parameters,
batches come from the loader that gave one last, and steps are counted by the accountant that is told of one afterwards.
"""

from __future__ import annotations

import functools
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch

from epsilometer.watching.frameworks.opacus.accountants import listen, steps_accounted

if TYPE_CHECKING:
    from epsilometer.watching.frameworks.opacus.seen import SeenOpacus

_MODULES: weakref.WeakSet[Any] = weakref.WeakSet()  # that compute gradients of single records
_MARK = "_epsilometer_noted"
_LAST: list[weakref.ref[SeenOpacus]] = []  # the training that took a private step last


class NoEngine:
    """In the place of an engine: the accountant, once there is one, and the steps that it had before."""

    def __init__(self) -> None:
        self.accountant: Any = None
        self.before = 0


def note_makers() -> None:
    """From now on: modules that are made for gradients of single records, and steps that accountants are told of."""
    with suppress(ImportError, AttributeError):
        from opacus import GradSampleModule

        base = next(one for one in reversed(GradSampleModule.__mro__) if one.__module__.startswith("opacus"))
        for owner in {base, GradSampleModule}:
            if "__init__" in vars(owner) and not hasattr(owner.__init__, _MARK):
                _note_modules(owner)
    with suppress(ImportError, AttributeError):
        listen(_accounted)


def stepped(seen: SeenOpacus) -> None:
    """It took a private step: what an accountant is told next is of this one."""
    _LAST[:] = [weakref.ref(seen)]


def module_of(optimizer: Any) -> Any:
    """The smallest one that has all of its parameters; else these alone."""
    wanted = {id(p) for p in optimizer.params}
    sizes = ((sum(1 for _ in one.parameters()), one) for one in _MODULES)
    found = [(size, one) for size, one in sizes if wanted <= {id(p) for p in one.parameters()}]
    return min(found, key=lambda pair: pair[0])[1] if found else torch.nn.ParameterList(optimizer.params)


def _accounted(accountant: Any, noise_multiplier: float, sample_rate: float) -> None:
    seen = next((one for find in _LAST if (one := find()) is not None), None)
    if seen is None or not isinstance(seen.engine, NoEngine):
        return
    with suppress(Exception):  # what goes wrong in here is no business of the script
        engine = seen.engine
        if engine.accountant is None:
            engine.accountant, engine.before = accountant, _of_others(accountant, seen)
        if engine.accountant is accountant:
            seen.accounted_late((float(noise_multiplier), float(sample_rate)))


def _of_others(accountant: Any, seen: SeenOpacus) -> int:
    """Steps of other trainings that this accountant counts; a script may tell it of a step before that is taken."""
    from epsilometer.watching.frameworks.opacus.spending import trainings_of

    others = sum(one.steps for one in trainings_of(accountant) if one is not seen)
    return min(others, max((steps_accounted(accountant) or 0) - 1, 0))


def _note_modules(owner: Any) -> None:
    original = owner.__init__

    @functools.wraps(original)
    def __init__(self: Any, *arguments: Any, **named: Any) -> None:  # noqa: N807
        original(self, *arguments, **named)
        with suppress(Exception):
            _MODULES.add(self)

    setattr(__init__, _MARK, True)
    owner.__init__ = __init__
