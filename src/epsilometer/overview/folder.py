"""A folder as its page shows it: every run in it and below it, looked up anew for whoever asks.

A run is asked for by a name made here, never by a path, and nothing that a link leads to is read.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

from epsilometer.errors import EpsilometerError, InvalidInput
from epsilometer.overview.listing import INTERRUPTED, RUNNING, KnownRun, small_file
from epsilometer.overview.places import PLACES, runs_at
from epsilometer.runs import RESULTS, STORE
from epsilometer.runs.directory import files_below
from epsilometer.runs.lock import is_held
from epsilometer.runs.store_file import beside, lock_of
from epsilometer.watching.settings import FILE

REPORT = "report.html"
SHOWN = (REPORT, RESULTS[0])  # files of a run that are given out
MOST_SHOWN = 32 * 2**20  # bytes of one of them
READ_SECONDS = 5.0  # for stores that nobody has read so far; the others wait for the next look
_LATER = "not read yet: there are many runs; look again"

Signature = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True)
class Entry:
    """A run, or a directory that has a report only; or what is wrong with a store."""

    key: str
    where: Path
    name: str  # the path from the folder
    files: tuple[str, ...] = ()
    run: KnownRun | None = None
    problem: str = ""


@dataclass(frozen=True)
class _Seen:
    signature: Signature
    runs: tuple[KnownRun, ...]
    problem: str


class Folder:
    """What is below a directory. Stores that have not changed since the last look are not read again."""

    def __init__(self, directory: Path) -> None:
        if not directory.is_dir():
            raise InvalidInput("DIR", str(directory), "an existing directory", "check the path")
        self.root = directory.resolve()
        self._seen: dict[Path, _Seen] = {}
        self._looking = threading.Lock()  # one look at a time: a second one would only do the same

    def entries(self) -> tuple[list[Entry], bool]:
        """All that is there now, and whether that is all."""
        with self._looking:
            found, complete = files_below(self.root, *PLACES, REPORT)
            end = time.monotonic() + READ_SECONDS
            wheres = sorted({path.parent for path in found})
            entries = [entry for where in wheres for entry in self._entries_in(where, end)]
            kept = {where / name for where in wheres for name in PLACES}
            self._seen = {path: seen for path, seen in self._seen.items() if path in kept}
            return entries, complete

    def entry(self, key: str) -> Entry | None:
        """The entry of that name, if there is one now."""
        return next((one for one in self.entries()[0] if one.key == key), None)

    def content(self, entry: Entry, file: str) -> bytes | None:
        """A file of an entry: plain, not too large, and where it seems to be."""
        if file not in SHOWN or entry.where.resolve() != entry.where:
            return None
        return small_file(entry.where / file, MOST_SHOWN)

    def _entries_in(self, where: Path, end: float) -> list[Entry]:
        store = where / STORE
        if _signature(store) is None and _is_plain(where / FILE):
            store = where / FILE
        files = tuple(name for name in SHOWN if _is_plain(where / name))
        name = str(where.relative_to(self.root))
        runs, problem = self._read(store, end) if _signature(store) is not None else ((), "")
        if runs:
            alone = files if len(runs) == 1 else ()  # a table's files belong to all of its runs
            return [Entry(self._key(where, run.fingerprint), where, name, alone, run) for run in runs] + (
                [Entry(self._key(where, "table"), where, name, files)] if files and not alone else []
            )
        return [Entry(self._key(where, ""), where, name, files, problem=problem)] if files or problem else []

    def _read(self, store: Path, end: float) -> tuple[tuple[KnownRun, ...], str]:
        if not _is_plain(store) or not (_signature(log := beside(store, "-wal")) is None or _is_plain(log)):
            return (), f"{store.name} or its log is no plain file"
        signature = tuple(_signature(path) for path in (store, log, store.with_name(RESULTS[0])))
        seen = self._seen.get(store)
        if seen is None or seen.signature != signature:
            if time.monotonic() > end:
                return (), _LATER
            try:
                seen = _Seen(signature, tuple(runs_at(store)), "")
            except EpsilometerError as error:
                seen = _Seen(signature, (), str(error))
            self._seen[store] = seen
        driven = RUNNING if is_held(lock_of(store)) else INTERRUPTED
        return tuple(
            replace(run, state=driven) if run.state in (RUNNING, INTERRUPTED) else run for run in seen.runs
        ), seen.problem

    def _key(self, where: Path, which: str) -> str:
        text = os.fsencode(where.relative_to(self.root)) + b"\0" + which.encode()
        return hashlib.sha256(text).hexdigest()[:16]


def _signature(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file does; none if there is none."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
