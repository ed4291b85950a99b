"""Results that somebody has edited, or sent: whatever they say, readers answer in a line, and nothing hides others."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzzing import controls, watched
from program import Shown, in_process
from test_watched_runs import store_watch

from epsilometer.overview.folder import Folder
from epsilometer.overview.pages import index_page, run_page

SMALL = (
    '[data]\nname = "digits"\nclasses = [0, 1]\nper_class = 30\n[training]\nsample_rate = 0.5\nsteps = 5\n'
    "noise_multiplier = 2.0\n"
)
SHARED = '[data]\nname = "digits"\nclasses = [0, 1]\n[collaboration]\nrounds = 8\nhidden = [4]\n'
REBUILT = "[reconstruction]\nrecords = 3\nhidden = [4]\nnoises = [0.0, 0.1]\n"
MADE = {
    "audit": ["audit", "audit.toml", "--trials", "20"],
    "membership": ["membership", "small.toml", "--references", "4"],
    "instances": ["instances", "small.toml", "--records", "6", "--trainings", "2"],
    "property": ["property", "shared.toml", "--trials", "4"],
    "reconstruct": ["reconstruct", "rebuilt.toml"],
    "coverage": ["coverage", "--repetitions", "2", "--trials", "20", "--bound", "union-bound"],
    "ladder": ["ladder", "ladder.toml", "--trials", "20"],
    "sweep": ["sweep", "audit.toml", "--trials", "20", "--vary", "training.steps=5,6"],
}
DEEP = "a list in a list, and so on"  # stands for it, since nobody can write it in Python
ODD = (
    None, True, [], {}, [[]], "", "x", "nan", -1, 0, 10**400, -(10**400), 1e308, float("nan"), float("inf"), "\x1b[31m",
    "a\nb", "<script>", DEEP, [1, 2], {"a": 1}, {"epsilon": 1}, "9" * 5000, [None], ["x"],
)  # fmt: skip


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A run of a kind, made when it is first asked for."""
    place = tmp_path_factory.mktemp("runs")
    (place / "small.toml").write_text(SMALL)
    (place / "audit.toml").write_text(SMALL + "[claim]\nepsilon = 4.0\n")
    (place / "shared.toml").write_text(SHARED)
    (place / "rebuilt.toml").write_text(REBUILT)
    access = '[access]\nsees = "final-model"\ncontrols = ["records"]\n'
    (place / "ladder.toml").write_text(SMALL + "[claim]\nepsilon = 4.0\n" + access)
    store_watch(place / "watch")

    def run(name: str) -> Path:
        if not (place / name).exists():
            quiet = [] if name == "coverage" else ["--executor", "inline", "--quiet"]
            shown = in_process(*MADE[name], *quiet, "--out", name, cwd=place)
            assert shown.returncode == 0, shown.stderr
        return place / name

    return run


