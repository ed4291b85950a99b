"""Whatever is asked: a known exit code, one line for a mistake, nothing that commands a terminal, and soon."""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from fuzzing import (
    FLAGS,
    GOOD,
    NEVER,
    OPTIONS,
    SMALL,
    STAY,
    TRAIN,
    Hangs,
    command_line,
    controls,
    membership_spec,
    property_spec,
    reconstruction_spec,
    spec,
    watched,
)
from program import Shown
from stored import store_run
from test_watched_runs import store_watch

from epsilometer.data import digits

app_module = importlib.import_module("epsilometer.cli.app")

LINES, SPECS, PROCESSES = 2000, 20_000, 40
SEVERAL, TRAINED = 100, 100
PATIENCE = 20.0  # seconds of a processor
HANGS = 120.0  # seconds of anybody's time: far more than any answer takes, also on a busy machine
SCORES = "world,score\n" + "".join(f"{i % 2},{i * i % 97 + 20 * (i % 2)}\n" for i in range(60))


TRAINING = """
import numpy as np

def train(data, seed, scale=1.0):
    weights = data.x.sum(axis=0) + scale * np.random.default_rng(seed).normal(size=(2, 5))
    return lambda x: x @ weights.T

def score(model, record):
    return 0.0

def predict(x):
    return np.full((len(x), 2), 0.5)

def release(value, rng):
    return sum(value) + rng.laplace()
"""

TINY = (
    '[data]\nname = "digits"\nclasses = [0, 1]\nper_class = 30\n'
    "[training]\nsample_rate = 0.5\nsteps = 5\nnoise_multiplier = 2.0\n"
)
GIVEN = '[target]\npredict = "own.py:predict"\nmembers = "my.npz"\nothers = "my.npz"\n[membership]\nreferences = 0\n'

SHARED = '[data]\nname = "digits"\nclasses = [0, 1]\nper_class = 30\n[collaboration]\nrounds = 8\nhidden = [4]\n'
REBUILT = '[data]\nname = "digits"\nper_class = 12\n[reconstruction]\nhidden = [4]\n'
STUDIES = ("membership", "membership given", "instances", "property", "reconstruct")


@pytest.fixture
def files(place: Path) -> Path:
    """What command lines may name."""
    (place / "scores.csv").write_text(SCORES)
    (place / "canaries.csv").write_text(SCORES.replace("world", "member"))
    (place / "odd.csv").write_bytes(b"world,score\n0,\x1b[31m\n")
    (place / "spec.toml").write_text("[training]\nsteps = 20\n")
    (place / "tiny.toml").write_text(TINY)
    (place / "given.toml").write_text(GIVEN)
    (place / "shared.toml").write_text(SHARED)
    (place / "rebuilt.toml").write_text(REBUILT)
    (place / "rows.txt").write_text("3\n4\n")
    (place / "dangling").symlink_to("nothing")
    (place / "loop").symlink_to("loop")
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

    for name in (
        "auditing.preview", "auditing.run", "auditing.choose_adversary", "reproductions.Reproduction.rows",
        "membership.run_membership", "instances.run_instances", "collaborative.run_property",
        "reconstruction.run_reconstruction", "training.pretrain",
    ):  # fmt: skip
        monkeypatch.setattr(f"epsilometer.{name}", stop)
    monkeypatch.setattr("epsilometer.watching.launch.run.follow", lambda *_: 0)
    monkeypatch.setattr("epsilometer.overview.server.FolderServer.serve_forever", stop)
    monkeypatch.setattr(sys.stdout, "fileno", lambda: 1, raising=False)  # of the one that `here` has replaced
    built = typer.main.get_command(app_module.program())
    monkeypatch.setattr(app_module, "program", lambda _: built)
    monkeypatch.setattr("epsilometer.data.digits", functools.cache(digits))


def processor_seconds() -> float:
    """Of this process and of those that it has waited for."""
    return sum(os.times()[:4])


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


def ask(ways: Iterable[Any], answer: Callable[[Any], Shown], hangs: float = HANGS) -> None:
    """Ask in all ways, and tell of all answers that were wrong."""
    found = []
    for way in ways:
        started = processor_seconds()
        try:
            with watched(hangs):
                shown = answer(way)
        except Hangs:
            found.append(f"HANGS: no answer in {hangs:g} s {way!r:.300}")
            continue
        if wrong := complaints(shown, processor_seconds() - started):
            found.append(f"{wrong} {way!r:.300} {shown!r:.500}")
    assert not found, "\n".join(found)


