"""Text and numbers from outside: they cannot command a terminal, break a table, or crash the program."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from epsilometer import PairedRuns
from epsilometer.adversaries import Gradient
from epsilometer.auditing import spec_from_dict
from epsilometer.cli import output
from epsilometer.errors import InvalidInput
from epsilometer.runs import STORE, SqliteStore

EVIL = "\x1b]0;owned\x07\x1b[2J\u202e\u009b31m"
PLAN = spec_from_dict({"training": {"steps": 3}, "audit": {"trials": 25}}).plan()


@dataclass(frozen=True)
class Evil(Gradient):
    name: ClassVar[str] = f"gradient{EVIL}\n"


@pytest.mark.parametrize(
    "spec", ['"\\u001b[2J" = 1\n', '[training]\n"\\u001b]0;owned\\u0007" = 1\n', '[adversary]\n"a\\u009b" = 1\n']
)
def test_keys_of_a_spec_cannot_command_a_terminal(here, place: Path, spec: str) -> None:
    (place / "spec.toml").write_text(spec)
    shown = here("preview", "spec.toml")
    assert shown.returncode == 2
    assert shown.stderr.count("\n") == 1
    assert shown.stderr.rstrip("\n").isprintable()


def test_names_in_a_received_store_cannot_either(here, place: Path) -> None:
    directory = place / "from [/b] [red]somebody"
    directory.mkdir(parents=True)
    with SqliteStore(directory / STORE) as store:
        store.begin(replace(PLAN, adversary=Evil()))
    piped = here("runs", ".")
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout.count("\n") == 2
    assert piped.stdout.replace("\n", "").replace("\t", "").isprintable()
    assert "from [/b] [red]somebody" in piped.stdout


def test_tables_in_a_terminal_show_brackets_as_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    output.print_table(("run",), [("a [/b] [red]path" + EVIL,)])
    shown = capsys.readouterr().out
    assert "a [/b] [red]path" in shown
    assert EVIL[:4] not in shown


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ('direction = [["watermark"]]', "adversary.direction = ['watermark']"),
        ("direction = {a = 1}", "adversary.direction = {'a': 1}"),
        ("direction = [{a = 1}]", "adversary.direction = {'a': 1}"),
        ("coordinates = {a = 1}", "adversary.coordinates = {'a': 1}"),
    ],
)
def test_lists_and_tables_where_a_text_is_due(here, place: Path, setting: str, words: str) -> None:
    (place / "spec.toml").write_text(f"[adversary]\n{setting}\n")
    shown = here("preview", "spec.toml")
    assert shown.returncode == 2
    assert words in shown.stderr
    assert shown.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "spec",
    [
        "[audit]\nseed = " + "9" * 5000,
        "[audit]\nseed = 0x" + "f" * 5000,
        "[model]\ninit_seed = 0x" + "f" * 5000,
        "[audit]\ntrials = 0x" + "f" * 5000,
        "[claim]\nepsilon = 0x" + "f" * 5000,
        "[adversary]\ncoordinates = 0x" + "f" * 5000,
    ],
    ids=lambda spec: spec[:25].replace("\n", " "),
)
def test_whole_numbers_of_thousands_of_digits_in_a_spec(here, place: Path, spec: str) -> None:
    (place / "spec.toml").write_text(spec)
    shown = here("preview", "spec.toml")
    assert shown.returncode == 2, shown.stderr
    assert shown.stderr.count("\n") == 1
    assert len(shown.stderr) < 500


@pytest.mark.parametrize("option", ["--seed", "--trials", "--epsilon"])
def test_whole_numbers_of_thousands_of_digits_in_an_option(here, option: str) -> None:
    shown = here("preview", option, "9" * 5000)
    assert shown.returncode == 2, shown.stderr
    assert shown.stderr.count("\n") == 1
    assert len(shown.stderr) < 500


@pytest.mark.parametrize(
    "line",
    [
        ["bound", "--counts", "9", "1", "1", "9", "--summary", "loop"],
        ["bound", "--counts", "9", "1", "1", "9", "--junit", "loop"],
        ["bound", "--counts", "9", "1", "1", "9", "--model-card", "loop"],
        ["audit", "loop.py:train", "--data", "loop"],
        ["audit", "loop"],
        ["membership", "loop"],
        ["instances", "--records", "loop"],
        ["instances", "--against", "loop", "--records", "4"],
        ["report", "loop"],
        ["runs", "loop"],
        ["diff", "loop", "loop"],
        ["serve", "loop"],
    ],
    ids=" ".join,
)
def test_links_that_lead_in_a_circle(here, place: Path, line: list[str]) -> None:
    for name in ("loop", "loop.py"):
        (place / name).symlink_to(name)
    shown = here(*line)
    assert shown.returncode == 2, shown.stderr
    assert shown.stderr.count("\n") == 1


def test_scores_that_no_float_holds_are_one_clear_error() -> None:
    for huge in (10**400, 10**5000):
        with pytest.raises(InvalidInput, match=r"out_scores = .*: expected numbers up to 1\.8e308"):
            PairedRuns([huge], [1.0])
