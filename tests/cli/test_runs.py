"""`init`, `check`, `runs`, and what `audit` says about specs, stores and workers that cannot be used."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from program import Shown, in_process

from epsilometer.auditing import TEMPLATES, parse_spec, template
from epsilometer.runs import STORE

QUICK = "[training]\nsteps = 5\n[audit]\ntrials = 30\n"


def epsilometer(*arguments: str, cwd: Path) -> Shown:
    if "ray" not in arguments:
        return in_process(*arguments, cwd=cwd)
    command = [sys.executable, "-m", "epsilometer", *arguments]
    shown = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    return Shown(shown.returncode, shown.stdout, shown.stderr)


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished audit and one of canaries, two levels below."""
    here = tmp_path_factory.mktemp("runs")
    (here / "spec.toml").write_text(QUICK)
    (here / "canaries.toml").write_text(QUICK.replace("30", "2") + '[adversary]\nname = "canaries"\ncanaries = 40\n')
    for spec, out in (("spec.toml", "all/pairs"), ("canaries.toml", "all/canaries")):
        assert epsilometer("audit", spec, "--out", out, "--quiet", cwd=here).returncode == 0
    return here


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_are_specs_with_comments(name: str, tmp_path: Path) -> None:
    text = template(name)
    assert text.startswith("# ")
    plan = parse_spec(text).plan()
    shown = epsilometer("init", "mine.toml", "--template", name, cwd=tmp_path)
    assert shown.returncode == 0
    assert (tmp_path / "mine.toml").read_text() == text
    sections = tomllib.loads(text)
    assert plan.adversary.name == sections["adversary"]["name"]
    assert plan.trials == sections["audit"]["trials"]
    again = epsilometer("init", "mine.toml", cwd=tmp_path)
    assert again.returncode == 2
    assert "does not exist yet" in again.stderr
    assert (tmp_path / "mine.toml").read_text() == text


def test_check_says_what_a_plan_costs_and_could_show(where: Path) -> None:
    shown = epsilometer("preview", "spec.toml", "--json", cwd=where)
    seen = json.loads(shown.stdout)
    assert seen["trials"] == 60
    assert 0 < seen["seconds_a_trial"] < 5
    assert seen["seconds"] == pytest.approx(60 * seen["seconds_a_trial"])
    assert 1.0 < seen["best_epsilon"] < 3.5  # 30 trials per world prove no more
    assert seen["can_refute"]
    assert seen["has_power"] is (seen["power"] >= 0.8)
    words = epsilometer("preview", "spec.toml", cwd=where).stdout
    assert re.search(r"could certify +ε ≥", words)
    assert re.search(r"pilot +in 30 trials per world", words)
    assert "60 trials" in words


def test_check_says_when_a_claim_is_out_of_reach(tmp_path: Path) -> None:
    (tmp_path / "weak.toml").write_text('[claim]\nepsilon = 8.0\nform = "point"\n[audit]\ntrials = 20\n')
    shown = epsilometer("preview", "weak.toml", cwd=tmp_path)
    assert shown.returncode == 0
    assert "not even an attack that is always right would refute the claim" in shown.stdout
    (tmp_path / "one.toml").write_text('[adversary]\nname = "canaries"\n[training]\nsteps = 5\n')
    canaries = json.loads(epsilometer("preview", "one.toml", "--json", cwd=tmp_path).stdout)
    assert canaries["trials"] == 1
    assert canaries["can_refute"]


