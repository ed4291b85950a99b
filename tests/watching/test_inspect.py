"""`epsilometer inspect` on real scripts, of which nothing is changed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from epsilometer.watching.checks.names import NAMES

SCRIPT = Path(__file__).parent / "scripts" / "digits.py"


def inspect(*options: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "epsilometer", "inspect", *options, "--", *command]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


def digits(*options: str) -> list[str]:
    return [sys.executable, str(SCRIPT), "--steps", "12", *options]


def statuses(file: Path) -> dict[str, str]:
    (training,) = json.loads(file.read_text())["trainings"]
    return {check["name"]: check["status"] for check in training["checks"]}


def test_a_right_script_and_its_own_output(tmp_path: Path) -> None:
    file = tmp_path / "checks.json"
    shown = inspect("--json", str(file), command=digits())
    plain = subprocess.run(digits(), capture_output=True, text=True, check=True)
    assert (shown.returncode, shown.stdout) == (0, plain.stdout)  # the same weights, history and next random numbers
    found = statuses(file)
    assert list(found) == list(NAMES)
    assert [name for name, status in found.items() if status == "failed"] == ["nonfinite-record"]
    assert "noise-scale  passed  noise ×" in shown.stderr
    assert "epsilometer: checks: 1 failed (nonfinite-record), 22 passed, 5 not applicable" in shown.stderr


def second_run(file: Path, *seeding: str) -> subprocess.CompletedProcess[str]:
    options = ("--second-run", "--require", "passed", "--ignore", "nonfinite-record", "--json", str(file))
    shown = inspect(*options, command=digits("--physical", "64", *seeding))
    assert shown.stdout.count('"weights"') == 1  # the second run's output is not the script's
    found = statuses(file)
    assert found["sampler"] == found["sample-rate"] == "passed"  # of whole batches, not of their parts
    return shown


@pytest.mark.full
def test_noise_that_does_not_follow_the_seed(tmp_path: Path) -> None:
    file = tmp_path / "checks.json"
    assert second_run(file, "--noise-generator").returncode == 4
    assert statuses(file)["fresh-noise"] == "failed"


@pytest.mark.full
def test_noise_that_follows_the_seed(tmp_path: Path) -> None:
    file = tmp_path / "checks.json"
    assert second_run(file).returncode == 0
    assert statuses(file)["fresh-noise"] == "passed"


@pytest.mark.full
@pytest.mark.parametrize(("own", "code"), [("7", 7), ("0", 4)])
def test_the_scripts_exit_code_comes_first(own: str, code: int) -> None:
    shown = inspect("--require", "passed", command=digits("--exit", own))
    assert shown.returncode == code  # 4: no Opacus so far copes with NaN
    assert "nonfinite-record  failed" in shown.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("code", "words"),
    [("print('hello')", "opacus was never imported"), ("import opacus", "make_private was not called")],
    ids=["no-opacus", "no-training"],
)
def test_nothing_to_check(code: str, words: str) -> None:
    shown = inspect("--require", "passed", command=[sys.executable, "-c", code])
    assert words in shown.stderr
    assert shown.returncode == 4


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["python", "train.py"], "epsilometer inspect -- python train.py"),
        (["--ignore", "samplers", "--", "python"], "did you mean 'sampler'?"),
        (["--json", "nowhere/checks.json", "--", "python"], "a file in a directory that exists"),
        (["--json", ".", "--", "python"], "a file in a directory that exists"),
        (["--require", "all", "--", "python"], "passed"),
        (["--json", "train.py", "--", "python"], "a new file, or one that epsilometer inspect has written"),
        (["--json", "list.json", "--", "python"], "a new file, or one that epsilometer inspect has written"),
        (["--json", "dangling", "--", "python"], "this links to nothing"),
        (["--json", "loop", "--", "python"], "this links to nothing"),
    ],
    ids=[
        "no-dashes", "unknown-check", "no-directory", "a-directory", "unknown-requirement", "a-script", "other-json",
        "dangling", "loop",
    ],
)  # fmt: skip
def test_bad_input(words: list[str], remedy: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("mine = 1\n")
    (tmp_path / "list.json").write_text('{"schema": 1, "trainings": [], "figures": {}}')  # as of `watch`
    (tmp_path / "dangling").symlink_to("nothing")
    (tmp_path / "loop").symlink_to("loop")
    before = sorted(tmp_path.iterdir())
    command: Any = [sys.executable, "-m", "epsilometer", "inspect", *words]
    shown = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert shown.returncode == 2
    assert remedy in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "train.py").read_text() == "mine = 1\n"


def test_its_own_file_is_written_again(tmp_path: Path) -> None:
    for code in (0, 7):
        shown = inspect("--json", str(tmp_path / "checks.json"), command=["sh", "-c", f"exit {code}"])
        assert shown.returncode == code
        assert json.loads((tmp_path / "checks.json").read_text())["exit_code"] == code
    assert [path.name for path in tmp_path.iterdir()] == ["checks.json"]


@pytest.mark.parametrize("how", ["inspect", "watch"])
def test_a_command_goes_on_whatever_becomes_of_its_recording(tmp_path: Path, how: str) -> None:
    """What is recorded is taken away while it is read; the command was left alone then, with nobody to wait for it."""
    script = (
        "import os, pathlib, shutil, time\n"
        "place = pathlib.Path(os.environ['EPSILOMETER_WATCH'])\n"
        "(place / 'x.jsonl').mkdir()\n"
        "time.sleep(1.0)\n"  # five looks
        "shutil.rmtree(place)\n"
        "pathlib.Path('end').write_text('reached')\n"
    )
    words: Any = [sys.executable, "-m", "epsilometer", how, "--", sys.executable, "-c", script]
    shown = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert (tmp_path / "end").read_text() == "reached"
    assert shown.stderr.count("\n") == 1
    assert "2 recordings cannot be read any more" in shown.stderr
