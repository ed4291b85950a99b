"""Kill it, fill its disk, press Ctrl-C: nothing that was finished is lost, and the end is the same. Real processes."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from epsilometer.runs import STORE, SqliteStore

SPEC = """
[claim]
epsilon = 4.0
[training]
noise_multiplier = 1.4
steps = 60
[audit]
trials = 600
"""
AUDIT = [sys.executable, "-m", "epsilometer", "audit", "spec.toml", "--executor", "inline"]


@pytest.fixture
def where(tmp_path: Path) -> Path:
    (tmp_path / "spec.toml").write_text(SPEC)
    return tmp_path


def audit(where: Path, *options: str, **settings) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*AUDIT, *options], cwd=where, capture_output=True, text=True, timeout=200, check=False, **settings
    )


def stored(where: Path) -> dict[tuple[int, int], bytes]:
    if not (where / STORE).exists():
        return {}
    with SqliteStore.reading(where / STORE) as store:
        audits = [run.fingerprint for run in store.runs() if not run.is_part]  # and not trainings that tell accuracy
        return {trial: scores.tobytes() for audit in audits for trial, scores in store.results(audit).items()}


def outcome(where: Path) -> dict:
    found = json.loads((where / "result.json").read_text())
    return {key: value for key, value in found.items() if key not in ("seconds", "command")}


@pytest.mark.parametrize("times", [2, pytest.param(20, marks=pytest.mark.full)])
def test_a_driver_killed_many_times_ends_like_one_that_was_not(where: Path, times: int) -> None:
    """Every other time at a random moment of its start, and else soon after new results were stored, so that it is cut
    short for certain: a tenth of a second plays far fewer trials than are left."""
    (where / "spec.toml").write_text(SPEC.replace("600", str(150 * times)))
    rng = random.Random(4)
    before: dict[tuple[int, int], bytes] = {}
    cut_short = 0
    for i in range(times):
        with subprocess.Popen([*AUDIT, "--out", "killed"], cwd=where, stdout=-3, stderr=-3) as driver:
            if i % 2:
                while len(stored(where / "killed")) == len(before) and driver.poll() is None:
                    time.sleep(0.02)
            time.sleep(rng.uniform(0.0, 0.1 if i % 2 else 1.0))
            driver.send_signal(signal.SIGKILL)
        now = stored(where / "killed")
        assert before.items() <= now.items()  # nothing lost, nothing changed
        cut_short += len(before) < len(now) < 300 * times
        before = now
    assert cut_short >= times // 2
    assert audit(where, "--out", "killed").returncode == 0
    assert audit(where, "--out", "whole").returncode == 0
    assert stored(where / "killed") == stored(where / "whole")
    assert len(stored(where / "whole")) == 300 * times
    assert outcome(where / "killed") == outcome(where / "whole")
    assert (where / "killed" / "scores.csv").read_bytes() == (where / "whole" / "scores.csv").read_bytes()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_says_how_to_continue(where: Path, stop: signal.Signals) -> None:
    (where / "spec.toml").write_text(SPEC.replace("600", "20000"))
    counts = []
    for _ in range(2):
        before = len(stored(where / "run with spaces"))
        with interruptible([*AUDIT, "--out", "run with spaces"], where) as driver:
            while len(stored(where / "run with spaces")) == before:
                time.sleep(0.05)
            driver.send_signal(stop)
            _, rest = driver.communicate(timeout=60)
        assert driver.returncode == 130
        assert "Traceback" not in rest
        (said,) = [line for line in rest.splitlines() if "interrupted" in line]
        counts.append(len(stored(where / "run with spaces")))
        assert f"{counts[-1]} trials are stored in run with spaces" in said
        assert said.endswith("to continue: epsilometer audit spec.toml --executor inline --out 'run with spaces'")
    assert 0 < counts[0] < counts[1] < 40_000


def interruptible(command: list[str], where: Path, **settings) -> subprocess.Popen[str]:
    """A process that Ctrl-C reaches, also where these tests run in the background and ignore it."""
    return subprocess.Popen(
        command, cwd=where, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler), **settings,
    )  # fmt: skip


def test_ctrl_c_reaches_the_driver_only(where: Path) -> None:
    """A terminal sends it to workers as well; they must neither stop by themselves nor complain."""
    (where / "spec.toml").write_text(SPEC.replace("600", "20000"))
    command = [*AUDIT[:-1], "local", "--workers", "2", "--out", "run"]
    with interruptible(command, where, start_new_session=True) as driver:
        while not stored(where / "run"):
            time.sleep(0.05)
        os.killpg(driver.pid, signal.SIGINT)
        _, rest = driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert [line for line in rest.splitlines() if not line.startswith("gradient")] == [rest.splitlines()[-1]]


def no_large_files() -> None:
    """What a full disk is to SQLite: a write that fails. Needs no mount, and no rights."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))


@pytest.mark.full
def test_a_full_disk_loses_nothing(where: Path) -> None:
    full = audit(where, "--out", "run", preexec_fn=no_large_files)
    assert full.returncode == 2
    said = full.stderr.splitlines()[-1]
    assert "cannot write to" in said
    assert "to continue: epsilometer audit" in said
    kept = stored(where / "run")
    assert 0 < len(kept) < 1200
    assert f"{len(kept)} trials are stored" in said
    with sqlite3.connect(where / "run" / STORE) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert audit(where, "--out", "run").returncode == 0
    after = stored(where / "run")
    assert kept.items() <= after.items()
    assert len(after) == 1200


def test_a_really_full_disk_loses_nothing(where: Path) -> None:
    """The same on a small file system of its own, where one can be mounted."""
    disk = where / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("NO TMPFS CAN BE MOUNTED HERE: a full disk was tried by a limit on file sizes only")
    try:
        full = audit(where, "--out", "disk/run")
        assert full.returncode == 2
        assert "cannot write to" in full.stderr.splitlines()[-1]
        kept = stored(disk / "run")
        assert 0 < len(kept) < 1200
        subprocess.run([*mount[:4], "remount,size=4m", *mount[5:]], check=True)
        assert audit(where, "--out", "disk/run").returncode == 0
        after = stored(disk / "run")
        assert kept.items() <= after.items()
        assert len(after) == 1200
    finally:
        subprocess.run(["umount", str(disk)], check=False)
