"""What is to be done before a watched process ends; its exit code stays the script's."""

from __future__ import annotations

import atexit
import functools
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

_ACTS: list[Callable[[], None]] = []  # before os._exit


def at_end(act: Callable[[], None]) -> None:
    """Also of a child of multiprocessing, and where `os._exit` is called: both leave without `atexit`. `act` may be
    called twice, and in forked copies of the process."""
    atexit.register(_quietly, act)
    if not _ACTS:
        _before_leaving()
    _ACTS.append(act)
    if "multiprocessing.util" in sys.modules:
        from multiprocessing.util import Finalize

        Finalize(None, _quietly, args=(act,), exitpriority=0)


def _quietly(act: Callable[[], None]) -> None:
    with suppress(Exception):
        act()


def _before_leaving() -> None:
    original = os._exit

    @functools.wraps(original)
    def leave(status: int) -> NoReturn:
        for act in _ACTS:
            _quietly(act)
        original(status)

    os._exit = leave