def test_runs_are_listed_with_progress_and_verdict(where: Path) -> None:
    shown = json.loads(epsilometer("runs", "all", "--json", cwd=where).stdout)["runs"]
    assert [(run["run"], run["adversary"], run["trials"], run["state"]) for run in shown] == [
        ("all/canaries", "canaries", {"done": 2, "of": 2}, "finished"),
        ("all/pairs", "gradient", {"done": 60, "of": 60}, "finished"),
    ]
    assert shown[1]["claimed"] == pytest.approx(4.0, abs=0.01)
    result = json.loads((where / "all" / "pairs" / "result.json").read_text())
    assert shown[1]["verdict"] == result["verdict"]
    assert shown[1]["proved"] == result["lower_bound"]["epsilon"]
    table = epsilometer("runs", "all/pairs", cwd=where).stdout.splitlines()
    assert table[0].split("\t")[0] == "run"
    assert "60 of 60" in table[1]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_scores_are_exported(where: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"scores.{suffix}"
    assert epsilometer("runs", "all/pairs", "--export", str(target), cwd=where).returncode == 0
    if suffix == "csv":
        rows = np.genfromtxt(target, delimiter=",", names=True)
        bound = epsilometer("bound", str(target), "--delta", "1e-5", "--json", cwd=where)
        result = json.loads((where / "all" / "pairs" / "result.json").read_text())
        assert json.loads(bound.stdout)["lower_bound"]["epsilon"] == result["lower_bound"]["epsilon"]
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        rows = {name: column.to_numpy() for name, column in zip(*_columns(parquet.read_table(target)), strict=True)}
    written = np.genfromtxt(where / "all" / "pairs" / "scores.csv", delimiter=",", names=True)
    for world in (0, 1):
        np.testing.assert_array_equal(
            rows["score"][rows["world"] == world], written["score"][written["world"] == world]
        )
        np.testing.assert_array_equal(rows["index"][rows["world"] == world], np.arange(30))
    again = epsilometer("runs", "all/pairs", "--export", str(target), cwd=where)
    assert again.returncode == 2
    assert "does not exist yet" in again.stderr


def _columns(table) -> tuple[list[str], list]:
    return table.column_names, table.columns


def test_canaries_are_exported_with_their_coins(where: Path, tmp_path: Path) -> None:
    target = tmp_path / "canaries.csv"
    assert epsilometer("runs", "all/canaries", "--export", str(target), cwd=where).returncode == 0
    rows = np.genfromtxt(target, delimiter=",", names=True)
    written = np.genfromtxt(where / "all" / "canaries" / "scores.csv", delimiter=",", names=True)
    np.testing.assert_array_equal(rows["member"], written["member"])
    np.testing.assert_array_equal(rows["score"], written["score"])
    assert epsilometer("bound", "--one-run", str(target), cwd=where).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["runs", "nowhere"], "expected an existing directory"),
        (["runs", "empty"], "expected a directory with runs in it"),
        (["runs", "all", "--export", "x.csv"], "expected one run to export (there are all/canaries, all/pairs)"),
        (["runs", "all/pairs", "--export", "x.xls"], "ends in .csv or .parquet"),
        (["runs", "all/pairs", "--export", "no/such/x.csv"], "expected a file in a directory that exists"),
        (["init", "no/such/dir.toml"], "expected a file to write to"),
        (["init", "x.toml", "--template", "blackbox"], "did you mean 'black-box'?"),
        (["preview", "nowhere.toml"], "expected a readable file"),
        (["audit", "nowhere.toml", "--out", "x"], "expected a readable file"),
        (["audit", "spec.toml", "--out", "spec.toml"], "this is a file"),
        (["audit", "wrong-type.toml", "--out", "x"], "training.steps = 'ten': expected a whole number"),
        (["audit", "unknown-key.toml", "--out", "x"], "did you mean 'steps'?"),
        (["audit", "negative.toml", "--out", "x"], "audit.trials = -5: expected a whole number from 2"),
        (["audit", "spec.toml", "--executor", "lcal", "--out", "x"], "did you mean 'local'?"),
        (["audit", "spec.toml", "--executor", "local", "--workers", "0"], "--workers = 0"),
        (["audit", "spec.toml", "--address", "1.2.3.4:5"], "only with a Ray cluster"),
        (["audit", "spec.toml", "--executor", "ray", "--address", "127.0.0.5:1"], "a Ray cluster that answers"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_gets_one_line_and_changes_nothing(where: Path, arguments: list[str], words: str) -> None:
    (where / "empty").mkdir(exist_ok=True)
    (where / "wrong-type.toml").write_text('[training]\nsteps = "ten"\n')
    (where / "unknown-key.toml").write_text("[training]\nstps = 10\n")
    (where / "negative.toml").write_text("[audit]\ntrials = -5\n")
    before = {path: path.read_bytes() for path in where.rglob("*") if path.is_file()}
    shown = epsilometer(*arguments, cwd=where)
    assert shown.returncode == 2
    assert shown.stderr.count("\n") == 1
    assert words in shown.stderr
    assert {path: path.read_bytes() for path in where.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + b"\0" * 50, b"not a database at all" * 20])
def test_files_that_are_no_stores(where: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / STORE).write_bytes(content)
    (tmp_path / "spec.toml").write_text(QUICK)
    shown = epsilometer("audit", "spec.toml", "--out", "run", "--quiet", cwd=tmp_path)
    if not content:  # what a process leaves that was killed before its first write
        assert shown.returncode == 0
        return
    assert shown.returncode == 2
    assert shown.stderr.count("\n") == 1
    assert (tmp_path / "run" / STORE).read_bytes() == content
    assert epsilometer("runs", "run", cwd=tmp_path).returncode == 2


