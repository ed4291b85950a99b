"""What is to be done before a watched process ends; its exit code stays the script's."""

from __future__ import annotations

import atexit
import functools
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

_ACTS: list[Callable[[], None]] = []  # before os._exit, and before a pool ends its workers
_BUSY: list[Callable[[], None]] = []  # under way
_ASKED: list[int] = []  # signals that came meanwhile


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
        _before_a_pool_ends()


def _before_a_pool_ends() -> None:
    """Pools end their workers by SIGTERM, which leaves no time to say anything; a handler of the script's own stays."""
    from multiprocessing import parent_process

    if parent_process() is None or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def leave(number: int, _: object) -> None:
        if _BUSY:  # it leaves when that is done
            _ASKED.append(number)
            return
        for act in _ACTS:
            _quietly(act)
        _ASKED.append(number)
        _leave_if_asked()

    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, leave)


def _quietly(act: Callable[[], None]) -> None:
    _BUSY.append(act)
    try:
        with suppress(Exception):
            act()
    finally:
        _BUSY.pop()
    if not _BUSY:
        _leave_if_asked()


def _leave_if_asked() -> None:
    """As the signal would have made it."""
    for number in _ASKED:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _before_leaving() -> None:
    original = os._exit

    @functools.wraps(original)
    def leave(status: int) -> NoReturn:
        for act in _ACTS:
            _quietly(act)
        original(status)

    os._exit = leave
