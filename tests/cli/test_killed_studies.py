"""Killed in the middle, studies end like runs that were not: nothing lost, nothing changed.

Told to stop, they and `mechanism` say what is kept, and how to go on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from program import in_process

from epsilometer.runs import STORE, SqliteStore

# Models that take a while each, and no noise to be calibrated.
MEMBERSHIP = "[model]\nhidden = [8]\n[training]\nsteps = 1500\n[membership]\nrecords = 300\npopulation = 100\n"
INSTANCES = (
    '[data]\nname = "digits"\nclasses = [0, 1]\nper_class = 60\n'
    "[training]\nsample_rate = 0.5\nsteps = 200\nnoise_multiplier = 20.0\n"
)
# Some hundred trials, which take seconds together.
PROPERTY = '[data]\nname = "digits"\nclasses = [0, 1]\n[collaboration]\nhidden = [4]\nrounds = 24\n'
RECONSTRUCT = '[reconstruction]\nattack = "sums"\nin_sum = 1797\nreleases = 40\nrecords = 60\n'
QUICK = {
    "property": ["property", "property.toml", "--trials", "20"],
    "reconstruct": ["reconstruct", "reconstruct.toml"],
}
STUDIES = {
    "membership": ["membership", "membership.toml", "--references", "12"],
    "instances": ["instances", "instances.toml", "--records", "10", "--trainings", "12"],
    "measured": [
        "instances",
        "instances.toml",
        "--records",
        "4",
        "--trainings",
        "2",
        "--measure",
        "1",
        "--trials",
        "60",
    ],
}
STOPPED = {**QUICK, **STUDIES, "mechanism": ["mechanism", "laplace", "--epsilon", "1", "--runs", "1000000"]}
TABLES = {"membership": "scores.csv", "instances": "records.csv", "measured": "records.csv"}


@pytest.fixture
def where(tmp_path: Path) -> Path:
    (tmp_path / "membership.toml").write_text(MEMBERSHIP)
    (tmp_path / "instances.toml").write_text(INSTANCES)
    (tmp_path / "property.toml").write_text(PROPERTY)
    (tmp_path / "reconstruct.toml").write_text(RECONSTRUCT)
    return tmp_path


def command(study: str, out: str) -> list[str]:
    return [sys.executable, "-m", "epsilometer", *STOPPED[study], "--executor", "inline", "--out", out]


def stored(where: Path) -> dict[tuple[str, int, int], bytes]:
    """Every result of every part of a run."""
    if not (where / STORE).exists():
        return {}
    with SqliteStore.reading(where / STORE) as store:
        parts = [run.fingerprint for run in store.runs()]
        return {(part, *trial): one.tobytes() for part in parts for trial, one in store.results(part).items()}


def outcome(where: Path) -> dict:
    found = json.loads((where / "result.json").read_text())
    return {key: value for key, value in found.items() if key not in ("seconds", "command", "figures")}


def begun(study: str, where: Path, more_than: int) -> subprocess.Popen[str]:
    """A process that has stored more than so many results, or has ended."""
    process = subprocess.Popen(
        command(study, "killed"), cwd=where, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    while len(stored(where / "killed")) <= more_than and process.poll() is None:
        time.sleep(0.05)
    return process


@pytest.mark.full
@pytest.mark.parametrize("study", STUDIES)
def test_killed_again_and_again(where: Path, study: str) -> None:
    before: dict[tuple[str, int, int], bytes] = {}
    cut_short = 0
    for _ in range(3):
        with begun(study, where, len(before)) as process:
            os.killpg(process.pid, signal.SIGKILL)
        now = stored(where / "killed")
        assert before.items() <= now.items()
        cut_short += process.returncode == -signal.SIGKILL and not (where / "killed" / "result.json").exists()
        before = now
    assert cut_short
    for out in ("killed", "whole"):
        subprocess.run(command(study, out), cwd=where, check=True, capture_output=True)
    assert before.items() <= stored(where / "killed").items()
    assert stored(where / "killed") == stored(where / "whole")
    assert outcome(where / "killed") == outcome(where / "whole")
    table = TABLES[study]
    assert (where / "killed" / table).read_bytes() == (where / "whole" / table).read_bytes()


@pytest.mark.parametrize("study", QUICK)
def test_killed_once(where: Path, study: str) -> None:
    """The same in little time: a process that is killed, one that goes on, and all of it in this process."""
    with begun(study, where, 0) as process:
        os.killpg(process.pid, signal.SIGKILL)
    before = stored(where / "killed")
    assert process.returncode == -signal.SIGKILL
    assert before
    assert not (where / "killed" / "result.json").exists()
    subprocess.run(command(study, "killed"), cwd=where, check=True, capture_output=True)
    assert in_process(*command(study, "whole")[3:], cwd=where).returncode == 0
    after = stored(where / "killed")
    assert len(before) < len(after)
    assert before.items() <= after.items()
    assert after == stored(where / "whole")
    assert outcome(where / "killed") == outcome(where / "whole")
    assert (where / "killed" / "scores.csv").read_bytes() == (where / "whole" / "scores.csv").read_bytes()


@pytest.mark.parametrize("stop", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.full)])
@pytest.mark.parametrize("study", ["membership", "measured", "mechanism", "property"])
def test_told_to_stop(where: Path, study: str, stop: signal.Signals) -> None:
    """One line that says what is kept and how to go on."""
    with begun(study, where, 0) as process:
        os.killpg(process.pid, stop)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    (said,) = [line for line in told.splitlines() if line.startswith("epsilometer: ")]
    assert "trials are stored in killed; to continue: epsilometer " in said
    assert said.endswith("--executor inline --out killed")
    assert "Traceback" not in told
    assert not (where / "killed" / "result.json").exists()
