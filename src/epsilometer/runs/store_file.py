"""The file of a SQLite store: how it comes to be, what vouches for its rows, and how to look and not touch."""

from __future__ import annotations

import json
import sqlite3
import stat
import tempfile
import time
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from epsilometer.errors import InvalidInput
from epsilometer.json_values import json_values
from epsilometer.runs.atomic_files import remove_unfinished, write_whole
from epsilometer.runs.store import StoreError

APPLICATION = 0x45505349  # "EPSI", in SQLite's header: this file is ours
# 1: a run's checksum was that of its conclusion alone; 2: what an adversary prepared was not kept; 3: of what a run is
# about, only the claim was kept, and the rest read off its plan.
SCHEMA_VERSION = 4
_ATTEMPTS, _PAUSE = 50, 0.05  # to find a file that is being written to at rest; seconds

PREPARED_TABLE = """
CREATE TABLE prepared (
    run INTEGER PRIMARY KEY REFERENCES runs (id),
    content BLOB NOT NULL,
    checksum INTEGER NOT NULL
)"""
# Checksums, because a flipped bit in a score or a verdict would go unnoticed by SQLite.
_SCHEMA = f"""
BEGIN;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    plan TEXT NOT NULL,
    about TEXT NOT NULL,
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
{PREPARED_TABLE};
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""
_WORLDS_BEFORE_4 = {"PairedRuns": 2, "OneRun": 1, "PerStep": 1, "Membership": 1}  # by what a plan called its evidence
_LOGGED = slice(18, 20), b"\2\2"  # in SQLite's header: written and read with a write-ahead log


def run_checksum(version: int, row: Sequence[Any]) -> int | None:
    """What vouches for a run's (id, fingerprint, plan, about, begun, seconds, conclusion)."""
    if version == 1:
        return None if row[-1] is None else zlib.crc32(row[-1].encode())
    return zlib.crc32(json.dumps(list(row)).encode())


def about_before_4(plan: dict[str, Any], claimed_epsilon: float) -> dict[str, Any]:
    """What older stores note of a run, from its plan."""
    versions = {"membership_version": "membership", "instances_version": "instances"}
    kind = next((kind for key, kind in versions.items() if key in plan), "audit")
    worlds = _WORLDS_BEFORE_4[plan["evidence"]]
    return {"kind": kind, "total": int(plan["trials"]) * worlds, "claimed_epsilon": json_values(claimed_epsilon)}


def trial_checksum(fingerprint: str, world: int, number: int, scores: bytes) -> int:
    """What vouches for a trial, and for whose it is."""
    return zlib.crc32(scores, zlib.crc32(f"{fingerprint}/{world}/{number}".encode()))


def prepared_checksum(fingerprint: str, content: bytes) -> int:
    """What vouches for what was prepared, and for which run."""
    return zlib.crc32(content, zlib.crc32(fingerprint.encode()))


def lock_of(path: Path) -> Path:
    """One lock for one file, whatever links lead to it."""
    resolved = path.resolve()
    return resolved.with_name(resolved.name + ".lock")


def beside(path: Path, suffix: str) -> Path:
    """A file that SQLite keeps beside the store: it follows links first."""
    resolved = path.resolve()
    return resolved.with_name(resolved.name + suffix)


def is_empty(path: Path) -> bool:
    """Whether there is nothing yet, or only what a process leaves that was killed before its first write."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return True
    return stat.S_ISREG(found.st_mode) and found.st_size == 0


def make_store(path: Path) -> None:
    """An empty store, whole or not at all.

    Its bytes are made in memory and written in one go: however full the disk, however early the end, there is neither
    half of a store nor a journal that a reader could not resolve.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        content = bytearray(connection.serialize())
    place, logged = _LOGGED
    content[place] = logged
    remove_unfinished(path, bytes(content))
    write_whole(path, bytes(content), anew=True)


def require_ours(path: Path) -> None:
    """Refuse, before anything is made, what a new or continued store would spoil.

    SQLite would delete a log whose file is empty, write it into a new file, and undo what a journal says.
    """
    if path.is_symlink() and not path.exists():
        raise InvalidInput("store", str(path), "a file, or none (this links to nothing)", "remove the link")
    for log in (beside(path, suffix) for suffix in ("-journal", "-wal")):
        if not is_empty(log) and (log.name.endswith("-journal") or is_empty(path)):
            expected = f"no log without the store that wrote it ({path.name} is empty, missing or another)"
            raise InvalidInput("store", str(log), expected, f"put {path.name} back, or move the log away")


def connect(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True, timeout=10.0)


def connect_to_read(path: Path) -> sqlite3.Connection:
    """The store as it is now, in memory: nothing is made, changed or deleted beside it, whoever is writing to it."""
    content, log = _at_rest(path)
    return _replayed(content, log) if log else _loaded(content)


def _loaded(content: bytes) -> sqlite3.Connection:
    place, logged = _LOGGED
    if content[place] == logged:  # in memory there are no logs
        content = content[: place.start] + b"\1\1" + content[place.stop :]
    memory = sqlite3.connect(":memory:")
    memory.deserialize(content)
    return memory


def _replayed(content: bytes, log: bytes) -> sqlite3.Connection:
    """What file and log are together, as only SQLite knows: it gets a copy, because it wants to write there."""
    with tempfile.TemporaryDirectory(prefix="epsilometer-") as directory:
        copy = Path(directory) / "copy.sqlite"
        copy.write_bytes(content)
        beside(copy, "-wal").write_bytes(log)
        with closing(connect(copy, "mode=rw")) as connection:
            return _loaded(connection.serialize())


def _at_rest(path: Path) -> tuple[bytes, bytes]:
    """File and log as they were at one moment, though a driver may be writing.

    A driver appends to the log, from time to time moves what the log has into the file, and only then begins the log
    anew. If the file was the same before and after the log was read, nothing can be missing in both.
    """
    for _ in range(_ATTEMPTS):
        before, log = path.read_bytes(), _read(beside(path, "-wal"))
        if path.read_bytes() == before:
            return before, log
        time.sleep(_PAUSE)
    raise StoreError(f"cannot read {path}, which is changing all the time; what it holds is safe: try again later")


def _read(log: Path) -> bytes:
    try:
        if not stat.S_ISREG(log.stat().st_mode):  # a pipe would keep us waiting
            raise InvalidInput("store", str(log), "a log of SQLite's, which is a plain file", "move it away")
        return log.read_bytes()
    except FileNotFoundError:  # its driver has just finished
        return b""
