"""`epsilometer watch --neighbours` on real scripts: every fault is named, right ones are not, and nothing is left."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


def command(tmp_path: Path, *words: str, neighbours: int) -> list[str]:
    return [
        sys.executable, "-m", "epsilometer", "watch", "--neighbours", str(neighbours), "--out", str(tmp_path / "out"),
        "--", sys.executable, "-W", "ignore", *words,
    ]  # fmt: skip


def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "tmp").mkdir(exist_ok=True)
    return {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path / "tmp")}


def replayed(tmp_path: Path, *words: str, neighbours: int = 1, code: int = 0) -> list[dict[str, tuple[str, str]]]:
    """Of every training, what its checks of the replay say."""
    place = tmp_path / "place"
    place.mkdir(exist_ok=True)
    found = subprocess.run(
        command(tmp_path, *words, neighbours=neighbours),
        check=False,
        capture_output=True,
        text=True,
        cwd=place,
        env=environment(tmp_path),
        timeout=300,
    )
    assert found.returncode == code, found.stderr
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    return [
        {one["name"]: (one["status"], one["reason"]) for one in training["checks"] if "replayed" in one["name"]}
        for training in result["trainings"]
    ]


def failing(found: dict[str, tuple[str, str]]) -> set[str]:
    return {name for name, (status, _) in found.items() if status == "failed"}


def script(name: str, what: str, *others: str) -> list[str]:
    return [str(SCRIPTS / name), what, *others]


def test_a_right_script_and_what_it_leaves(tmp_path: Path) -> None:
    """It has dropout, so that no record can be left out of a batch."""
    place = tmp_path / "place"
    place.mkdir()
    (place / "data.txt").write_text("the user's")
    (found,) = replayed(tmp_path, *script("replayed.py", "dropout"))
    assert {name for name, (status, _) in found.items() if status == "passed"} == {
        "replayed-clipping", "replayed-sums", "replayed-batches", "replayed-state", "replayed-steps",
    }  # fmt: skip
    assert "left out" not in found["replayed-clipping"][1]
    assert [one.name for one in place.iterdir()] == ["data.txt"]
    assert not list((tmp_path / "tmp").iterdir())
    assert not list((tmp_path / "out").glob("**/*lines*"))


FAULTS = {
    "momentum-raw": "replayed-state",
    "regulariser": "replayed-state",
    "averaging": "replayed-state",
    "private-rate": "replayed-state",
    "class-weights": "replayed-sums",
    "standardised": "replayed-clipping",
    "own-norm": "replayed-clipping",
    "frozen-norm": "replayed-clipping",
    "last-unclipped": "replayed-clipping",
    "augmented": "replayed-clipping",
    "hard-examples": "replayed-clipping",
    "actual-batch": "replayed-state",
    "private-stop": "replayed-steps",
    "skips": "replayed-steps",
    "best-state": "replayed-state",
    "worst-record": "replayed-files",
    "candidates": "replayed-batches",
    "balanced": "replayed-clipping",
    "calibrated": "replayed-state",
    "averaged-statistics": "replayed-state",
}
CHEAP = ("class-weights",)


@pytest.mark.parametrize("what", [one if one in CHEAP else pytest.param(one, marks=pytest.mark.full) for one in FAULTS])
def test_faults(tmp_path: Path, what: str) -> None:
    (found,) = replayed(tmp_path, *script("replayed.py", what))
    assert FAULTS[what] in failing(found)
    if FAULTS[what] != "replayed-clipping":
        assert failing(found) == {FAULTS[what]}


ONE_NEIGHBOUR = "not compared: what is computed before training (--neighbours 2)"
RIGHT = [
    *(script("replayed.py", what) for what in (
        "right", "augmentation", "adamw", "own-baseline", "schedule", "attention", "early-exit", "adaclip", "per-layer",
    )),
    script("replayed.py", "right", "--workers", "2"),
    script("replayed.py", "right", "--unseeded"),
    *(script("replayed_more.py", what) for what in (
        "ghost", "functorch", "manager", "accumulation", "mixed", "split", "perturbed", "pretrained", "normalised",
        "resumed", "declared-stop", "engines",
    )),
]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("words", RIGHT, ids=lambda words: " ".join([Path(words[0]).stem, *words[1:]]))
def test_right_scripts_pass(tmp_path: Path, words: list[str]) -> None:
    for found in replayed(tmp_path, *words):
        statuses = {name: status for name, (status, _) in found.items() if name != "replayed-files"}
        assert set(statuses.values()) == {"passed"}, found
        reasons = "".join(reason for _, reason in found.values())
        assert "not compared" not in reasons.replace(ONE_NEIGHBOUR, "")


UNTESTED = ("gan", "noisy-stop", "noisy-rate")


@pytest.mark.full
@pytest.mark.parametrize("what", UNTESTED)
def test_right_scripts_that_cannot_be_followed_are_not_accused(tmp_path: Path, what: str) -> None:
    (found,) = replayed(tmp_path, *script("replayed_more.py", what))
    assert not failing(found)
    assert "random numbers of its own between steps" in found["replayed-state"][1]


@pytest.mark.full
def test_texts_of_unequal_length(tmp_path: Path) -> None:
    """Another length may be another number of random numbers: then nothing is said of the steps that follow."""
    for number in range(3):
        place = tmp_path / str(number)
        place.mkdir()
        (found,) = replayed(place, *script("replayed_more.py", "texts"), neighbours=3)
        assert not failing(found)
        reasons = found["replayed-state"][1]
        assert "not compared" not in reasons or "random streams part" in reasons


@pytest.mark.full
def test_a_record_that_reached_no_sum_tests_nothing(tmp_path: Path) -> None:
    """At so small a rate most batches are empty."""
    (found,) = replayed(tmp_path, *script("replayed.py", "right", "--records", "400", "--batch", "1", "--steps", "4"))
    assert not failing(found)
    status, reason = found["replayed-clipping"]
    assert (status, "tests little" in reason) == ("not applicable", True)


@pytest.mark.full
def test_checkpoints(tmp_path: Path) -> None:
    """One that the script finds is where every run begins; one that it writes may hold no records."""
    (found,) = replayed(tmp_path, *script("replayed_more.py", "resumed"))
    assert found["replayed-files"] == ("passed", "1 checkpoints hold the same arrays")
    assert not list((tmp_path / "place").iterdir())
    (tmp_path / "second").mkdir()
    (found,) = replayed(tmp_path / "second", *script("replayed_more.py", "raw-checkpoint"))
    assert failing(found) == {"replayed-files"}
    assert "checkpoint.pt (mean)" in found["replayed-files"][1]


def table(path: Path, other: bool) -> None:
    draw = np.random.default_rng(5)
    labels = draw.integers(0, 4, 80)
    rows = np.column_stack([draw.normal(size=(80, 16)) + np.eye(4)[labels].repeat(4, axis=1), labels])
    if other:
        rows[7] = np.append(np.full(16, 9.0), (labels[7] + 1) % 4)
    np.savetxt(path, rows, delimiter=",")


@pytest.mark.parametrize(
    ("what", "broken"),
    [
        ("read-normalised", {"replayed-sums"}),
        pytest.param("read-weights", {"replayed-sums"}, marks=pytest.mark.full),
        pytest.param("read", set(), marks=pytest.mark.full),
    ],
)
def test_the_users_own_neighbour(tmp_path: Path, what: str, broken: set[str]) -> None:
    (tmp_path / "place").mkdir()
    for neighbour in (0, 1):
        table(tmp_path / "place" / f"data-{neighbour}.csv", bool(neighbour))
    words = script("replayed_more.py", what, "--data", "data-{neighbour}.csv")
    (found,) = replayed(tmp_path, *words)
    assert failing(found) == broken


@pytest.mark.full
@pytest.mark.parametrize(("what", "broken"), [("read-weights", {"replayed-sums"}), ("read", set())])
def test_a_record_of_what_the_script_reads(tmp_path: Path, what: str, broken: set[str]) -> None:
    (tmp_path / "place").mkdir()
    table(tmp_path / "place" / "data.csv", False)
    (found,) = replayed(tmp_path, *script("replayed_more.py", what, "--data", "data.csv"), neighbours=2)
    assert failing(found) == broken
    assert "not compared" not in found["replayed-sums"][1]


@pytest.mark.full
def test_a_record_that_is_public(tmp_path: Path) -> None:
    """What the script reads may hold other records than those that it is to protect."""
    (tmp_path / "place").mkdir()
    table(tmp_path / "place" / "data.csv", False)
    (found,) = replayed(tmp_path, *script("replayed_more.py", "read-public", "--data", "data.csv"), neighbours=2)
    assert not failing(found)
    assert "that record is not in the data of the training" in found["replayed-sums"][1]


FRAGILE = """
import sys
sys.argv = ["replayed.py", "right", "--steps", "6"]
import torch
seen = torch.nn.functional.cross_entropy
def checked(*given, **named):
    found = seen(*given, **named)
    assert found.max() < 50, "diverged"
    return found
