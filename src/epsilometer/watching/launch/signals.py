"""Signals, passed on to the watched command once, and only if it has not got them anyway.

Ctrl-C in a terminal, or a signal to a whole process group, reaches the command directly. What somebody sends to the
program alone comes to this process through its supervisor, which is its parent, and only that is passed on.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PASSED_ON = (signal.SIGINT, signal.SIGTERM)
_TOGETHER = 1.0  # seconds within which a direct signal and the supervisor's are one
_WAIT = 0.1  # for a direct signal to come after the supervisor's


class Switchboard:
    """Waits for signals and for time to pass."""

    def __init__(self, mask: set[signal.Signals]) -> None:
        self.mask = mask  # what the command is to have
        self._direct: dict[int, float] = {}

    def wait(self, seconds: float, process: int) -> None:
        """Until time is over, a child has ended, or a signal has come."""
        come = signal.sigtimedwait((*_PASSED_ON, signal.SIGCHLD), seconds)
        if come is None or come.si_signo == signal.SIGCHLD:
            return
        if come.si_pid != os.getppid() or come.si_code > 0:  # from the terminal (the kernel), or to the whole group
            self._direct[come.si_signo] = time.monotonic()
            return
        late = signal.sigtimedwait((come.si_signo,), _WAIT)
        if late is not None or time.monotonic() - self._direct.get(come.si_signo, -_TOGETHER) < _TOGETHER:
            self._direct[come.si_signo] = time.monotonic()
            return
        with suppress(ProcessLookupError):
            os.kill(process, come.si_signo)

    def interrupted(self) -> bool:
        """Wait a little; does somebody want the end, now that the command has ended?"""
        come = signal.sigtimedwait((*_PASSED_ON, signal.SIGCHLD), _WAIT)
        return come is not None and come.si_signo != signal.SIGCHLD


@contextmanager
def switchboard() -> Iterator[Switchboard]:
    """Meanwhile signals are held until somebody waits for them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (*_PASSED_ON, signal.SIGCHLD))
    try:
        yield Switchboard({one for one in before if isinstance(one, signal.Signals)})
    finally:
        while signal.sigtimedwait((*_PASSED_ON, signal.SIGCHLD), 0) is not None:
            pass  # meant for the command, which has ended
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