def _store_of_another_world(path: Path) -> None:
    """Whole by all its checksums, but with a plan that nobody here has written."""
    import hashlib
    import sqlite3

    from epsilometer.runs import SqliteStore
    from epsilometer.runs.store_file import SCHEMA_VERSION, run_checksum

    SqliteStore(path).close()
    plan = '{"evidence": "PairedRuns", "trials": 3, "faults": {}, "delta": 0.1, "adversary": {"name": ["x"]}}'
    row = (
        1,
        hashlib.sha256(plan.encode()).hexdigest(),
        plan,
        '{"kind": "audit", "total": 6}',
        "now",
        0.0,
        '{"lower_bound": null}',
    )
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, run_checksum(SCHEMA_VERSION, row))
        )
    connection.close()


def test_one_odd_store_does_not_hide_the_others(where: Path, tmp_path: Path) -> None:
    import os
    import shutil

    shutil.copytree(where / "all" / "pairs", tmp_path / "good")
    for name in ("another-world", "pipe", "nowhere", "text", "empty", "folder"):
        (tmp_path / name).mkdir()
    _store_of_another_world(tmp_path / "another-world" / STORE)
    os.mkfifo(tmp_path / "pipe" / STORE)
    (tmp_path / "nowhere" / STORE).symlink_to("nothing")
    (tmp_path / "text" / STORE).write_text("mine")
    (tmp_path / "empty" / STORE).write_text("")
    (tmp_path / "folder" / STORE).mkdir()
    shown = epsilometer("runs", ".", "--json", cwd=tmp_path)
    assert shown.returncode == 0
    assert [run["run"] for run in json.loads(shown.stdout)["runs"]] == ["good"]
    said = shown.stderr.splitlines()
    assert len(said) == 5
    for name in ("another-world", "pipe", "nowhere", "text", "empty"):
        assert any(f"{name}/{STORE}" in line and line.startswith("epsilometer: store = ") for line in said), name
    table = epsilometer("runs", ".", cwd=tmp_path)
    assert len(table.stdout.splitlines()) == 2
    alone = epsilometer("runs", "another-world", cwd=tmp_path)
    assert (alone.returncode, alone.stderr.count("\n")) == (2, 1)
    assert "a run as this version writes it" in alone.stderr


