"""Loops by hand, watched at the steps of their optimizers only: right ones are not accused, faults are named."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


def watched(tmp_path: Path, *words: str, options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """What is said of every training of a script."""
    command = [
        sys.executable, "-m", "epsilometer", "watch", "--noise-multiplier", "1", "--clip-norm", "1", *options, "--out",
        str(tmp_path / "out"), "--", sys.executable, "-W", "ignore", str(SCRIPTS / words[0]), *words[1:],
    ]  # fmt: skip
    place = tmp_path / "place"
    place.mkdir()
    found = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=place,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=600,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    result: list[dict[str, Any]] = json.loads((tmp_path / "out" / "result.json").read_text())["trainings"]
    return result


def standing(training: dict[str, Any]) -> dict[str, str]:
    return {one["statement"]: one["standing"] for one in training["statements"]}


LOOPS = ("vmap", "single", "hooks", "microbatches", "functional")
FAULTS = {
    "no-noise": {"noise"},
    "half-noise": {"noise"},
    "no-bias-noise": {"noise"},
    "sometimes": {"noise"},
    "same-noise": {"noise"},
    "divided": {"noise"},
    "no-clipping": {"clipping"},
    "late-clipping": {"clipping"},
    "mean-clipping": {"clipping"},
}
CHEAP = [("hooks", "half-noise")]


def pair(loop: str, fault: str) -> Any:
    return (loop, fault) if (loop, fault) in CHEAP else pytest.param(loop, fault, marks=pytest.mark.full)


@pytest.mark.parametrize(("loop", "fault"), [pair(loop, fault) for loop in LOOPS for fault in FAULTS])
def test_faults(tmp_path: Path, loop: str, fault: str) -> None:
    (training,) = watched(tmp_path, "by_hand.py", loop, fault, options=("--sample-rate", "0.08"))
    assert training["verdict"] == "violated"
    assert {name for name, how in standing(training).items() if how == "broken"} == FAULTS[fault]
    if fault == "half-noise":
        assert "effective noise multiplier at most 0." in training["reason"]
        assert "ε is at least" in training["reason"]


@pytest.mark.full
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("seed", ["1", "-1"])
def test_right_loops(tmp_path: Path, loop: str, seed: str) -> None:
    (training,) = watched(tmp_path, "by_hand.py", loop, "right", "--seed", seed, options=("--sample-rate", "0.08"))
    assert training["verdict"] != "violated", training["reason"]


@pytest.mark.full
def test_a_loop_of_which_all_is_known_is_consistent(tmp_path: Path) -> None:
    """Poisson samples, an accountant that is told of every step."""
    words = ("by_hand.py", "hooks", "right", "--accountant", "opacus")
    (training,) = watched(tmp_path, *words, options=("--sample-rate", "0.08"))
    assert training["verdict"] == "consistent", training["reason"]


@pytest.mark.full
def test_steps_that_an_accountant_was_not_told_of(tmp_path: Path) -> None:
    (training,) = watched(tmp_path, "by_hand.py", "hooks", "half-accounted", "--accountant", "dp-accounting")
    assert standing(training)["accounting"] == "broken"


UNLIKE_OTHERS = (
    "per-microbatch", "per-record", "backward-hooks", "box-muller", "default-rng", "ftrl", "gan", "vae", "diffusion",
    "public", "pretrained", "unseeded", "early-noise", "dropout",
)  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("what", UNLIKE_OTHERS)
def test_right_loops_that_look_unlike_others(tmp_path: Path, what: str) -> None:
    for training in watched(tmp_path, "by_hand_right.py", what):
        assert training["verdict"] == "inconclusive", training["reason"]
        assert "broken" not in standing(training).values()


@pytest.mark.full
@pytest.mark.parametrize("kind", ["numpy", "torch", "jax"])
def test_one_line_in_a_loop_without_an_optimizer(tmp_path: Path, kind: str) -> None:
    (training,) = watched(tmp_path, "by_line.py", kind, "half-noise", options=("--sample-rate", "0.2"))
    assert standing(training)["noise"] == "broken"


@pytest.mark.full
@pytest.mark.parametrize("kind", ["numpy", "torch", "jax"])
def test_right_loops_by_one_line(tmp_path: Path, kind: str) -> None:
    (training,) = watched(tmp_path, "by_line.py", kind, options=("--sample-rate", "0.2"))
    assert training["verdict"] != "violated", training["reason"]
