"""A store on disk: one SQLite file with a write-ahead log, safe against killed processes and full disks."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from epsilometer.audit.plan import Plan
from epsilometer.audit.store import StoredRun, StoreError, now
from epsilometer.audit.trial import Results, Trial
from epsilometer.claims import Floats
from epsilometer.errors import InvalidInput
from epsilometer.plain import plain

APPLICATION = 0x45505349  # "EPSI", in SQLite's header: this file is ours
SCHEMA_VERSION = 1
_DAMAGED = "move it away, or put a copy back"

# A checksum for every result: a flipped bit in a score would go unnoticed by SQLite, and change a verdict.
_SCHEMA = f"""
BEGIN;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    plan TEXT NOT NULL,
    begun TEXT NOT NULL,
    seconds REAL NOT NULL DEFAULT 0,
    conclusion TEXT
);
CREATE TABLE trials (
    run INTEGER NOT NULL REFERENCES runs (id),
    world INTEGER NOT NULL,
    number INTEGER NOT NULL,
    scores BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (run, world, number)
) WITHOUT ROWID;
CREATE TABLE driver (process INTEGER NOT NULL, host TEXT NOT NULL, since TEXT NOT NULL);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""


class SqliteStore:
    """Results in the file `path`, which is made if it does not exist. Only one driver can have it open.

    A file that is damaged, foreign or of a newer version is refused and left as it is. `SqliteStore.reading(path)`
    opens it for reading, also while a driver is at work.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None
        self._has_written = self._announced = False
        self._lock: sqlite3.Connection | None = self._lock_out_other_drivers()
        try:
            if not self.path.exists() or self.path.stat().st_size == 0:
                with self._explained(), closing(self._connect("rwc")) as fresh:
                    fresh.executescript(_SCHEMA)
            self._check()
            with self._explained():
                self._connection = self._connect("rw")
                self._connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            self.close()
            raise

    @classmethod
    def reading(cls, path: Path | str) -> Self:
        """The same without the right to write."""
        store = cls.__new__(cls)
        store.path, store._lock, store._has_written = Path(path), None, False
        store._check()
        with store._explained():
            store._connection = store._connect("ro")
        return store

    def begin(self, plan: Plan) -> StoredRun:
        key, text = plan.fingerprint(), plan.to_json()
        if not any(run.fingerprint == key for run in self.runs()):
            with self._writing() as connection:
                connection.execute("INSERT INTO runs (fingerprint, plan, begun) VALUES (?, ?, ?)", (key, text, now()))
        return next(run for run in self.runs() if run.fingerprint == key)

    def runs(self) -> list[StoredRun]:
        query = """SELECT fingerprint, plan, begun, seconds, conclusion,
                   (SELECT COUNT(*) FROM trials WHERE run = runs.id) FROM runs ORDER BY id"""
        with self._explained():
            rows = self._open.execute(query).fetchall()
        found = []
        for fingerprint, text, begun, seconds, conclusion, trials in rows:
            if hashlib.sha256(text.encode()).hexdigest() != fingerprint:
                raise self._damaged("the stored plan is not the one that was begun")
            with self._explained():
                concluded = None if conclusion is None else json.loads(conclusion)
            found.append(StoredRun(fingerprint, json.loads(text), trials, begun, seconds, concluded))
        return found

    def results(self, fingerprint: str) -> dict[Trial, Floats]:
        query = """SELECT world, number, scores, checksum FROM trials
                   WHERE run = (SELECT id FROM runs WHERE fingerprint = ?) ORDER BY number, world"""
        found = {}
        with self._explained():
            for world, number, scores, checksum in self._open.execute(query, (fingerprint,)):
                if _checksum(fingerprint, world, number, scores) != checksum:
                    raise self._damaged(f"the result of trial {number} of world {world} is not what was written")
                found[world, number] = np.frombuffer(scores, "<f8").astype(np.float64)
        return found

    def add(self, fingerprint: str, results: Results, seconds: float) -> None:
        rows = []
        for (world, number), scores in results.items():
            content = np.ascontiguousarray(scores, "<f8").tobytes()
            rows.append((fingerprint, world, number, content, _checksum(fingerprint, world, number, content)))
        with self._writing() as connection:
            if not self._announced:
                connection.execute("DELETE FROM driver")
                me = (os.getpid(), socket.gethostname(), now())
                connection.execute("INSERT INTO driver VALUES (?, ?, ?)", me)
            connection.executemany(
                """INSERT OR IGNORE INTO trials
                   VALUES ((SELECT id FROM runs WHERE fingerprint = ?), ?, ?, ?, ?)""",
                rows,
            )
            connection.execute(
                "UPDATE runs SET seconds = seconds + ? WHERE fingerprint = ?", (float(seconds), fingerprint)
            )
        self._announced = True

    def conclude(self, fingerprint: str, conclusion: Mapping[str, Any]) -> None:
        text = json.dumps(plain(dict(conclusion)))
        with self._writing() as connection:
            connection.execute("UPDATE runs SET conclusion = ? WHERE fingerprint = ?", (text, fingerprint))

    def close(self) -> None:
        if self._connection is not None and self._has_written:
            with suppress(sqlite3.Error):  # one plain file, that can be copied; not while somebody is reading
                self._connection.execute("PRAGMA journal_mode = DELETE")
        for connection in (self._connection, self._lock):
            if connection is not None:
                with suppress(sqlite3.Error):  # a full disk: the log stays beside the file, and is read the next time
                    connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def _open(self) -> sqlite3.Connection:
        assert self._connection is not None
        return self._connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(f"{self.path.resolve().as_uri()}?mode={mode}", uri=True, timeout=10.0)

    def _check(self) -> None:
        """Whether the file is ours and whole, found out without writing to it."""
        if not self.path.is_file():
            raise InvalidInput("store", str(self.path), "an existing file", "check the path")
        with self._explained(), closing(self._connect("ro")) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if application != APPLICATION:
                raise InvalidInput(
                    "store", str(self.path), "a store of Epsilometer's, not another program's database",
                    "name another directory",
                )  # fmt: skip
            if version > SCHEMA_VERSION:
                raise InvalidInput(
                    "store", str(self.path), f"a store of version {SCHEMA_VERSION} at most (this is {version})",
                    "update epsilometer",
                )  # fmt: skip
            (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                raise self._damaged(state)

    def _lock_out_other_drivers(self) -> sqlite3.Connection:
        """A lock that the system gives back when this process ends, however it ends."""
        lock = None
        try:
            lock = sqlite3.connect(f"{self.path}.lock", timeout=0.0, isolation_level=None)
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if lock is not None:
                lock.close()
            if "locked" in str(error):
                raise StoreError(self._busy()) from None
            expected = f"a file that can be written to ({error})"
            raise InvalidInput("store", str(self.path), expected, "check the directory's permissions") from None
        return lock

    def _busy(self) -> str:
        who = "another process"
        with suppress(sqlite3.Error, InvalidInput, TypeError), closing(self._connect("ro")) as connection:
            process, host, since = connection.execute("SELECT process, host, since FROM driver").fetchone()
            who = f"process {process} on {host} (since {since})"
        return f"{self.path} is being written to by {who}: wait for it or stop it, or name another directory"

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all or nothing. A file that turns out to be damaged before the first is not touched."""
        try:
            if not self._has_written:
                self._open.execute("PRAGMA journal_mode = WAL")
                self._has_written = True
            with self._open as connection:
                yield connection
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._open.rollback()
            raise StoreError(
                f"cannot write to {self.path} ({error}); what was stored before is safe: "
                "make room on the disk and run the same command again"
            ) from None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's complaints in our words."""
        try:
            yield
        except (sqlite3.Error, json.JSONDecodeError, UnicodeError) as error:
            raise self._damaged(str(error)) from None

    def _damaged(self, how: str) -> InvalidInput:
        text = f"an intact store of Epsilometer's ({' '.join(how.split())})"
        return InvalidInput("store", str(self.path), text, _DAMAGED)


def _checksum(fingerprint: str, world: int, number: int, scores: bytes) -> int:
    return zlib.crc32(scores, zlib.crc32(f"{fingerprint}/{world}/{number}".encode()))