def test_a_whole_disk_is_not_looked_through(here, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from epsilometer.runs import SqliteStore, directory

    for i in range(30):
        (place / "wide" / f"{i:02}" / "deep").mkdir(parents=True)
    SqliteStore(place / "wide" / STORE).close()
    monkeypatch.setattr(directory, "SEARCH_SECONDS", -1.0)
    shown = here("runs", "/")
    assert shown.returncode == 2
    assert shown.stderr.count("\n") == 1
    assert "expected a directory that can be looked through" in shown.stderr
    monkeypatch.setattr(directory, "SEARCH_SECONDS", 60.0)
    found, complete = directory.stores_below(place)
    assert (found, complete) == ([place / "wide" / STORE], True)
    looks = iter([0.0, *[1.0] * 20, *[100.0] * 1000])  # the clock runs out in the middle
    monkeypatch.setattr(directory.time, "monotonic", lambda: next(looks))
    assert directory.stores_below(place / "wide")[1] is False


def test_a_part_of_a_disk_is_not_listed(here, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading what was found by then took minutes where there were hundreds of large stores."""
    from epsilometer import overview
    from epsilometer.runs import SqliteStore

    for name in ("one", "two"):
        (place / "part" / name).mkdir(parents=True)
        SqliteStore(place / "part" / name / STORE).close()
    stores = [place / "part" / name / STORE for name in ("one", "two")]
    monkeypatch.setattr(overview, "places_below", lambda _: (stores, False))
    monkeypatch.setattr(overview, "runs_at", lambda _: pytest.fail("no store should be read"))
    shown = here("runs", str(place / "part"))
    assert (shown.returncode, shown.stderr.count("\n")) == (2, 1)
    assert f"(2 runs were found, one in {place / 'part' / 'one'})" in shown.stderr


def test_runs_of_a_lost_log_touches_nothing(where: Path, tmp_path: Path) -> None:
    """An empty file with a log beside it: SQLite itself would delete the log, with every trial in it."""
    (tmp_path / "spec.toml").write_text(QUICK)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / STORE).write_bytes(b"")
    (tmp_path / "run" / f"{STORE}-wal").write_bytes(b"every trial")
    for arguments in (["runs", "run"], ["runs", "run", "--export", "x.csv"], ["audit", "spec.toml", "--out", "run"]):
        shown = epsilometer(*arguments, cwd=tmp_path)
        assert (shown.returncode, shown.stderr.count("\n")) == (2, 1)
        assert "store = " in shown.stderr
        assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [STORE, f"{STORE}-wal"]
        assert (tmp_path / "run" / f"{STORE}-wal").read_bytes() == b"every trial"


def test_an_edited_result_is_not_blessed(where: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(where / "all" / "pairs", tmp_path / "run")
    (tmp_path / "spec.toml").write_text(QUICK)
    result, scores = tmp_path / "run" / "result.json", tmp_path / "run" / "scores.csv"
    whole = {path: path.read_bytes() for path in (result, scores)}
    result.write_bytes(whole[result].replace(b'"verdict": "', b'"verdict": "not '))
    scores.write_bytes(b"")
    shown = epsilometer("audit", "spec.toml", "--out", "run", "--quiet", cwd=tmp_path)
    assert shown.returncode == 0
    assert shown.stderr == (
        "wrote run/result.json and run/scores.csv and run/report.html; what was there is not what the trials show, "
        "and is kept as run/result.edited-1.json and run/scores.edited-1.csv\n"
    )
    assert scores.read_bytes() == whole[scores]
    assert json.loads(result.read_bytes())["verdict"] == json.loads(whole[result])["verdict"]
    assert (tmp_path / "run" / "scores.edited-1.csv").read_bytes() == b""
    again = epsilometer("audit", "spec.toml", "--out", "run", "--quiet", cwd=tmp_path)
    assert again.stderr == "run had its results already\n"


@pytest.mark.full
def test_exports_carry_what_a_bound_must_know(tmp_path: Path) -> None:
    """Groups, and an early stop: without them `bound` would certify what nobody has proved."""
    (tmp_path / "groups.toml").write_text(QUICK + '[adversary]\nname = "clipbkd"\ncopies = 2\n')
    (tmp_path / "early.toml").write_text(
        '[training]\nsteps = 20\n[audit]\ntrials = 300\nbound = "eprocess"\n[faults]\nnoise_scale = 0.3\n'
    )
    assert epsilometer("audit", "groups.toml", "--out", "groups", cwd=tmp_path).returncode == 0
    assert epsilometer("runs", "groups", "--export", "groups.csv", cwd=tmp_path).returncode == 0
    for name in ("groups.csv", "groups/scores.csv"):
        found = json.loads(epsilometer("bound", name, "--json", cwd=tmp_path).stdout)
        assert found["lower_bound"]["group_size"] == 2
    assert epsilometer("bound", "groups.csv", "--group-size", "1", cwd=tmp_path).returncode == 2
    assert epsilometer("audit", "early.toml", "--out", "early", cwd=tmp_path).returncode == 1
    result = json.loads((tmp_path / "early" / "result.json").read_text())
    assert result["stopped_early"]
    said = epsilometer("runs", "early", "--export", "early.csv", cwd=tmp_path).stderr
    assert "the run could stop early, so only this is valid" in said
    again = epsilometer(*said.strip().partition(": epsilometer ")[2].split(), "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["lower_bound"]["epsilon"] == result["lower_bound"]["epsilon"]
    (listed,) = json.loads(epsilometer("runs", "early", "--json", cwd=tmp_path).stdout)["runs"]
    assert (listed["state"], listed["verdict"]) == ("stopped early", "violated")
    assert "violated (fault injected)" in epsilometer("runs", "early", cwd=tmp_path).stdout


@pytest.mark.full
def test_quiet_says_nothing_but_what_was_written(where: Path, tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(QUICK)
    shown = epsilometer("audit", "spec.toml", "--quiet", "--out", "run", cwd=tmp_path)
    assert shown.stderr == "wrote run/result.json and run/scores.csv and run/report.html\n"
    loud = epsilometer("audit", "spec.toml", cwd=tmp_path)
    assert ": 60 of 60 trials" in loud.stderr


def test_a_terminal_gets_a_bar_with_rate_time_left_and_bound(tmp_path: Path) -> None:
    import os
    import pty

    (tmp_path / "spec.toml").write_text("[training]\nsteps = 400\n[audit]\ntrials = 400\n")
    driver_end, terminal = pty.openpty()
    command = [sys.executable, "-m", "epsilometer", "audit", "spec.toml", "--executor", "inline"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    out = open(tmp_path / "out.txt", "wb")  # noqa: SIM115
    with out, subprocess.Popen(command, cwd=tmp_path, stdout=out, stderr=terminal, env=environment) as driver:
        os.close(terminal)
        shown = b""
        while True:
            try:
                part = os.read(driver_end, 4096)
            except OSError:  # how a closed terminal ends
                break
            if not part:
                break
            shown += part
    os.close(driver_end)
    assert driver.returncode == 0
    assert (tmp_path / "out.txt").read_text().startswith("consistent: ")  # the result is not the bar's to show
    text = shown.decode()
    assert "verdict" not in text
    assert "/800" in text
    assert "/s, " in text
    assert " left" in text
    assert "ε ≥ " in text
    assert " trials" in text
