"""Directories of `watch --out` among other runs: listed, compared, shown in the browser, reported."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stored import store_run
from test_diff import cells

from epsilometer.json_values import json_values
from epsilometer.overview.folder import Folder
from epsilometer.overview.pages import index_page, run_page
from epsilometer.watching.facts import Facts
from epsilometer.watching.judging import Judging
from epsilometer.watching.monitor import Monitor
from epsilometer.watching.recording import Ended, MadePrivate, Step, Told
from epsilometer.watching.result import document_of
from epsilometer.watching.settings import Settings

EVIL = "<script>alert(1)</script>"


def store_watch(where: Path, noise: float = 1.0, trainings: int = 1, **changed: Any) -> Path:
    """What a watched command leaves; its trainings have so much of their noise."""
    where.mkdir(parents=True)
    Settings(seed=1).write(where)
    monitor, rng = Monitor(Judging(assume=("clipping", "sampling", "accounting"))), np.random.default_rng(0)
    for number in range(1, trainings + 1):
        monitor.take(MadePrivate(number, "DPOptimizer", 1.0, 1.0, 200, "extra", {}))
        for _ in range(20):
            coins = rng.random(200) < 0.5
            monitor.take(Step(number, coins + rng.normal(0, noise, 200), coins, 1.0, 1.0))
        monitor.take(Told(number, Facts(troubles={"sampling": EVIL})))
        monitor.take(Ended(number, 0, [[1.0, 0.1, 20]]))
    command = ["python", "train.py", EVIL]
    found = document_of(monitor, command=command, exit_code=0, begun="now", seconds=2.0)
    document = json_values({**found, **changed})
    (where / "result.json").write_text(json.dumps(document))
    return where


@pytest.fixture
def folder(place: Path) -> Path:
    store_watch(place / "right")
    store_watch(place / "half", noise=0.5, trainings=2)
    store_run(place / "audit", pairs=25, epsilon=0.75)
    (place / "begun").mkdir()
    Settings().write(place / "begun")
    return place


def test_runs_lists_them_with_their_verdicts(here, folder: Path) -> None:
    shown = here("runs", ".", "--json")
    assert shown.returncode == 0, shown.stderr
    listed = {(row["run"], row["verdict"]): row for row in json.loads(shown.stdout)["runs"]}
    assert sorted(listed, key=str) == [
        ("audit", "inconclusive"), ("begun", None), ("half", "violated"), ("right", "consistent"),
    ]  # fmt: skip
    right, half = listed["right", "consistent"], listed["half", "violated"]
    assert (right["kind"], right["trials"]["done"], right["adversary"]) == ("family", 20, "watch")
    assert right["proved"] < right["claimed"] == half["claimed"] < half["proved"]
    table = here("runs", ".").stdout
    assert "\t20 steps\t" in table
    assert f"\t{np.floor(right['proved'] * 1000) / 1000:.3f} (family)\twatch\tconsistent\t2.0 s\n" in table
    assert "begun\trunning or killed\t0 steps\t–\t–\twatch\t–\t" in table
    refused = here("runs", "right", "--export", "scores.csv")
    assert refused.returncode == 2
    assert "a run with a store of trials" in refused.stderr


def test_diff_puts_them_side_by_side(here, folder: Path) -> None:
    shown = here("diff", "right", "half", "--out", "both.html")
    assert shown.returncode == 0, shown.stderr
    found = cells(shown.stdout)
    assert found["verdict"] == ["consistent", "violated", "violated"]
    assert found["steps"] == ["20 steps"] * 3
    assert found["certified ε ≥"] == ["–"] * 3
    assert "other ε" not in found
    assert "half: training 2" in shown.stdout
    assert EVIL not in (folder / "both.html").read_text()
    mixed = here("diff", "right", "audit")
    assert mixed.returncode == 0, mixed.stderr
    assert cells(mixed.stdout)["steps or trials"][0] == "20 steps"


def test_the_page_shows_them_and_their_reports(here, folder: Path) -> None:
    assert here("report", "right").returncode == 0
    entries, complete = Folder(folder).entries()
    assert complete
    shown = {entry.name: entry for entry in entries}
    assert shown["right"].files == ("report.html", "result.json")
    page = index_page("runs", entries, complete)
    assert "running or killed" in page
    assert '<td class="violated">violated</td>' in page
    assert EVIL not in page + run_page(shown["right"])
    assert "what it states of its steps" in "".join(run_page(one) for one in entries if one.name == "half")
    report = (folder / "right" / "report.html").read_text()
    assert EVIL not in report
    assert "How much it leaks" in report
    assert "of a step, certified" in report


def test_what_cannot_be_read_hides_nothing(here, folder: Path) -> None:
    (folder / "right" / "result.json").write_text('{"trainings": [1]}')
    shown = here("runs", ".")
    assert shown.returncode == 0
    assert "right/result.json': expected the result of a watch" in shown.stderr
    assert "half\t" in shown.stdout
    assert any("result of a watch" in entry.problem for entry in Folder(folder).entries()[0])
    shutil.rmtree(folder / "right")
    store_watch(folder / "right", trainings=0, failures=["no room"])
    assert "right\tfinished\t0 steps\t–\t–\twatch\tinconclusive\t" in here("runs", ".").stdout
