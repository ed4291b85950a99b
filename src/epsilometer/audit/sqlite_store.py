"""A store on disk: one SQLite file with a write-ahead log, safe against killed processes and full disks."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from epsilometer.audit.lock import DriverLock, is_held
from epsilometer.audit.plan import Plan
from epsilometer.audit.store import StoredRun, StoreError, now
from epsilometer.audit.trial import Results, Trial
from epsilometer.claims import Floats
from epsilometer.errors import InvalidInput
from epsilometer.plain import plain

APPLICATION = 0x45505349  # "EPSI", in SQLite's header: this file is ours
SCHEMA_VERSION = 1
_DAMAGED = "move it away, or put a copy back"

# Checksums, because a flipped bit in a score or a verdict would go unnoticed by SQLite.
_SCHEMA = f"""
PRAGMA journal_mode = WAL;
BEGIN;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    plan TEXT NOT NULL,
    claimed_epsilon REAL NOT NULL,
    begun TEXT NOT NULL,
    seconds REAL NOT NULL DEFAULT 0,
    conclusion TEXT,
    checksum INTEGER
);
CREATE TABLE trials (
    run INTEGER NOT NULL REFERENCES runs (id),
    world INTEGER NOT NULL,
    number INTEGER NOT NULL,
    scores BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (run, world, number)
) WITHOUT ROWID;
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
        self._lock: DriverLock | None = DriverLock(_lock_of(self.path))
        self.is_new = not self.path.exists() or self.path.stat().st_size == 0
        try:
            if self.is_new:
                self._create()
            self._check()
            with self._explained():
                self._connection = self._connect("mode=rw")
                self._connection.execute("PRAGMA synchronous = FULL")
            self._file = os.stat(self.path)
        except BaseException:
            self.close()
            raise

    @classmethod
    def reading(cls, path: Path | str) -> Self:
        """The same without the right to write."""
        store = cls.__new__(cls)
        store.path, store._lock, store.is_new = Path(path), None, False
        store._connection = None
        store._check()
        with store._explained():
            store._connection = store._connect(store._read_only())
        return store

    @property
    def is_driven(self) -> bool:
        """Whether some process has it open to write."""
        return is_held(_lock_of(self.path))

    def begin(self, plan: Plan) -> StoredRun:
        key = plan.fingerprint()
        if not any(run.fingerprint == key for run in self.runs()):
            row = (key, plan.to_json(), plan.claimed_epsilon, now())
            with self._writing() as connection:
                connection.execute(
                    "INSERT INTO runs (fingerprint, plan, claimed_epsilon, begun) VALUES (?, ?, ?, ?)", row
                )
        return next(run for run in self.runs() if run.fingerprint == key)

    def runs(self) -> list[StoredRun]:
        query = """SELECT fingerprint, plan, claimed_epsilon, begun, seconds, conclusion, checksum,
                   (SELECT COUNT(*) FROM trials WHERE run = runs.id) FROM runs ORDER BY id"""
        found = []
        with self._explained():
            for key, text, claimed, begun, seconds, conclusion, checksum, trials in self._open.execute(query):
                if hashlib.sha256(text.encode()).hexdigest() != key:
                    raise self._damaged("the stored plan is not the one that was begun")
                if conclusion is not None and zlib.crc32(conclusion.encode()) != checksum:
                    raise self._damaged("the stored conclusion is not what was written")
                concluded = None if conclusion is None else json.loads(conclusion)
                found.append(StoredRun(key, json.loads(text), claimed, trials, begun, seconds, concluded))
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
        with self._writing() as connection:
            (run,) = connection.execute("SELECT id FROM runs WHERE fingerprint = ?", (fingerprint,)).fetchone()
            rows = []
            for (world, number), scores in results.items():
                content = np.ascontiguousarray(scores, "<f8").tobytes()
                rows.append((run, world, number, content, _checksum(fingerprint, world, number, content)))
            connection.executemany("INSERT OR IGNORE INTO trials VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute("UPDATE runs SET seconds = seconds + ? WHERE id = ?", (float(seconds), run))

    def conclude(self, fingerprint: str, conclusion: Mapping[str, Any]) -> None:
        text = json.dumps(plain(dict(conclusion)))
        row = (text, zlib.crc32(text.encode()), fingerprint)
        with self._writing() as connection:
            connection.execute("UPDATE runs SET conclusion = ?, checksum = ? WHERE fingerprint = ?", row)

    def close(self) -> None:
        self._disconnect()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def discard(self) -> None:
        """Remove the file, which nobody else can have begun to use: the lock is still held."""
        assert self._lock is not None
        self._disconnect()
        for suffix in ("", "-wal", "-shm"):
            self._beside(suffix).unlink(missing_ok=True)
        self._lock.release(remove=True)
        self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------- the file
    @property
    def _open(self) -> sqlite3.Connection:
        assert self._connection is not None
        return self._connection

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)

    def _connect(self, how: str, path: Path | None = None) -> sqlite3.Connection:
        return sqlite3.connect(f"{(path or self.path).resolve().as_uri()}?{how}", uri=True, timeout=10.0)

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):  # a full disk: the log stays beside the file, and is read the next time
                self._connection.close()
            self._connection = None

    def _create(self) -> None:
        """Made beside its place and moved there: whoever looks sees no store, or a whole one."""
        fresh = self._beside(".new")
        for suffix in ("", "-wal", "-shm"):
            fresh.with_name(fresh.name + suffix).unlink(missing_ok=True)
        with self._explained():
            with closing(self._connect("mode=rwc", fresh)) as connection:
                connection.executescript(_SCHEMA)
            os.replace(fresh, self.path)

    def _read_only(self) -> str:
        """A file that nobody writes to can be read without leaving traces beside it."""
        quiet = not self._beside("-wal").exists() and (self._lock is not None or not self.is_driven)
        return "mode=ro&immutable=1" if quiet else "mode=ro"

    def _check(self) -> None:
        """Whether the file is ours and whole, found out without writing to it."""
        if not self.path.is_file():
            raise InvalidInput("store", str(self.path), "an existing file", "check the path")
        with self._explained(), closing(self._connect(self._read_only())) as connection:
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

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all or nothing."""
        if not self.path.exists() or not os.path.samestat(self._file, os.stat(self.path)):
            raise StoreError(f"{self.path} was moved or removed while it was in use; put it back, or start again")
        try:
            with self._open as connection:
                yield connection
        except sqlite3.Error as error:
            raise StoreError(
                f"cannot write to {self.path} ({error}); what was stored before is safe: "
                "make room on the disk and run the same command again"
            ) from None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's complaints in our words: damage, or something that may pass."""
        try:
            yield
        except sqlite3.Error as error:
            if (getattr(error, "sqlite_errorname", None) or "SQLITE_CORRUPT").startswith(_IS_DAMAGE):
                raise self._damaged(str(error)) from None
            raise StoreError(f"cannot open {self.path} ({error}); what it holds is safe: try again later") from None
        except OSError as error:
            raise StoreError(f"cannot open {self.path} ({error.strerror})") from None
        except InvalidInput:
            raise
        except (TypeError, AttributeError, ValueError) as error:  # values that we never wrote
            raise self._damaged(str(error)) from None

    def _damaged(self, how: str) -> InvalidInput:
        text = f"an intact store of Epsilometer's ({' '.join(how.split())})"
        return InvalidInput("store", str(self.path), text, _DAMAGED)


_IS_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_MISMATCH", "SQLITE_FORMAT")


def _lock_of(path: Path) -> Path:
    """One lock for one file, whatever links lead to it."""
    resolved = path.resolve()
    return resolved.with_name(resolved.name + ".lock")


def _checksum(fingerprint: str, world: int, number: int, scores: bytes) -> int:
    return zlib.crc32(scores, zlib.crc32(f"{fingerprint}/{world}/{number}".encode()))
