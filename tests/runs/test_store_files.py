"""What lies on the disk: every byte is vouched for, readers touch nothing, and what is not ours is left alone."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from epsilometer.auditing import run, spec_from_dict
from epsilometer.errors import EpsilometerError, InvalidInput
from epsilometer.runs import STORE, Preparation, SqliteStore, StoreError, lock, run_directory

PLAN = spec_from_dict({"training": {"steps": 3}, "audit": {"trials": 25}}).plan()
OTHER = spec_from_dict({"training": {"steps": 4}, "audit": {"trials": 25}}).plan()
KEY = PLAN.fingerprint()
STORES = Path(__file__).parent / "stores"
PREPARED = Preparation({"direction": np.arange(300) / 7.0, "rows": np.arange(5)})


def filled(path: Path, trials: int = 20) -> Path:
    with SqliteStore(path) as store:
        store.begin(PLAN)
        store.begin(OTHER)
        store.keep(KEY, PREPARED)
        store.add(KEY, {(i % 2, i // 2): np.array([i + 0.5]) for i in range(trials)}, 1.25)
        store.conclude(KEY, {"verdict": {"outcome": "consistent"}})
    return path


def content(path: Path) -> list[object]:
    with SqliteStore.reading(path) as store:
        runs = store.runs()
        prepared = [store.preparation(one.fingerprint) for one in runs]
        return [
            *runs,
            *({t: s.tobytes() for t, s in store.results(one.fingerprint).items()} for one in runs),
            *(None if one is None else one.to_bytes() for one in prepared),
        ]


def all_of(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in directory.iterdir() if p.is_file()}


# ---------------------------------------------------------------------------------------------- every value counts
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE runs SET about = '{}' WHERE id = 1", "its claim, time or end"),
        ("UPDATE runs SET begun = '2020-01-01T00:00:00+00:00' WHERE id = 1", "its claim, time or end"),
        ("UPDATE runs SET seconds = 1.5 WHERE id = 1", "its claim, time or end"),
        ("UPDATE runs SET conclusion = NULL WHERE id = 1", "its claim, time or end"),
        ("UPDATE runs SET conclusion = NULL, checksum = NULL WHERE id = 1", "its claim, time or end"),
        ("UPDATE runs SET checksum = checksum + 1 WHERE id = 2", "its claim, time or end"),
        ("UPDATE runs SET id = 7 WHERE id = 1", "its claim, time or end"),
        ("UPDATE runs SET id = 7 WHERE id = 2", "its claim, time or end"),
        ("UPDATE runs SET fingerprint = 'x' WHERE id = 2", "not the one that was begun"),
        ("UPDATE trials SET run = 7 WHERE number = 3", "trials of no run"),
        ("UPDATE trials SET run = 2 WHERE number = 3", "trial 3 of world 0 is not what was written"),
        ("UPDATE trials SET number = 30 WHERE number = 3 AND world = 1", "trial 30 of world 1 is not"),
        ("UPDATE trials SET world = 2 WHERE number = 3 AND world = 1", "trial 3 of world 2 is not"),
        ("UPDATE trials SET scores = zeroblob(8) WHERE number = 3 AND world = 1", "trial 3 of world 1 is not"),
        ("UPDATE trials SET checksum = 5 WHERE number = 3 AND world = 1", "trial 3 of world 1 is not"),
        ("UPDATE prepared SET content = zeroblob(8)", "what was prepared for a run is not what was written"),
        ("UPDATE prepared SET checksum = checksum + 1", "what was prepared for a run is not what was written"),
        ("UPDATE prepared SET run = 2", "what was prepared for a run is not what was written"),
        ("UPDATE prepared SET run = 7", "of no run"),
        ("PRAGMA user_version = 1", "not those of version 1"),
        ("PRAGMA user_version = 2", "an intact store"),
        ("PRAGMA user_version = 0", "version 0"),
    ],
)  # fmt: skip
def test_every_changed_value_is_noticed(tmp_path: Path, change: str, words: str) -> None:
    path = filled(tmp_path / STORE)
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    connection.close()
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=words):
        content(path)
    with pytest.raises(InvalidInput, match=words), SqliteStore(path) as store:
        [
            (store.results(key), store.preparation(key))
            for plan in (PLAN, OTHER)
            if (key := store.begin(plan).fingerprint)
        ]
    assert path.read_bytes() == before


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.full)])
def test_a_changed_byte_is_noticed_or_changes_nothing(tmp_path: Path, step: int) -> None:
    path = filled(tmp_path / STORE)
    expected, whole = content(path), path.read_bytes()
    noticed = 0
    for at in range(0, len(whole), step):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x11]) + whole[at + 1 :])
        try:
            assert content(path) == expected, at
        except EpsilometerError as error:
            assert "\n" not in str(error)
            noticed += 1
    assert noticed > 0.2 * len(whole) / step  # the rest is free space


def test_what_is_vouched_for_anew_was_whole_before(tmp_path: Path) -> None:
    """A driver that adds to a row must not bless what happened to it meanwhile."""
    path = filled(tmp_path / STORE)
    with SqliteStore(path) as store:
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE runs SET about = '{}'")
        connection.close()
        for change in (lambda: store.add(KEY, {(0, 20): np.array([1.0])}, 1.0), lambda: store.conclude(KEY, {})):
            with pytest.raises(InvalidInput, match="its claim, time or end"):
                change()


def test_a_store_of_the_first_version_continues_and_is_vouched_for_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / STORE
    shutil.copy(STORES / "version-1.sqlite", path)
    before = content(path)
    assert path.read_bytes() == (STORES / "version-1.sqlite").read_bytes()  # readers change nothing
    key = before[0].fingerprint
    with SqliteStore(path) as store:
        store.begin(PLAN)
        store.add(key, {(0, 25): np.array([7.0])}, 0.5)
    after = content(path)
    assert (after[0].plan, after[0].about, after[0].begun) == (before[0].plan, before[0].about, before[0].begun)
    assert (after[0].trials, after[0].seconds, after[0].conclusion) == (51, 2.0, before[0].conclusion)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (4,)
        connection.execute("UPDATE runs SET seconds = 1 WHERE id = 1")
    connection.close()
    with pytest.raises(InvalidInput, match="its claim, time or end"):
        content(path)


def test_a_damaged_store_of_the_first_version_is_not_blessed(tmp_path: Path) -> None:
    path = tmp_path / STORE
    shutil.copy(STORES / "version-1.sqlite", path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE runs SET conclusion = '{}'")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="its claim, time or end"), SqliteStore(path) as store:
        store.begin(PLAN)
    assert path.read_bytes() == before


def test_a_store_of_the_second_version_can_be_read(tmp_path: Path) -> None:
    """A file that was written once and is kept."""
    path = tmp_path / STORE
    shutil.copy(STORES / "version-2.sqlite", path)
    with SqliteStore(path) as store:
        (stored,) = store.runs()
        assert (stored.trials, stored.total, stored.seconds) == (50, 50, 1.5)
        assert stored.conclusion["verdict"] == {"outcome": "inconclusive"}
        assert store.results(stored.fingerprint)[1, 24] == 24.5


def test_a_store_of_the_third_version_says_what_its_runs_are_about(tmp_path: Path) -> None:
    """An audit, what records pay, and membership: kind and total were read off their plans."""
    path = tmp_path / STORE
    shutil.copy(STORES / "version-3.sqlite", path)
    before = content(path)
    audit, instances, membership = before[:3]
    assert [one.kind for one in before[:3]] == ["audit", "instances", "membership"]
    assert [one.total for one in before[:3]] == [50, instances.plan["trials"], 3]
    assert audit.about["claimed_epsilon"] == pytest.approx(PLAN.claimed_epsilon)
    assert membership.about["claimed_epsilon"] == "inf"
    with SqliteStore(path) as store:
        store.begin(OTHER)
        store.add(audit.fingerprint, {(0, 11): np.array([7.0])}, 0.5)
        prepared = store.preparation(audit.fingerprint)
        assert prepared is not None
        assert len(prepared.arrays["direction"]) == 8
    after = content(path)
    assert [one.about for one in after[:3]] == [one.about for one in before[:3]]
    assert after[0].trials == 21
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (4,)
    connection.close()


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_of_an_earlier_version_goes_on_and_keeps_what_is_prepared(tmp_path: Path, version: int) -> None:
    path = tmp_path / STORE
    shutil.copy(STORES / f"version-{version}.sqlite", path)
    (old, results, prepared) = content(path)
    assert prepared is None
    assert path.read_bytes() == (STORES / f"version-{version}.sqlite").read_bytes()  # readers change nothing
    with SqliteStore(path) as store:
        assert store.preparation(old.fingerprint) is None
        result = run(PLAN, store=store)
        assert store.preparation(KEY).to_bytes() == PLAN.prepare().to_bytes()
        store.keep(old.fingerprint, PREPARED)  # as if it were the older run that goes on
    after = content(path)
    assert (after[0], after[2], after[4]) == (old, results, PREPARED.to_bytes())
    assert after[1].conclusion["verdict"] == result.verdict.to_dict()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (4,)
        connection.execute("UPDATE prepared SET content = zeroblob(8) WHERE run = 1")
    connection.close()
    with pytest.raises(InvalidInput, match="what was prepared for a run is not what was written"):
        content(path)


def test_an_earlier_version_that_a_driver_left_before_its_first_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / STORE
    shutil.copy(STORES / "version-2.sqlite", path)
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM trials")
        connection.execute("DELETE FROM runs")
    connection.close()
    with SqliteStore(path) as store:
        run(PLAN, store=store)
    assert content(path)[0].trials == 50


def test_a_damaged_store_of_the_second_version_is_not_blessed(tmp_path: Path) -> None:
    path = tmp_path / STORE
    shutil.copy(STORES / "version-2.sqlite", path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE runs SET seconds = 7")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="its claim, time or end"), SqliteStore(path) as store:
        store.begin(PLAN)
    assert path.read_bytes() == before


# ------------------------------------------------------------------------------------------ readers touch nothing
DRIVER = """
import sys
import numpy as np
from epsilometer.auditing import spec_from_dict
from epsilometer.runs import SqliteStore
plan = spec_from_dict({"training": {"steps": 3}, "audit": {"trials": 25}}).plan()
store = SqliteStore(sys.argv[1])
store.begin(plan)
for i in range(10):
    store.add(plan.fingerprint(), {(world, i): np.array([i + world / 2]) for world in (0, 1)}, 0.1)
