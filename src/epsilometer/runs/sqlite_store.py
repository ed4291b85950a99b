"""A store on disk: one SQLite file with a write-ahead log, safe against killed processes and full disks."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import MALFORMED, InvalidInput
from epsilometer.json_values import json_values
from epsilometer.runs import store_file
from epsilometer.runs.lock import DriverLock, is_held
from epsilometer.runs.store import StoredRun, StoreError, about, now
from epsilometer.runs.store_file import (
    APPLICATION,
    PREPARED_TABLE,
    SCHEMA_VERSION,
    about_before_4,
    beside,
    lock_of,
    prepared_checksum,
    run_checksum,
    trial_checksum,
)
from epsilometer.runs.trials import Preparation, Results, Trial, Trials

_DAMAGED = "move it away, or put a copy back"
_IS_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_MISMATCH", "SQLITE_FORMAT")
_RUN = "id, fingerprint, plan, {about}, begun, seconds, conclusion"  # what a run's checksum is of


class SqliteStore:
    """Results in the file `path`, which is made if it does not exist. Only one driver can have it open.

    A file that is damaged, foreign or of a newer version is refused and left as it is. `SqliteStore.reading(path)`
    shows what it holds at the moment, also while a driver is at work, and touches nothing.
    """

    _version: int

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None
        store_file.require_ours(self.path)
        self._lock: DriverLock | None = DriverLock(lock_of(self.path))
        self.is_new = False
        try:
            self._make()
            self._checked().close()
            with self._explained():
                self._connection = store_file.connect(self.path, "mode=rw")
                self._connection.execute("PRAGMA synchronous = FULL")
            self._file = os.stat(self.path)
        except BaseException:
            self.close()
            raise

    @classmethod
    def reading(cls, path: Path | str) -> Self:
        """The same without the right to write, and as it is now."""
        store = cls.__new__(cls)
        store.path, store._lock, store.is_new = Path(path), None, False
        store._connection = store._checked()
        return store

    @property
    def is_driven(self) -> bool:
        """Whether some process has it open to write."""
        return is_held(lock_of(self.path))

    def begin(self, work: Trials) -> StoredRun:
        key = work.fingerprint()
        known = self.runs()
        if self._version < SCHEMA_VERSION:
            self._upgrade()
        if not any(run.fingerprint == key for run in known):
            with self._writing() as connection:
                (last,) = connection.execute("SELECT COALESCE(MAX(id), 0) FROM runs").fetchone()
                row = (last + 1, key, work.canonical_json(), json.dumps(about(work)), now(), 0.0, None)
                connection.execute(f"INSERT INTO runs ({self._columns}, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                                   (*row, run_checksum(SCHEMA_VERSION, row)))  # fmt: skip
        return next(run for run in self.runs() if run.fingerprint == key)

    def runs(self) -> list[StoredRun]:
        with self._explained():
            trials = dict(self._open.execute("SELECT run, COUNT(*) FROM trials GROUP BY run").fetchall())
            rows = self._rows()
            if not trials.keys() <= {row[0] for row in rows}:
                raise self._damaged("there are trials of no run")
            if self._prepared_runs() - {row[0] for row in rows}:
                raise self._damaged("there is what was prepared of no run")
            return [
                StoredRun(
                    key, plan := json.loads(text), self._about(plan, noted), trials.get(run, 0), begun, seconds,
                    end and json.loads(end),
                )
                for run, key, text, noted, begun, seconds, end in rows
            ]  # fmt: skip

    def results(self, fingerprint: str) -> dict[Trial, Floats]:
        query = """SELECT world, number, scores, checksum FROM trials
                   WHERE run = (SELECT id FROM runs WHERE fingerprint = ?) ORDER BY number, world"""
        found = {}
        with self._explained():
            for world, number, scores, checksum in self._open.execute(query, (fingerprint,)):
                if trial_checksum(fingerprint, world, number, scores) != checksum:
                    raise self._damaged(f"the result of trial {number} of world {world} is not what was written")
                found[world, number] = np.frombuffer(scores, "<f8").astype(np.float64)
        return found

    def add(self, fingerprint: str, results: Results, seconds: float) -> None:
        with self._writing() as connection:
            run, *middle, so_far, conclusion = self._row(fingerprint)
            rows = []
            for (world, number), scores in results.items():
                content = np.ascontiguousarray(scores, "<f8").tobytes()
                rows.append((run, world, number, content, trial_checksum(fingerprint, world, number, content)))
            connection.executemany("INSERT OR IGNORE INTO trials VALUES (?, ?, ?, ?, ?)", rows)
            self._rewrite((run, *middle, so_far + float(seconds), conclusion))

    def preparation(self, fingerprint: str) -> Preparation | None:
        if self._version < 3:
            return None
        query = "SELECT content, checksum FROM prepared WHERE run = (SELECT id FROM runs WHERE fingerprint = ?)"
        with self._explained():
            row = self._open.execute(query, (fingerprint,)).fetchone()
            if row is None:
                return None
            content, checksum = row
            if prepared_checksum(fingerprint, content) != checksum:
                raise self._damaged("what was prepared for a run is not what was written")
            return Preparation.from_bytes(content)

    def keep(self, fingerprint: str, prepared: Preparation) -> None:
        content = prepared.to_bytes()
        with self._writing() as connection:
            run, *_ = self._row(fingerprint)
            values = (run, content, prepared_checksum(fingerprint, content))
            connection.execute("INSERT OR IGNORE INTO prepared VALUES (?, ?, ?)", values)

    def conclude(self, fingerprint: str, conclusion: Mapping[str, Any]) -> None:
        with self._writing():
            *row, _ = self._row(fingerprint)
            self._rewrite((*row, json.dumps(json_values(dict(conclusion)))))

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
            beside(self.path, suffix).unlink(missing_ok=True)
        self._lock.release(remove=True)
        self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------- its rows
    def _rows(self, which: str = "TRUE", *values: str) -> list[tuple[Any, ...]]:
        """Runs, each as it was written."""
        query = f"SELECT {self._columns}, checksum FROM runs WHERE {which} ORDER BY id"
        found = []
        with self._explained():
            for *row, checksum in self._open.execute(query, values):
                if hashlib.sha256(row[2].encode()).hexdigest() != row[1]:
                    raise self._damaged("the stored plan is not the one that was begun")
                if run_checksum(self._version, row) != checksum:
                    raise self._damaged("what is stored of a run (its claim, time or end) is not what was written")
                found.append(tuple(row))
        return found

    @property
    def _columns(self) -> str:
        return _RUN.format(about="about" if self._version >= 4 else "claimed_epsilon")

    def _about(self, plan: dict[str, Any], noted: Any) -> dict[str, Any]:
        """Of a run, by what its row has in that column."""
        if self._version < 4:
            return about_before_4(plan, noted)
        found: dict[str, Any] = json.loads(noted)
        return found

    def _prepared_runs(self) -> set[int]:
        return {run for (run,) in self._open.execute("SELECT run FROM prepared")} if self._version >= 3 else set()

    def _row(self, fingerprint: str) -> tuple[Any, ...]:
        (row,) = self._rows("fingerprint = ?", fingerprint)
        return row

    def _rewrite(self, row: tuple[Any, ...]) -> None:
        """What changes of a run: its time and its end."""
        values = (*row[-2:], run_checksum(SCHEMA_VERSION, row), row[0])
        self._open.execute("UPDATE runs SET seconds = ?, conclusion = ?, checksum = ? WHERE id = ?", values)

    def _upgrade(self) -> None:
        """What older versions do not have: checksums over whole runs, a place for what was prepared, what a run is
        about."""
        with self._writing() as connection:
            connection.execute("BEGIN IMMEDIATE")  # else a table would be made outside of the transaction
            rows = self._rows()
            connection.execute("ALTER TABLE runs ADD COLUMN about TEXT NOT NULL DEFAULT ''")
            for run, key, text, claimed, *rest in rows:
                noted = json.dumps(about_before_4(json.loads(text), claimed))
                connection.execute("UPDATE runs SET about = ? WHERE id = ?", (noted, run))
                self._rewrite((run, key, text, noted, *rest))
            connection.execute("ALTER TABLE runs DROP COLUMN claimed_epsilon")
            if self._version < 3:
                connection.execute(PREPARED_TABLE)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._version = SCHEMA_VERSION

    # ------------------------------------------------------------------------------------------- its file
    @property
    def _open(self) -> sqlite3.Connection:
        assert self._connection is not None
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):  # a full disk: the log stays beside the file, and is read the next time
                self._connection.close()
            self._connection = None

    def _make(self) -> None:
        """A new file, if there is none; a lock that was made for it goes with it if that fails."""
        if not store_file.is_empty(self.path):
            return
        try:
            store_file.make_store(self.path.resolve())
        except OSError as error:
            assert self._lock is not None
            self._lock.release(remove=True)
            self._lock = None
            raise StoreError(
                f"cannot make {self.path} ({error.strerror}); make room on the disk and run the same command again"
            ) from None
        self.is_new = True

    def _checked(self) -> sqlite3.Connection:
        """A look at the file, if it is ours and whole; it is not written to."""
        if not os.path.isfile(self.path):
            raise InvalidInput("store", str(self.path), "an existing file", "check the path")
        if store_file.is_empty(self.path):
            raise self._damaged("the file is empty")
        with self._explained():
            connection = store_file.connect_to_read(self.path)
            try:
                self._version = self._check(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _check(self, connection: sqlite3.Connection) -> int:
        """Its version."""
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
        (state,) = connection.execute("PRAGMA integrity_check(1)").fetchone()  # a quick one skips the index of runs
        if state != "ok" or version < 1:
            raise self._damaged(state if version >= 1 else f"version {version}")
        (keeps,) = connection.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'prepared'").fetchone()
        if bool(keeps) != (version >= 3):
            raise self._damaged(f"its tables are not those of version {version}")
        return int(version)

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
        except MALFORMED as error:  # values that we never wrote
            raise self._damaged(str(error)) from None

    def _damaged(self, how: str) -> InvalidInput:
        text = f"an intact store of Epsilometer's ({' '.join(how.split())})"
        return InvalidInput("store", str(self.path), text, _DAMAGED)
