"""Whatever is asked: a known exit code, one line for a mistake, nothing that commands a terminal, and soon."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from fuzzing import STAY, TRAIN, command_line, controls, spec
from program import Shown
from stored import store_run
from test_watched_runs import store_watch

from epsilometer.data import digits

app_module = importlib.import_module("epsilometer.cli.app")

LINES, SPECS, PROCESSES = 2000, 20_000, 40
SEVERAL = 100
PATIENCE = 20.0  # seconds
SCORES = "world,score\n" + "".join(f"{i % 2},{i * i % 97 + 20 * (i % 2)}\n" for i in range(60))


TRAINING = """
import numpy as np

def train(data, seed, scale=1.0):
    weights = data.x.sum(axis=0) + scale * np.random.default_rng(seed).normal(size=(2, 5))
    return lambda x: x @ weights.T

def score(model, record):
    return 0.0

def release(value, rng):
    return sum(value) + rng.laplace()
"""


@pytest.fixture
def files(place: Path) -> Path:
    """What command lines may name."""
    (place / "scores.csv").write_text(SCORES)
    (place / "canaries.csv").write_text(SCORES.replace("world", "member"))
    (place / "odd.csv").write_bytes(b"world,score\n0,\x1b[31m\n")
    (place / "spec.toml").write_text("[training]\nsteps = 20\n")
    (place / "own.py").write_text(TRAINING)
    (place / "broken.py").write_text("def train(:\n")
    x, y = np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 2
    np.savez(place / "my.npz", x=x, y=y)
    np.savez(place / "numbers.npz", x=x / 10, y=np.cos(np.arange(40)))
    np.savez(place / "one.npz", x=-x[0], y=1)
    (place / "odd.npz").write_bytes((place / "my.npz").read_bytes()[:400])
    rows = [",".join(f"{value:.3f}" for value in record) + f",{label}" for record, label in zip(x, y, strict=True)]
    (place / "my.csv").write_text("\n".join(["a,b,c,d,e,label", *rows]))
    store_run(place / "run", pairs=25, epsilon=0.5)
    store_watch(place / "watched")
    (store_watch(place / "damaged", trainings=0) / "result.json").write_bytes(b"\x1b{")
    return place


@pytest.fixture
def plan_only(here: Callable[..., Shown], monkeypatch: pytest.MonkeyPatch) -> None:
    """What trains makes its plan, and stops; what is watched has ended. The parser is built once, digits read once."""

    def stop(*_: object, **__: object) -> None:
        raise typer.Exit(0)

    for name in ("auditing.preview", "auditing.run", "auditing.choose_adversary", "reproductions.Reproduction.rows"):
        monkeypatch.setattr(f"epsilometer.{name}", stop)
    monkeypatch.setattr("epsilometer.watching.launch.run.follow", lambda *_: 0)
    monkeypatch.setattr("epsilometer.several.server.FolderServer.serve_forever", stop)
    monkeypatch.setattr(sys.stdout, "fileno", lambda: 1, raising=False)  # of the one that `here` has replaced
    monkeypatch.setattr(app_module, "app", typer.main.get_command(app_module.app))
    monkeypatch.setattr("epsilometer.data.digits", functools.cache(digits))


def complaints(shown: Shown, seconds: float) -> list[str]:
    """What was wrong with an answer."""
    lines = [line for line in shown.stderr.splitlines() if line.startswith("epsilometer: ")]
    wrong = {
        "exit code": shown.returncode not in (0, 1, 2, 4, 130),
        "accusation without a verdict": shown.returncode == 1 and "violated" not in shown.stdout,
        "traceback": "Traceback" in shown.stderr,
        "control characters": bool(controls(shown.stdout + shown.stderr)),
        "not one line": shown.returncode == 2 and len(lines) != 1,
        f"{seconds:.1f} s": seconds > PATIENCE,
    }
    return [name for name, is_so in wrong.items() if is_so]


def ask(ways: Iterable[Any], answer: Callable[[Any], Shown]) -> None:
    """Ask in all ways, and tell of all answers that were wrong."""
    found = []
    for way in ways:
        started = time.process_time()
        shown = answer(way)
        if wrong := complaints(shown, time.process_time() - started):
            found.append(f"{wrong} {way!r:.300} {shown!r:.500}")
    assert not found, "\n".join(found)


def try_lines(here: Callable[..., Shown], seeds: range) -> None:
    ask(map(command_line, seeds), lambda line: here(*line))


def try_specs(here: Callable[..., Shown], files: Path, seeds: range) -> None:
    def check(text: bytes) -> Shown:
        (files / "fuzzed.toml").write_bytes(text)
        return here("check", "fuzzed.toml")

    ask(map(spec, seeds), check)


@pytest.mark.usefixtures("plan_only", "files")
def test_some_command_lines(here: Callable[..., Shown]) -> None:
    try_lines(here, range(60))


@pytest.mark.usefixtures("plan_only", "files")
def test_some_command_lines_of_several_runs(here: Callable[..., Shown]) -> None:
    several = ("sweep", "report", "diff", "serve", "runs")
    ask((command_line(seed, several) for seed in range(SEVERAL)), lambda line: here(*line))


@pytest.mark.usefixtures("plan_only")
def test_some_specs(here: Callable[..., Shown], files: Path) -> None:
    try_specs(here, files, range(300))


@pytest.mark.full
@pytest.mark.usefixtures("plan_only", "files")
@pytest.mark.parametrize("part", range(10))
def test_command_lines(here: Callable[..., Shown], part: int) -> None:
    try_lines(here, range(part * LINES // 10, (part + 1) * LINES // 10))


@pytest.mark.full
@pytest.mark.usefixtures("plan_only")
@pytest.mark.parametrize("part", range(10))
def test_specs(here: Callable[..., Shown], files: Path, part: int) -> None:
    try_specs(here, files, range(part * SPECS // 10, (part + 1) * SPECS // 10))


@pytest.mark.full
def test_command_lines_as_processes(files: Path) -> None:
    """A sample through the whole program, with its supervisor; what trains is left out."""
    lines = [line for line in map(command_line, range(10_000, 10_200)) if not set(line) & {*TRAIN, *STAY}][:PROCESSES]

    def run(line: list[str]) -> Shown:
        command = [sys.executable, "-m", "epsilometer", *line]
        done = subprocess.run(command, cwd=files, capture_output=True, text=True, check=False)
        return Shown(done.returncode, done.stdout, done.stderr)

    ask(lines, run)
