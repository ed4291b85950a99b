"""`epsilometer diff`: what differs and nothing else, in runs that are finished, running, damaged or not comparable."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from stored import PLAN, planned, store_run

from epsilometer.auditing import spec_from_dict
from epsilometer.figures import RunMarks, SideBySide
from epsilometer.figures.canvas import svg
from epsilometer.runs import STORE, SqliteStore


def cells(text: str) -> dict[str, list[str]]:
    rows = [line.split("\t") for line in text.splitlines() if "\t" in line]
    return {row[0]: row[1:] for row in rows if row[0]}


def files(where: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in sorted(where.rglob("*"))}


def test_settings_that_differ_and_only_these(here, place: Path) -> None:
    store_run(place / "a", pairs=25, epsilon=0.75)
    store_run(place / "b", planned(seed=1, confidence=0.9), pairs=25, epsilon=1.5)
    before = files(place)
    shown = here("diff", "a", "b")
    assert shown.returncode == 0, shown.stderr
    found = cells(shown.stdout)
    assert found["certified ε ≥"] == ["0.750", "1.500"]
    assert found["theory ε ≤"] == ["4", "4"]
    assert found["if DP-SGD ε ≥"] == ["1.250", "1.250"]
    assert found["verdict"] == ["inconclusive", "inconclusive"]
    assert found["seed"] == ["0", "1"]
    assert found["confidence"] == ["0.95", "0.9"]
    assert not {"delta", "recipe.steps", "data.sha256", "claim.name"} & found.keys()
    assert "not comparable" not in shown.stdout
    told = json.loads(here("diff", "a", "b", "--json").stdout)
    assert told["settings"]["seed"] == [0, 1]
    assert [run["lower_bound"]["epsilon"] for run in told["runs"]] == [0.75, 1.5]
    assert told["comparable"]
    assert told["figure"]["kind"] == "side-by-side"
    assert files(place) == before  # whoever reads leaves no trace


@pytest.mark.parametrize("change", [{"relation": "replace"}, {"delta": 1e-6}], ids=["relation", "delta"])
def test_what_cannot_be_compared_is_marked(here, place: Path, change: dict[str, object]) -> None:
    other = spec_from_dict(
        {"training": {"steps": 3, "noise_multiplier": 1.0}, "audit": {"trials": 25}, "claim": change}
    ).plan()
    store_run(place / "a", pairs=25, epsilon=0.5)
    store_run(place / "b", other, pairs=25, epsilon=0.5)
    shown = here("diff", "a", "b", "--out", "both.html")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("not comparable: these runs differ in ")
    assert "certified ε ≥ (not comparable)" in cells(shown.stdout)
    assert not json.loads(here("diff", "a", "b", "--json").stdout)["comparable"]
    assert "Not comparable" in (place / "both.html").read_text()


def test_runs_that_are_not_finished(here, place: Path) -> None:
    store_run(place / "done", pairs=25, epsilon=0.5)
    store_run(place / "stopped", planned(seed=1), pairs=7)
    store_run(place / "driven", planned(seed=2), pairs=4)
    with SqliteStore(place / "driven" / STORE):
        shown = here("diff", "done", "stopped", "driven")
    found = cells(shown.stdout)
    assert found["state"] == ["finished", "interrupted", "running"]
    assert found["trials"] == ["50 of 50", "14 of 50", "8 of 50"]
    assert found["certified ε ≥"] == ["0.500", "–", "–"]
    assert found["verdict"] == ["inconclusive", "not finished", "not finished"]
    assert "stopped: not finished (interrupted, 14 of 50 trials)" in shown.stdout


def test_an_edited_result_is_not_believed(here, place: Path) -> None:
    lower = {"epsilon": 9.0, "kind": "certified"}
    store_run(place / "a", pairs=25, epsilon=0.5, lower_bound=lower, upper_bound={"epsilon": 99.0})
    store_run(place / "b", planned(seed=1), pairs=25, epsilon=0.5)
    shown = here("diff", "a", "b")
    assert cells(shown.stdout)["certified ε ≥"] == ["0.500", "0.500"]
    assert cells(shown.stdout)["theory ε ≤"] == ["–", "4"]
    assert "a: result.json does not say what the stored trials show" in shown.stdout


def test_estimates_are_not_called_certified(here, place: Path) -> None:
    store_run(place / "a", pairs=25, epsilon=0.5)
    where = store_run(place / "b", planned(seed=1), pairs=25)
    with SqliteStore(where / STORE) as store:
        (run,) = store.runs()
        lower = {"epsilon": 3.0, "kind": "estimate"}
        store.conclude(run.fingerprint, {"verdict": {"outcome": "inconclusive", "reason": ""}, "lower_bound": lower})
    found = cells(here("diff", "a", "b").stdout)
    assert found["certified ε ≥"] == ["0.500", "–"]
    assert found["other ε"] == ["–", "3.000 (estimate)"]


def test_hostile_names_show_as_text(here, place: Path) -> None:
    evil = "<script>alert(1)<\x1b]0;owned\x07"
    store_run(place / evil, pairs=25, epsilon=0.5)
    store_run(place / "b|c", planned(seed=1), pairs=25, epsilon=0.5)
    shown = here("diff", evil, "b|c", "--out", "page.html")
    assert shown.returncode == 0, shown.stderr
    assert "\x1b" not in shown.stdout + shown.stderr
    page = (place / "page.html").read_text()
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;alert(1)&lt;\\x1b]0;owned\\x07" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert here("diff", evil, "b|c", "--out", "page.svg").returncode == 0
    assert "<script" not in (place / "page.svg").read_text()


def test_the_picture_has_a_mark_for_every_number() -> None:
    runs = (RunMarks("a", 0.5, 1.0, 4.0, 3.9), RunMarks("b", None, None, 2.0, None, "running, 3 of 50 trials"))
    figure = SideBySide("two", runs)
    drawn = svg(figure)
    bars = len(re.findall(r'id="figure-mark-', drawn))
    others = len(re.findall(r'id="figure-marks-', drawn))
    assert (bars, others) == (1, 4)
    assert figure.marks == 5
    assert "running, 3 of 50 trials" in drawn
    assert figure.table().rows[1] == ("b", "–", "–", "2", "–", "running, 3 of 50 trials")


def test_a_folder_stands_for_the_runs_below_it(here, place: Path) -> None:
    for seed in range(6):
        store_run(place / "all" / f"seed-{seed}", planned(seed=seed), pairs=25, epsilon=0.1 * seed)
    shown = here("diff", "all")
    assert shown.returncode == 0, shown.stderr
    rows = [line.split("\t") for line in shown.stdout.splitlines()]
    assert [row[0] for row in rows[1:7]] == [f"all/seed-{seed}" for seed in range(6)]  # many runs: a row each


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a"], "from 2 to 100 runs (there are 1)"),
        (["a", "a"], "each run once"),
        (["a", "missing"], "RUN = 'missing': expected a run directory"),
        (["a", "empty"], "a directory with a run in it"),
        (["a", "broken"], "an intact store"),
        (["a", "b", "--out", "page.txt"], "a file that ends in .html or .svg"),
        (["a", "b", "--out", "there.html"], "a file that does not exist yet"),
        (["a", "b", "--out", "no/such/page.html"], "--out = 'no/such/page.html'"),
    ],
)
def test_mistakes_are_one_line(here, place: Path, arguments: list[str], words: str) -> None:
    store_run(place / "a", pairs=25, epsilon=0.5)
    store_run(place / "b", replace(PLAN, seed=1), pairs=25, epsilon=0.5)
    for name in ("empty", "broken"):
        (place / name).mkdir()
    (place / "broken" / STORE).write_bytes((place / "a" / STORE).read_bytes()[:5000])
    (place / "there.html").write_text("mine")
    shown = here("diff", *arguments)
    assert shown.returncode == 2, shown
    assert words in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert (place / "there.html").read_text() == "mine"
