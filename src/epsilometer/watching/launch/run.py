"""Run a command once, unchanged, and follow what the hooks inside it record."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsilometer.watching.launch.environment import with_hook
from epsilometer.watching.launch.signals import switchboard
from epsilometer.watching.launch.table import write_table
from epsilometer.watching.recording import SUFFIX, Reader, Record
from epsilometer.watching.settings import Settings

if TYPE_CHECKING:
    from epsilometer.watching.replay.runs import Runs

_POLL = 0.2  # seconds
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as shells say it


@dataclass(frozen=True)
class NotStarted:
    """The command could not be run; the exit code that a shell would give, and why."""

    code: int
    reason: str


class Follower:
    """Reads all recordings of a directory as they grow. Whatever becomes of one, the others are read."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._readers: dict[str, Reader] = {}
        self._unreadable: set[str] = set()

    def new(self) -> list[tuple[str, Record]]:
        """Records since the last call, each with the name of its file."""
        for path in sorted(self._directory.glob(f"*{SUFFIX}")):
            if path.name not in self._readers:
                self._readers[path.name] = Reader(path)
        found = []
        for name, reader in self._readers.items():
            if name not in self._unreadable:
                try:
                    found += [(name, record) for record in reader.new()]
                except OSError:  # removed, or no file at all
                    self._unreadable.add(name)
        return found

    @property
    def damage(self) -> str:
        """What could not be read, in words; empty if all could."""
        lines = sum(reader.damaged for reader in self._readers.values())
        told = [f"{lines} lines of the recordings make no sense, and were left out"] if lines else []
        told += [f"{len(self._unreadable)} recordings cannot be read any more"] if self._unreadable else []
        return "; ".join(told)


def follow(
    command: Sequence[str],
    directory: Path,
    settings: Settings,
    stdout: int | None,
    look: Callable[[Follower], bool],
    beside: Runs | None = None,
) -> int | NotStarted:
    """The command's exit code, as a shell gives it. `look` is called now and then, and once at the end; a command of
    which it says True is asked to end. Other runs may go `beside` it."""
    settings = settings if beside is None else beside.settings
    settings.write(directory)
    write_table(directory, settings)
    follower = Follower(directory)
    with switchboard() as board:
        try:
            process = _start(command, directory, stdout, board.mask, beside)
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            reason = "command not found" if missing else f"it cannot be run ({error.strerror})"
            return NotStarted(NOT_FOUND if missing else NOT_EXECUTABLE, reason)
        if beside is not None:
            beside.start(board.mask)
        asked = False
        while process.poll() is None:
            board.wait(_POLL, process.pid)
            if beside is not None:
                beside.look()
            if look(follower) and not asked:
                asked = True
                process.send_signal(signal.SIGTERM)
        if beside is not None:
            beside.finish(process.returncode, board.interrupted)
            beside.tell(directory)
    look(follower)
    code = process.returncode
    return 128 - code if code < 0 else code


def _start(
    command: Sequence[str], directory: Path, stdout: int | None, mask: set[Any], beside: Runs | None
) -> subprocess.Popen[bytes]:
    """As a shell would: the same streams, inherited files, directory and signals; one of several runs, in its place."""
    command, environment, place = (command, os.environ, None) if beside is None else beside.reference.start

    def unblock() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    return subprocess.Popen(
        list(command),
        stdout=stdout,
        env=with_hook(environment, directory),
        cwd=place,
        close_fds=False,
        preexec_fn=unblock,  # noqa: PLW1509 (there are no threads)
    )
