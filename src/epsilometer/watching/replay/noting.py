"""Numpy's generators that a script makes, noted as they are made. This imports numpy only: it comes before torch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from epsilometer.watching.replay.entropy import importing

_MOST = 128  # generators that are followed
_DESCRIBING = "scipy.stats."  # makes dozens while it is imported, none of which anybody draws from
_NOBODY = 2  # references to a generator that nobody else has: the table's, and that of who asks


class Made:
    """Those that somebody still has, by number."""

    def __init__(self) -> None:
        self._all: dict[int, Any] = {}
        self.number = 0  # of those that were made, but for those of packages while they are imported
        self._last = 0
        self.lost = False  # there were more than are followed
        self.own: Callable[[Any], Any] = lambda made: made  # what the script gets

    def note(self, made: Any) -> Any:
        if by_us(3):
            return made
        of_package = importing()
        if of_package and maker(3).startswith(_DESCRIBING):
            return made
        made = self.own(made)
        self.number += not of_package
        self._last += 1
        if len(self._all) >= _MOST:
            self.bits()
        if len(self._all) < _MOST:
            self._all[self._last] = made
        else:
            self.lost = True
        return made

    def bits(self) -> dict[int, Any]:
        """Their bit generators, which have the states."""
        for number in list(self._all):
            if sys.getrefcount(self._all[number]) <= _NOBODY:
                del self._all[number]
        return {number: bits_of(made) for number, made in self._all.items()}


MADE = Made()


def attach(module: Any, _: Any) -> None:
    """Numpy was imported."""
    module.random.Generator = noting(module.random.Generator, MADE.note)
    module.random.RandomState = noting(module.random.RandomState, MADE.note)
    make = module.random.default_rng

    def default_rng(seed: Any = None) -> np.random.Generator:
        made: np.random.Generator = MADE.note(make(seed))
        return made

    module.random.default_rng = default_rng


def by_us(depth: int) -> bool:
    """Is the function so far up Epsilometer's? Its coins and canaries are no part of the script."""
    return maker(depth + 1).startswith("epsilometer.")


def maker(depth: int) -> str:
    """The module of the function so far up."""
    return str(sys._getframe(depth).f_globals.get("__name__", ""))


def bits_of(made: Any) -> Any:
    """Of a Generator, or of a RandomState."""
    return getattr(made, "bit_generator", None) or made._bit_generator


def noting(original: Any, note: Callable[[Any], Any]) -> Any:
    """A class in the place of another that makes objects of that one, and says so."""

    class Meta(type(original)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, original)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, original)

    class Noting(original, metaclass=Meta):  # type: ignore[misc]
        def __new__(cls, *arguments: Any, **named: Any) -> Any:
            return note(original(*arguments, **named))

    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(Noting, name, getattr(original, name))
    return Noting
