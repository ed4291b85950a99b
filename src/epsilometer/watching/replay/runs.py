"""All runs of a replay, as whoever started the command sees them: begun together, ended together, and taken away."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from epsilometer import validate
from epsilometer.errors import InvalidInput
from epsilometer.watching.launch.environment import with_hook
from epsilometer.watching.launch.table import write_table
from epsilometer.watching.replay.control import ENDED, Control, create
from epsilometer.watching.replay.copies import command_in, private_place, variables
from epsilometer.watching.replay.files import Written
from epsilometer.watching.replay.merge import tell
from epsilometer.watching.replay.roles import FIXED, NEGATED, NOISE, OTHERS, PLACEHOLDER, READ, REFERENCE, ROTATING
from epsilometer.watching.settings import MODEL, Replaying, Settings

MOST = 16  # neighbours
_SHM = Path("/dev/shm")
_ROOM = 1 << 30  # bytes that shared memory should have
_GRACE = 60.0  # seconds for the others to come to their end, and as long again as the reference took


@dataclass(frozen=True)
class Run:
    """One of them."""

    replaying: Replaying
    place: Path
    command: list[str]
    environment: dict[str, str]
    recordings: Path

    @property
    def start(self) -> tuple[list[str], dict[str, str], Path]:
        """Command, environment and directory."""
        return self.command, self.environment, self.place / "work"


class Runs:
    """The reference is run by whoever watches; the others are ours."""

    def __init__(self, runs: Sequence[Run], settings: Settings) -> None:
        self._runs, self._settings = runs, settings
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._codes: dict[int, int] = {}
        self._control = Control(Path(runs[0].replaying.meeting))
        self._begun = time.monotonic()
        self._written = {one.replaying.run: Written(one.place / "work") for one in runs}

    def __str__(self) -> str:
        return (
            f"{len(self._runs)} runs in lockstep, in private copies of the working directory: they leave nothing, and "
            "no model that may be released"
        )

    @property
    def reference(self) -> Run:
        return self._runs[0]

    @property
    def settings(self) -> Settings:
        """Of the reference."""
        return replace(self._settings, replaying=self.reference.replaying)

    def start(self, mask: set[Any]) -> None:
        """The others, beside the reference."""
        self._begun = time.monotonic()
        for run in self._runs[1:]:
            settings = replace(self._settings, canaries=0, replaying=run.replaying)
            settings.write(run.recordings)
            write_table(run.recordings, replace(settings, canaries=1))  # as if it were watched
            with open(run.place / "output", "wb") as output:
                try:
                    self._processes[run.replaying.run] = subprocess.Popen(
                        run.command,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        cwd=run.place / "work",
                        env=with_hook(run.environment, run.recordings),
                        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask),  # noqa: PLW1509
                    )
                except OSError:  # as the reference cannot be started, which is said
                    self._control.set_status(run.replaying.run, ENDED)

    def look(self) -> None:
        """Nobody is to wait for those that have ended."""
        for number, process in self._processes.items():
            if process.poll() is not None:
                self._control.set_status(number, ENDED)

    def finish(self, code: int, interrupted: Callable[[], bool]) -> None:
        """The reference has ended: give the others a while, and end them. `interrupted` waits, and says whether
        somebody wants the end now."""
        self._control.set_status(0, ENDED)
        until = time.monotonic() + _GRACE + (time.monotonic() - self._begun)
        while any(one.poll() is None for one in self._processes.values()):
            if interrupted() or time.monotonic() > until:
                break
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
        self._codes = {0: code, **{run: process.wait() for run, process in self._processes.items()}}

    def tell(self, recordings: Path) -> None:
        """What came of it, to the recording of the reference."""
        written = {run: of.now() for run, of in self._written.items()}
        tell(
            Path(self.reference.replaying.meeting),
            [one.replaying for one in self._runs],
            recordings,
            written,
            self._codes,
            self._settings.declared,
        )


@contextmanager
def lockstep(command: Sequence[str], neighbours: int, settings: Settings, out: Path | None) -> Iterator[Runs | None]:
    """Runs of this command, so many of them with a record changed for good; none if there are to be no neighbours."""
    validate.whole("neighbours", neighbours, least=0, most=MOST)
    if not neighbours:
        yield None
        return
    if settings.place == MODEL:
        raise InvalidInput("canaries", MODEL, "extra, with neighbours", "canaries in the model change its sums")
    root = Path(tempfile.mkdtemp(prefix="epsilometer-replay-"))
    meeting = _meeting(root)
    try:
        create(meeting)
        declared = settings.declared is not None
        yield Runs(_runs(command, neighbours, root, meeting, out, by_hand=declared), settings)
    finally:
        for place in (root, meeting):
            shutil.rmtree(place, ignore_errors=True)


def _runs(
    command: Sequence[str], neighbours: int, root: Path, meeting: Path, out: Path | None, *, by_hand: bool = False
) -> list[Run]:
    named = any("{neighbour}" in word for word in command)
    # Of the tool's own choice every second one is changed where it is read; of a loop by hand all, which may have no
    # data set that is known.
    kinds = [PLACEHOLDER if named else READ if by_hand or at % 2 else FIXED for at in range(neighbours)]
    fixed = [(kind, number) for number, kind in enumerate(kinds, 1)]
    roles = [(REFERENCE, 0), (NOISE, 0), (ROTATING, 0), (NEGATED if by_hand else OTHERS, 0), *fixed]
    salt, hash_seed = secrets.token_hex(16), secrets.randbelow(2**32)
    runs = []
    for run, (role, number) in enumerate(roles):
        replaying = Replaying(str(meeting), run, len(roles), role, salt, number)
        place = private_place(root, run, out)
        recordings = place / "recordings"
        recordings.mkdir(mode=0o700)
        words = command_in(command, place, number if role == PLACEHOLDER else 0)
        runs.append(Run(replaying, place, words, variables(os.environ, place, hash_seed, len(roles)), recordings))
    return runs


def _meeting(root: Path) -> Path:
    """In memory, where there is enough."""
    with suppress(OSError):
        free = os.statvfs(_SHM)
        if free.f_bavail * free.f_frsize >= _ROOM and sys.platform == "linux":
            return Path(tempfile.mkdtemp(prefix="epsilometer-replay-", dir=_SHM))
    place = root / "meeting"
    place.mkdir(mode=0o700)
    return place