print("stored", flush=True)
sys.stdin.read()
"""


def driver(path: Path) -> subprocess.Popen[str]:
    """A process that has stored 20 results and holds the store until it is killed."""
    process = subprocess.Popen([sys.executable, "-c", DRIVER, str(path)], stdin=-1, stdout=-1, text=True)
    assert process.stdout.readline() == "stored\n"
    return process


def test_a_reader_of_a_killed_run_touches_nothing(tmp_path: Path) -> None:
    with driver(tmp_path / STORE) as process:
        process.kill()
    for left in ("trials.sqlite-shm", "none"):  # what a copy of the directory may lack
        (tmp_path / left).unlink(missing_ok=True)
        before = all_of(tmp_path)
        assert len(before[f"{STORE}-wal"][0]) > 0
        assert content(tmp_path / STORE)[0].trials == 20
        assert all_of(tmp_path) == before


def test_a_reader_of_a_running_audit_touches_nothing(tmp_path: Path) -> None:
    with driver(tmp_path / STORE) as process:
        before = all_of(tmp_path)
        assert content(tmp_path / STORE)[0].trials == 20
        assert all_of(tmp_path) == before
        process.kill()


def test_a_log_without_its_file_is_lost_to_nobody(tmp_path: Path) -> None:
    """SQLite deletes the log of an empty file, and writes it into a new one."""
    with driver(tmp_path / STORE) as process:
        process.kill()
    whole = (tmp_path / STORE).read_bytes()
    for emptied in (True, False):
        if emptied:
            (tmp_path / STORE).write_bytes(b"")
        else:
            (tmp_path / STORE).unlink()
        before = all_of(tmp_path)
        with pytest.raises(InvalidInput, match=r"the file is empty|an existing file"):
            SqliteStore.reading(tmp_path / STORE)
        with pytest.raises(InvalidInput, match=r"trials\.sqlite-wal.*put trials\.sqlite back, or move the log away"):
            SqliteStore(tmp_path / STORE)
        with pytest.raises(InvalidInput, match=r"trials\.sqlite-wal"), run_directory(tmp_path, PLAN):
            pass
        assert all_of(tmp_path) == before
    (tmp_path / STORE).write_bytes(whole)
    assert content(tmp_path / STORE)[0].trials == 20


def test_a_reader_sees_all_that_was_stored_while_a_driver_writes_and_ends(tmp_path: Path) -> None:
    """The log moves into the file again and again, and goes at last: no reader may see half of that."""
    stored = [0]
    done = threading.Event()
    failures: list[BaseException] = []

    def look() -> None:
        seen = 0
        while not done.is_set() and not failures:
            least = stored[0]
            try:
                found = content(tmp_path / STORE)[0].trials
                assert found >= max(least, seen)
                seen = found
            except BaseException as error:
                failures.append(error)

    SqliteStore(tmp_path / STORE).close()
    with SqliteStore(tmp_path / STORE) as store:
        store.begin(PLAN)
    reader = threading.Thread(target=look)
    reader.start()
    for session in range(10):
        with SqliteStore(tmp_path / STORE) as store:
            store._open.execute("PRAGMA wal_autocheckpoint = 5")
            for i in range(20):
                store.add(KEY, {(session, i): np.ones(100)}, 0.0)
                stored[0] += 1
    done.set()
    reader.join()
    assert not failures, failures[0]


def test_a_run_on_read_only_media_can_be_listed(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("NO TMPFS CAN BE MOUNTED HERE: read-only media were tried by comparing files only")
    try:
        for name in ("killed", "whole"):
            (disk / name).mkdir()
        with driver(disk / "killed" / STORE) as process:
            process.kill()
        filled(disk / "whole" / STORE)
        subprocess.run([*mount[:4], "remount,ro", *mount[5:]], check=True)
        assert [content(disk / name / STORE)[0].trials for name in ("killed", "whole")] == [20, 20]
    finally:
        subprocess.run(["umount", str(disk)], check=False)


# --------------------------------------------------------------------------------------------- what is not ours
def link_to_notes(path: Path) -> None:
    path.symlink_to("notes.txt")


def link_to_nothing(path: Path) -> None:
    path.symlink_to("nowhere")


def hard_link(path: Path) -> None:
    os.link(path.parent / "notes.txt", path)


def file_of_the_users(path: Path) -> None:
    path.write_text("mine")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("put", [link_to_notes, link_to_nothing, hard_link, file_of_the_users, pipe, folder])
def test_a_lock_that_is_not_ours_is_refused_and_left_alone(tmp_path: Path, put: Callable[[Path], None]) -> None:
    (tmp_path / "notes.txt").write_text("dear diary")
    put(tmp_path / f"{STORE}.lock")
    before, names = all_of(tmp_path), sorted(os.listdir(tmp_path))
    with pytest.raises(
        InvalidInput, match=r"trials\.sqlite\.lock.*expected a lock of Epsilometer's.*move it"
    ) as caught:
        SqliteStore(tmp_path / STORE)
    assert "\n" not in str(caught.value)
    assert (all_of(tmp_path), sorted(os.listdir(tmp_path))) == (before, names)


def test_a_pipe_for_a_lock_keeps_no_reader_waiting(tmp_path: Path) -> None:
    path = filled(tmp_path / STORE)
    (tmp_path / f"{STORE}.lock").unlink()
    os.mkfifo(tmp_path / f"{STORE}.lock")
    with SqliteStore.reading(path) as store:
        assert not store.is_driven


def test_a_lock_of_earlier_drivers_is_taken(tmp_path: Path) -> None:
    for left in ("", "process 4194305 on elsewhere (since 2026-01-01T00:00:00+00:00)", "\0" * 60):
        (tmp_path / f"{STORE}.lock").write_text(left)
        SqliteStore(tmp_path / STORE).close()
        assert f"process {os.getpid()} on" in (tmp_path / f"{STORE}.lock").read_text()


def test_files_of_the_users_stay(tmp_path: Path) -> None:
    mine = [f"{STORE}.new", f"{STORE}.new-wal", f".{STORE}.being-written-mynotes1", f".{STORE}.being-written-"]
    for name in mine:
        (tmp_path / name).write_text(f"mine: {name}")
    (tmp_path / f".{STORE}.being-written-link").symlink_to(f"{STORE}.new")
    with run_directory(tmp_path, PLAN) as store:
        store.add(KEY, {(0, 0): np.array([1.0])}, 0.0)
    assert {name: (tmp_path / name).read_text() for name in mine} == {name: f"mine: {name}" for name in mine}


def test_a_store_that_links_to_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / STORE).symlink_to(tmp_path / "elsewhere.sqlite")
    with pytest.raises(InvalidInput, match="links to nothing"), run_directory(tmp_path / "run", PLAN):
        pass
    assert os.listdir(tmp_path) == ["run"]
    assert os.listdir(tmp_path / "run") == [STORE]


def test_a_journal_that_nobody_of_ours_has_written_is_refused(tmp_path: Path) -> None:
    path = filled(tmp_path / STORE)
    (tmp_path / f"{STORE}-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"\0" * 504)
    before = all_of(tmp_path)
    with pytest.raises(InvalidInput, match="-journal"):
        SqliteStore(path)
    assert all_of(tmp_path) == before


# --------------------------------------------------------------------------------- a full disk, and an early end
MAKE = "import sys; from epsilometer.runs import SqliteStore; SqliteStore(sys.argv[1]).close()"


@pytest.mark.parametrize("room", [0, 1, 4096, 5000, 8192, 12288, 16000])
def test_a_disk_that_is_full_while_a_store_is_made_leaves_no_half_of_one(tmp_path: Path, room: int) -> None:
    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))

    command = [sys.executable, "-c", MAKE, str(tmp_path / STORE)]
    full = subprocess.run(command, preexec_fn=limited, capture_output=True, text=True, check=False)
    assert full.returncode == 1
    assert "run the same command again" in full.stderr.splitlines()[-1]
    assert os.listdir(tmp_path) == []
    with run_directory(tmp_path, PLAN) as store:
        assert run(PLAN, store=store).verdict


def test_what_a_killed_maker_left_is_cleaned_away(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "other").close()
    whole = (tmp_path / "other").read_bytes()
    out = tmp_path / "run"
    out.mkdir()
    for length in (0, 1000, len(whole)):
        (out / f".{STORE}.being-written-{length:08}").write_bytes(whole[:length])
    with run_directory(out, PLAN) as store:
        store.add(KEY, {(0, 0): np.array([1.0])}, 0.0)
    assert sorted(os.listdir(out)) == [STORE, f"{STORE}.lock"]


# ------------------------------------------------------------------------------------------------------- locks
def test_a_file_system_without_locks_is_named_and_not_a_process_long_gone(tmp_path: Path, monkeypatch) -> None:
    path = filled(tmp_path / STORE)

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(lock.fcntl, "flock", no_locks)
    with pytest.raises(InvalidInput, match=r"a file system with locks \(No locks available\); name a directory"):
        SqliteStore(path)
    with SqliteStore.reading(path) as store:
        assert not store.is_driven
        assert len(store.runs()) == 2


def test_a_look_does_not_keep_a_driver_from_starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = filled(tmp_path / STORE)
    with open(f"{path}.lock") as file:
        lock.fcntl.flock(file, lock.fcntl.LOCK_SH)
        threading.Timer(0.2, lambda: lock.fcntl.flock(file, lock.fcntl.LOCK_UN)).start()
        SqliteStore(path).close()
        lock.fcntl.flock(file, lock.fcntl.LOCK_SH)
        monkeypatch.setattr(lock, "_PATIENCE", 0.1)
        with pytest.raises(StoreError, match="being written to by process"):
            SqliteStore(path)
