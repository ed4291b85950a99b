"""What a script draws apart from batches and models: first weights, permutations and seeds, or perhaps noise.

A user's own neighbour changes what comes before `make_private`: a mean, class weights, a vocabulary. If that was made
with noise, and accounted for, it may differ. So such neighbours accuse only where nothing that was drawn can be noise.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from epsilometer.watching.replay import randomness
from epsilometer.watching.replay.noting import MADE, by_us

# Functions whose random numbers hide nothing.
_INNOCENT = {
    "torch": ("manual_seed", "seed", "randperm"),
    "torch.random": ("manual_seed", "seed"),
    "random": ("seed", "shuffle", "sample"),
    "numpy.random": ("seed", "shuffle", "permutation"),
    "torch.utils.data": ("random_split",),
    "sklearn.model_selection": ("train_test_split",),
}


class Before:
    """Looks on from the moment that torch is there."""

    over = False  # the first training has begun

    def __init__(self) -> None:
        self.drew, self.depth = False, 0
        self.look_later: Callable[[], object] = lambda: None  # by whoever looks on from then on
        self.settle_later: Callable[[], object] = lambda: None
        self._known = self._now()
        self._wrapped: set[str] = set()

    def attach(self) -> None:
        init = importlib.import_module("torch.nn.init")
        names = [name for name in vars(init) if name.endswith("_") and callable(getattr(init, name))]
        for name in names:  # also helpers of functions that others have imported by now
            setattr(init, name, innocent(getattr(init, name)))
        loading = importlib.import_module("torch.utils.data.dataloader")
        for owner, name in ((loading.DataLoader, "__iter__"), (loading._BaseDataLoaderIter, "__next__")):
            setattr(owner, name, innocent(getattr(owner, name)))
        self.attach_to_others()

    def attach_to_others(self) -> None:
        """Modules of the table that were imported since."""
        for place, names in _INNOCENT.items():
            if place in sys.modules and place not in self._wrapped:
                self._wrapped.add(place)
                for name in names:
                    setattr(sys.modules[place], name, innocent(getattr(sys.modules[place], name)))

    def look(self) -> None:
        """At random numbers and generators since the last look."""
        self.attach_to_others()
        (states, made), (known, before) = self._now(), self._known
        # Generators that packages make while they are imported are new, and say nothing.
        moved = any(state != known.get(name, state) for name, state in states.items())
        self.drew = self.drew or moved or made != before
        self._known = states, made

    def settle(self) -> None:
        self._known = self._now()

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is drawn meanwhile is no noise."""
        if not self.depth:
            self.look_later() if self.over else self.look()
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            if not self.depth and self.over:
                self.settle_later()
            elif not self.depth:
                self.settle()

    def _now(self) -> tuple[dict[str, bytes], int]:
        return randomness.digests(), MADE.number + randomness.made()


BEFORE: list[Before] = []


def innocent(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, whose random numbers hide nothing."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        if not BEFORE or by_us(2):  # canaries have random numbers of their own
            return function(*arguments, **named)
        with BEFORE[0].apart():
            return function(*arguments, **named)

    return call


def begin() -> None:
    """Torch was imported."""
    if not BEFORE:
        BEFORE.append(Before())
        BEFORE[0].attach()


def inside() -> bool:
    """Within a function whose random numbers hide nothing: first weights, a loader, a permutation."""
    return any(one.depth for one in BEFORE)


def apart() -> AbstractContextManager[None]:
    """What is drawn meanwhile is told otherwise."""
    return BEFORE[0].apart() if BEFORE else nullcontext()


def noise_before() -> bool:
    """May the script have drawn noise by now? It is asked when the first training begins."""
    if not BEFORE:
        return True
    BEFORE[0].look()
    BEFORE[0].over = True
    return BEFORE[0].drew


def forgive() -> None:
    """What was drawn since the last look is declared, and accounted for."""
    for before in BEFORE:
        before.settle()


def look_on(look: Callable[[], object], settle: Callable[[], object]) -> None:
    """Tell these of innocent random numbers from now on: before, and after them."""
    for before in BEFORE:
        before.look_later, before.settle_later = look, settle
