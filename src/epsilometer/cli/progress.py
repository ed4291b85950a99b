"""How far an audit is, on stderr: a bar in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from epsilometer.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from epsilometer.runs import Snapshot


_SECONDS = 30.0  # between two lines


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[Snapshot], None] | None]:
    """Who is told how far the audit is."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar() as update:
            yield update
    else:
        yield _Lines()


@contextmanager
def _bar() -> Iterator[Callable[[Snapshot], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    described, state = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[state]}"))
    columns = (described, BarColumn(), MofNCompleteColumn(), state)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("trials", total=None, state="")
        yield lambda now: bar.update(
            task, description=now.adversary, completed=now.done, total=now.total, state=_state(now).removeprefix(", ")
        )


@contextmanager
def broken_pipes_are_errors() -> Iterator[None]:
    """While trials are played, or clients served: who leaves at the other end breaks a pipe, and not us."""
    if not hasattr(signal, "SIGPIPE"):
        yield
        return
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, before)


def downloads(quiet: bool) -> Callable[[str, int, int | None], None] | None:
    """Who is told how far a download is: a line that is written over in a terminal, a line at its end elsewhere."""
    if quiet:
        return None

    def tell(name: str, done: int, total: int | None) -> None:
        finished = done == total
        size = f"{done / 1e6:.1f} MB" if total is None else f"{done / 1e6:.1f} of {total / 1e6:.1f} MB"
        if sys.stderr.isatty():
            with suppress(OSError, ValueError):
                print(f"\rdownloading {name}: {size}", end="\n" if finished else "", file=sys.stderr, flush=True)
        elif finished:
            say(f"downloaded {name}: {size}")

    return tell


class _Lines:
    """A line at every tenth of the trials, and at least every half minute."""

    def __init__(self) -> None:
        self._tenths, self._when = 0, time.monotonic()

    def __call__(self, now: Snapshot) -> None:
        if now.judging:
            if self._tenths:  # of a run that was finished before, nothing was said so far
                say(f"{now.adversary}: {now.done} trials{_state(now)}")
            return
        if now.starting:  # whatever may still go wrong then is told in one line
            return
        tenths = now.done * 10 // now.total
        if tenths != self._tenths or time.monotonic() - self._when > _SECONDS:
            self._tenths, self._when = tenths, time.monotonic()
            say(f"{now.adversary}: {now.done} of {now.total} trials{_state(now)}")


def _state(now: Snapshot) -> str:
    from epsilometer.report import duration

    if now.judging:
        return ", judging what they show …"
    if now.starting:
        return f", {now.starting} …"
    parts = [] if now.rate is None else [f"{now.rate:.3g}/s"]
    if now.seconds_left is not None and now.done < now.total:
        parts.append(f"{duration(now.seconds_left)} left")
    if now.found and now.done < now.total:
        parts.append(f"{now.found} after {now.found_at} trials")
    return "".join(f", {part}" for part in parts)
