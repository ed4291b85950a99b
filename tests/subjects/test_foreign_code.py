"""Trainings of users are not trusted: each way to misbehave ends in one line and exit code 2, or is put up with."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from epsilometer.runs import SqliteStore

HERE = Path(__file__).parent


@pytest.fixture
def place(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", x=rng.normal(size=(40, 5)), y=np.arange(40) % 2)
    (tmp_path / "hostile.py").write_text((HERE / "hostile.py").read_text())
    return tmp_path


USUAL = ("--data", "d.npz", "--epsilon", "1", "--trials", "12", "--quiet", "--json")


def audit(place: Path, train: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "epsilometer", "audit", train, *USUAL, *options]
    return subprocess.run(command, check=False, cwd=place, text=True, capture_output=True, timeout=240)


REFUSED = {
    "hangs": "hangs took more than 2 s; `time_limit`",
    "hangs_in_c": "took more than",
    "not_a_number": "nan: expected one finite number",
    "ignores_its_seed": "two trainings with different seeds end in exactly the same numbers",
    "keeps_state": 'keep nothing between calls, or say isolation = "process"',
    "ends_its_process": "ended its process (exit code 0)",
    "exits": "raised SystemExit: 1",
    "returns_nothing": "returned nothing: a model is expected",
    "returns_an_object": "expected a torch module, an estimator",
    "not_a_function": "expected a function; it is a int",
    "nosuch": "expected a function of hostile",
}


@pytest.mark.parametrize(
    "train",
    [
        name
        if name in ("hangs", "keeps_state", "ends_its_process", "not_a_number")
        else pytest.param(name, marks=pytest.mark.full)
        for name in REFUSED
    ],
)
def test_it_is_refused_in_one_line(place: Path, train: str) -> None:
    limit = ("--time-limit", "2") if train.startswith("hangs") else ()
    shown = audit(place, f"hostile:{train}", *limit)
    assert shown.returncode == 2, shown.stderr
    assert shown.stdout == ""
    (line,) = shown.stderr.splitlines()
    assert REFUSED[train] in line


@pytest.mark.parametrize("module", ["import nosuchthing", "raise SystemExit(1)", "def train(:"])
def test_what_cannot_be_imported_is_refused(place: Path, module: str) -> None:
    (place / "broken.py").write_text(module)
    shown = audit(place, "broken:train")
    assert shown.returncode == 2
    assert "TRAINING = 'broken:train': expected a module that can be imported" in shown.stderr
    assert len(shown.stderr.splitlines()) == 1


def test_finished_trials_are_kept_and_control_characters_are_not(place: Path) -> None:
    shown = audit(place, "hostile:raises_late", "--out", "run", "--executor", "local", "--workers", "1")
    assert shown.returncode == 2, shown.stderr
    assert "raised ValueError: bad luck" in shown.stderr
    assert "\x1b" not in shown.stderr
    with SqliteStore.reading(place / "run" / "trials.sqlite") as store:
        run, *_ = [run for run in store.runs() if not run.is_part]
    assert run.trials > 0


def test_a_process_ends_in_time_whatever_it_does() -> None:
    script = (
        "import ctypes\nfrom epsilometer.runs.executors.patience import ending_this_process_after\n"
        "with ending_this_process_after(30): pass\n"
        "with ending_this_process_after(0.2): ctypes.PyDLL(None).sleep(1000)\n"
    )
    shown = subprocess.run([sys.executable, "-c", script], check=False, text=True, capture_output=True, timeout=60)
    assert (shown.returncode, shown.stdout, shown.stderr) == (1, "", "")


@pytest.mark.full
@pytest.mark.parametrize("executor", ["local", "ray"])
def test_a_training_that_hears_nothing_is_ended(place: Path, executor: str) -> None:
    """It holds Python's lock, so that neither a signal nor a thread of its process could end it."""
    options = ("--executor", executor, "--workers", "1", "--time-limit", "0.5", "--out", "run")
    shown = audit(place, "hostile:hangs_late_and_hears_nothing", *options)
    assert shown.returncode == 2, shown.stderr
    assert shown.stdout == ""
    (line,) = [line for line in shown.stderr.splitlines() if line.startswith("epsilometer: ")]
    assert "failed 3 times (it took more than 0.5 s; `time_limit` of the subject allows for more)" in line
    assert "trials are stored in run" in line
    with SqliteStore.reading(place / "run" / "trials.sqlite") as store:
        run, *_ = [run for run in store.runs() if not run.is_part]
    assert run.trials > 0