def try_lines(here: Callable[..., Shown], seeds: range) -> None:
    ask(map(command_line, seeds), lambda line: here(*line))


def try_specs(
    here: Callable[..., Shown], files: Path, seeds: range, command: str = "preview", text: Callable[[int], bytes] = spec
) -> None:
    def check(text: bytes) -> Shown:
        (files / "fuzzed.toml").write_bytes(text)
        return here(command, "fuzzed.toml")

    ask(map(text, seeds), check)


def test_what_hangs_is_told() -> None:
    """A wait takes no time of a processor, so that nothing else would show it."""
    with pytest.raises(AssertionError, match=r"HANGS: no answer in 0\.1 s 'once'"):
        ask(["once"], lambda _: time.sleep(3600), hangs=0.1)


def test_every_command_and_option_is_asked_for() -> None:
    program = typer.main.get_command(app_module.program())
    for name, command in program.commands.items():
        asked = [key for key, line in GOOD.items() if line[:1] == [name]]
        words = {word for key in asked for word in (*OPTIONS[key], *GOOD[key])}
        options = {word for one in command.params for word in (*one.opts, *one.secondary_opts) if word.startswith("--")}
        assert asked, name
        assert options - words <= {"--json", *NEVER}, name
        flags = {word for one in command.params if getattr(one, "is_flag", False) for word in one.opts}
        assert flags <= {"--json", *NEVER, *FLAGS}, name


@pytest.mark.usefixtures("plan_only", "files")
def test_some_command_lines(here: Callable[..., Shown]) -> None:
    try_lines(here, range(60))


@pytest.mark.usefixtures("plan_only", "files")
def test_some_command_lines_of_several_runs(here: Callable[..., Shown]) -> None:
    several = ("sweep", "report", "diff", "serve", "runs")
    ask((command_line(seed, several) for seed in range(SEVERAL)), lambda line: here(*line))


@pytest.mark.usefixtures("plan_only", "files")
def test_some_command_lines_of_records(here: Callable[..., Shown]) -> None:
    ask((command_line(seed, STUDIES) for seed in range(SEVERAL)), lambda line: here(*line))


@pytest.mark.usefixtures("plan_only")
def test_some_specs_of_records(here: Callable[..., Shown], files: Path) -> None:
    try_specs(here, files, range(100), "membership", membership_spec)
    try_specs(here, files, range(50), "instances")
    try_specs(here, files, range(100), "property", property_spec)
    try_specs(here, files, range(100), "reconstruct", reconstruction_spec)


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
@pytest.mark.usefixtures("plan_only")
@pytest.mark.parametrize("command", ["membership", "instances", "ladder", "sweep --vary=audit.seed=1,2"])
def test_specs_of_other_commands(here: Callable[..., Shown], files: Path, command: str) -> None:
    text = membership_spec if command == "membership" else spec
    name, *rest = command.split()
    try_specs(lambda *line: here(*line, *rest), files, range(SPECS, SPECS + SPECS // 10), name, text)


@pytest.mark.full
@pytest.mark.usefixtures("files")
def test_small_trainings(here: Callable[..., Shown]) -> None:
    """Attacks on membership, costs of records, properties and reconstructions that are really computed."""
    lines = (command_line(seed, STUDIES, SMALL) for seed in range(TRAINED))
    small = {"tiny.toml", "given.toml", "shared.toml", "rebuilt.toml"}
    ask((line for line in lines if set(line) & small), lambda line: here(*line))


@pytest.mark.full
def test_command_lines_as_processes(files: Path) -> None:
    """A sample through the whole program, with its supervisor; what trains is left out."""
    lines = [line for line in map(command_line, range(10_000, 10_200)) if not set(line) & {*TRAIN, *STAY}][:PROCESSES]

    def run(line: list[str]) -> Shown:
        command = [sys.executable, "-m", "epsilometer", *line]
        with subprocess.Popen(command, cwd=files, stdout=-1, stderr=-1, text=True) as process:
            try:
                shown, told = process.communicate()
            except Hangs:  # it must not be waited for
                process.kill()
                raise
        return Shown(process.returncode, shown, told)

    ask(lines, run)