torch.nn.functional.cross_entropy = checked
exec(open({path!r}).read())
raise SystemExit(7)
"""


@pytest.mark.full
def test_a_neighbour_that_breaks_down_accuses_nobody(tmp_path: Path) -> None:
    """A huge record is too much for this script; the reference goes on."""
    (tmp_path / "fragile.py").write_text(FRAGILE.format(path=str(SCRIPTS / "replayed.py")))
    (found,) = replayed(tmp_path, str(tmp_path / "fragile.py"), code=7)
    assert not failing(found)
    assert "exit code 1" in found["replayed-state"][1]


@pytest.mark.full
def test_ctrl_c_ends_all_runs(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    words = command(tmp_path, *script("replayed.py", "right", "--steps", "100000"), neighbours=1)
    process = subprocess.Popen(
        words, cwd=tmp_path / "place", env=environment(tmp_path), start_new_session=True, stderr=subprocess.DEVNULL
    )
    time.sleep(40)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) != 0
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert not list((tmp_path / "tmp").iterdir())


def test_what_makes_no_sense(tmp_path: Path) -> None:
    for words, said in (
        (["--neighbours", "-1"], "neighbours"),
        (["--neighbours", "1", "--canaries", "model"], "canaries"),
    ):
        found: Any = subprocess.run(
            [sys.executable, "-m", "epsilometer", "watch", *words, "--", "true"],
            check=False, capture_output=True, text=True, cwd=tmp_path, timeout=60,
        )  # fmt: skip
        assert found.returncode == 2
        assert said in found.stderr