def test_what_a_training_prints_is_not_a_result(place: Path) -> None:
    shown = audit(place, "hostile:prints")
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["verdict"] == "inconclusive"


@pytest.mark.full
def test_a_process_of_its_own_for_each_training_keeps_no_state(place: Path) -> None:
    shown = audit(place, "hostile:keeps_state", "--isolation", "process", "--trials", "3")
    assert shown.returncode == 0, shown.stderr


def test_a_score_of_ones_own_judges_models_that_cannot_predict(place: Path) -> None:
    shown = audit(place, "hostile.py:good", "--score", "hostile.py:score", "--adversary", "api")
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["plan"]["subject"]["score"] == "hostile:score"


def test_a_record_of_ones_own_is_attacked(place: Path) -> None:
    np.savez(place / "mine.npz", x=3 * np.ones(5), y=1)
    shown = audit(place, "hostile:good", "--record", "mine.npz", "--executor", "inline")
    assert shown.returncode == 0, shown.stderr
    plan = json.loads(shown.stdout)["plan"]
    assert plan["adversary"] == {"name": "api", "record": "mine.npz"}
    assert len(plan["data"]["record_sha256"]) == 64
    refused = audit(place, "hostile:good", "--record", "40")
    assert refused.returncode == 2
    assert "--record = 40: expected a row of d, 0 to 39" in refused.stderr


def test_changed_code_is_another_audit(place: Path) -> None:
    """A constant in the module itself, and one in a file that it imports."""
    (place / "own.py").write_text(
        "from helper import SCALE\nfrom hostile import _model\n\nSHIFT = 1\n\n\n"
        "def train(data, seed):\n    return _model(data, seed, SCALE * SHIFT)\n"
    )
    (place / "helper.py").write_text("SCALE = 1.0\n")
    assert audit(place, "own:train", "--out", "run").returncode == 0
    for name, old, new in (("own.py", "SHIFT = 1", "SHIFT = 2"), ("helper.py", "1.0", "2.0")):
        text = (place / name).read_text()
        (place / name).write_text(text.replace(old, new))
        shown = audit(place, "own:train", "--out", "run")
        assert shown.returncode == 2
        assert f"files.{name}" in shown.stderr
        (place / name).write_text(text)
    again = audit(place, "own:train", "--out", "run")
    assert again.returncode == 0
    assert "had its results already" in again.stderr


def test_a_killed_audit_goes_on(place: Path) -> None:
    whole = json.loads(audit(place, "hostile:good", "--trials", "150", "--executor", "inline").stdout)
    command = [sys.executable, "-m", "epsilometer", "audit", "hostile:good", "--data", "d.npz", "--epsilon", "1"]
    command += ["--trials", "150", "--quiet", "--json", "--out", "run", "--executor", "local", "--workers", "1"]
    process = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, start_new_session=True)
    store, end = place / "run" / "trials.sqlite", time.monotonic() + 120
    while _stored(store) < 20 and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = _stored(store)
    assert kept >= 20
    resumed = subprocess.run(command, check=False, cwd=place, text=True, capture_output=True, timeout=240)
    assert resumed.returncode == 0, resumed.stderr
    same = ("verdict", "lower_bound", "claim_test", "plan_sha256", "trials")
    assert {key: json.loads(resumed.stdout)[key] for key in same} == {key: whole[key] for key in same}


def _stored(path: Path) -> int:
    if not path.exists():
        return 0
    with SqliteStore.reading(path) as store:
        return sum(run.trials for run in store.runs() if not run.is_part)
