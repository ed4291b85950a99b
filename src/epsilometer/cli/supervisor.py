"""The program is two processes: one that works, and its parent, which answers for how that ended.

Exit code 1 accuses. Libraries end a process with 1 whenever they like (Ray if its node is gone, OpenBLAS if there is no
memory), so the parent believes only a code that the working process has reported over a pipe. It imports nothing of
weight, and forks: that costs milliseconds.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from epsilometer.cli.output import BAD_INPUT, INTERNAL_ERROR, INTERRUPTED, say
from epsilometer.cli.streams import open_closed_streams, set_stdout_apart

_PATIENCE = 10.0  # seconds to stop in, after which one more Ctrl-C ends the work at once
_DEAF = 60  # seconds after which work that does not stop is ended without one more
_LEAST_MEMORY = 384  # MiB of address space; with less, OpenBLAS tries for ever, or sends SIGINT to its own process
_SHOW_CURSOR = "\x1b[?25h"  # a progress bar hides it
_SET_PARENT_DEATH_SIGNAL = 1  # of Linux' prctl


def main() -> None:
    """Run the program; no end but a reported verdict is exit code 1."""
    open_closed_streams()
    if hasattr(os, "fork"):
        sys.exit(_too_little_memory() or _supervise(_program))
    sys.exit(_program())  # pragma: no cover


def _too_little_memory() -> int:
    """The exit code where no library would work, else 0."""
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or limit >= _LEAST_MEMORY << 20:
        return 0
    say(f"epsilometer: ulimit -v = {limit >> 10}: expected at least {_LEAST_MEMORY << 10} (KiB); allow for more memory")
    return BAD_INPUT


def _program() -> int:
    set_stdout_apart()
    if hasattr(signal, "SIGPIPE"):  # a reader who goes away, e.g. `| head`, ends us quietly, as it does other tools
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    from epsilometer.cli.app import run

    return run()


def _supervise(program: Callable[[], int]) -> int:
    """The exit code of `program`, played by a child."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    stops = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # a shell's background job is not to hear Ctrl-C
        stops.append(signal.SIGINT)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stops)  # until both know what to do with them
    parent = os.getpid()
    try:
        child = os.fork()
    except OSError as error:
        say(f"epsilometer: internal error (no process can be started: {error.strerror})")
        return INTERNAL_ERROR
    if child == 0:
        os.close(reading)
        _work(program, parent, stops, before, writing)
    os.close(writing)
    stopper = _Stopper(child)
    for number in stops:
        signal.signal(number, stopper)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    _, status = os.waitpid(child, 0)
    try:
        reported = os.read(reading, 1)
    except BlockingIOError:  # a process of its own has the other end, and nothing was said
        reported = b""
    return reported[0] if reported else _unexplained(os.waitstatus_to_exitcode(status), bool(stopper.first))


class _Stopper:
    """Passes on what the parent is told to do. A terminal tells the child too, which listens once."""

    def __init__(self, child: int) -> None:
        self._child = child
        self.first = 0.0  # when it was; never, so far

    def __call__(self, number: int, _: Any) -> None:
        now = time.monotonic()
        if not self.first and "--" not in sys.argv:  # a command of the user's own may take its time
            signal.signal(signal.SIGALRM, self._end)
            signal.alarm(_DEAF)
        self.first = self.first or now
        self._send(signal.SIGKILL if now - self.first > _PATIENCE else number)

    def _end(self, *_: Any) -> None:
        """Compiled code hears nothing until it is done, if ever; `timeout` asks once."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._child, number)


def _unexplained(code: int, stopped: bool) -> int:
    """What to make of a child that ended without a word."""
    if code == -signal.SIGPIPE:  # nobody reads on: end as other tools do
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    if sys.stderr.isatty():
        sys.stderr.write(_SHOW_CURSOR)
    go_on = _how_to_continue(sys.argv[1:])
    if stopped:
        say(f"epsilometer: interrupted{go_on}")
        return INTERRUPTED
    say(f"epsilometer: internal error (the process that worked {_how_it_ended(code)}, and gave no verdict){go_on}")
    return INTERNAL_ERROR


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    hint = ": out of memory?" if code == -signal.SIGKILL else ""
    return f"was ended by {signal.Signals(-code).name}{hint}"


def _how_to_continue(arguments: Sequence[str]) -> str:
    if "--" in arguments:  # a command of the user's own, which is not continued
        return ""
    if not any(argument == "--out" or argument.startswith("--out=") for argument in arguments):
        return ""
    return f"; finished trials are stored; to continue: {shlex.join(['epsilometer', *arguments])}"


def _work(program: Callable[[], int], parent: int, stops: Sequence[int], mask: set[Any], report: int) -> NoReturn:
    """What the child does: it works, reports its exit code, and ends."""
    for number in stops:
        signal.signal(number, _interrupt_once)
    _end_with(parent)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        code = program()
        _ignore_stops()
    except KeyboardInterrupt:  # before the program could hear it, or after its end
        say("epsilometer: interrupted")
        code = INTERRUPTED
    os.write(report, bytes([code]))
    sys.exit(code)


def _interrupt_once(*_: Any) -> None:
    """The first signal stops the work. Others must not stop the stopping: it kills workers and closes the store."""
    _ignore_stops()
    raise KeyboardInterrupt


def _ignore_stops() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _end_with(parent: int) -> None:
    """A parent that is killed cannot tell anybody; what it would answer for must not go on."""
    if os.uname().sysname == "Linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # it was killed meanwhile
            os._exit(INTERNAL_ERROR)
        return
    import threading

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(INTERNAL_ERROR)

    threading.Thread(target=watch, daemon=True).start()