@pytest.fixture
def folder(make: Callable[[str], Path], place: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of a run that the test names, to spoil, beside an audit that stays whole."""
    name = request.getfixturevalue("name")
    (place / "small.toml").write_text(SMALL)
    for source, target in ((name, name), ("audit", "whole"), ("watch", "watched")):
        shutil.copytree(make(source), place / "all" / target)
    return place / "all"


def leaves(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a document: what holds it, and its key there."""
    for key in list(document) if isinstance(document, dict) else range(len(document)):
        yield document, key
        if isinstance(document[key], dict | list):
            yield from leaves(document[key])


def spoiled(document: Any, rng: random.Random) -> str:
    """The document with a place or two changed or taken away, and nothing of its size."""
    document = json.loads(json.dumps(document))
    for _ in range(rng.choice((1, 1, 2))):
        top = rng.random() < 0.3
        holder, key = rng.choice([(document, key) for key in document] if top else list(leaves(document)))
        if isinstance(holder, dict) and rng.random() < 0.2:
            del holder[key]
        else:
            holder[key] = rng.choice(ODD)
    return json.dumps(document).replace(json.dumps(DEEP), "[" * 5000 + "]" * 5000)


def complaints(shown: Shown) -> list[str]:
    told = [line for line in shown.stderr.splitlines() if line.startswith("epsilometer: ")]
    wrong = {
        "exit code": shown.returncode not in (0, 2),
        "traceback": "Traceback" in shown.stderr,
        "control characters": bool(controls(shown.stdout + shown.stderr)),
        "not one line": shown.returncode == 2 and len(told) != 1,
    }
    return [name for name, is_so in wrong.items() if is_so]


def file_of(directory: Path) -> Path:
    return next(directory / name for name in ("result.json", "calibration.json") if (directory / name).exists())


def look(here: Callable[..., Shown], folder: Path, name: str, text: str) -> list[str]:
    """What is wrong with whoever reads that result."""
    file_of(folder / name).write_text(text)
    lines = [["report", f"all/{name}"], ["runs", f"all/{name}"], ["diff", f"all/{name}", "all/whole"]]
    if name == "instances":
        lines.append(["instances", "small.toml", "--records", "6", "--against", f"all/{name}", "--out", "dangling"])
    found = []
    for line in lines:
        shown = here(*line)
        if wrong := complaints(shown):
            found.append(f"{wrong} {line} {shown!r:.400}")
    return found


@pytest.mark.parametrize("name", [*MADE, "watch"])
@pytest.mark.parametrize("count", [12, pytest.param(60, marks=pytest.mark.full)])
def test_whatever_a_result_says(here: Callable[..., Shown], folder: Path, name: str, count: int) -> None:
    os.symlink("nothing", folder.parent / "dangling")  # nothing is trained: it is refused after all that is read
    document = json.loads(file_of(folder / name).read_text())
    found = []
    for seed in range(count):
        text = spoiled(document, random.Random(seed))
        found += [f"{seed}: {line}" for line in look(here, folder, name, text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", ["audit"])
def test_pipes_keep_nobody_waiting(here: Callable[..., Shown], folder: Path, name: str) -> None:
    """A pipe that nobody writes to, in the place of a file; whoever opened it would wait for ever."""
    again = ["audit", "all/../audit.toml", "--trials", "20", "--executor", "inline", "--quiet", "--out", "all/audit"]
    (folder.parent / "audit.toml").write_text(SMALL + "[claim]\nepsilon = 4.0\n")
    kept = folder / name / "result.json"
    kept.unlink()
    os.mkfifo(kept)
    for line, code in ((["runs", "all/audit"], 0), (["report", "all/audit"], 2), (again, 0)):
        with watched(120.0):
            shown = here(*line)
        assert shown.returncode == code, shown.stderr
    assert json.loads(kept.read_text())["verdict"]
    assert stat.S_ISFIFO((folder / name / "result.edited-1.json").stat().st_mode)
    sweep = folder.parent / "table"
    sweep.mkdir()
    os.mkfifo(sweep / "result.json")
    (sweep / "trials.sqlite").touch()
    with watched(120.0):
        shown = here("ladder", "audit.toml", "--trials", "20", "--out", "table")
    assert (shown.returncode, "expected a result.json of this program" in shown.stderr) == (2, True), shown.stderr
    instances = ["instances", "small.toml", "--records", "4", "--against", "all/audit"]
    kept.unlink()
    os.mkfifo(kept)
    log = folder / name / "trials.sqlite-wal"
    log.unlink(missing_ok=True)
    os.mkfifo(log)
    for line in (instances, again, ["runs", "all/audit"], ["report", "all/audit"]):
        with watched(120.0):
            shown = here(*line)
        assert (shown.returncode, shown.stderr.count("\n")) == (2, 1), shown.stderr
    assert stat.S_ISFIFO(log.stat().st_mode)


@pytest.mark.parametrize("name", [*MADE, "watch"])
def test_the_page_of_a_folder_shows_the_others(folder: Path, name: str) -> None:
    document = json.loads(file_of(folder / name).read_text())
    for seed in range(40):
        file_of(folder / name).write_text(spoiled(document, random.Random(1000 + seed)))
        entries, _ = Folder(folder).entries()
        assert {"whole", "watched"} <= {entry.name for entry in entries if not entry.problem}
        index_page("all", entries, True)
        for entry in entries:
            run_page(entry)


@pytest.mark.parametrize("name", ["watch"])
def test_a_watched_bound_without_its_kind_is_told_in_one_line(
    here: Callable[..., Shown], folder: Path, name: str
) -> None:
    document = json.loads(file_of(folder / name).read_text())
    del document["trainings"][0]["epsilon"]["family_bound"]["kind"]
    assert look(here, folder, name, json.dumps(document)) == []
