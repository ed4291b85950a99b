"""`audit` and `bound` in a CI: what is required, who is told, and with which exit code."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from program import Shown

from epsilometer.rounding import down

Program = Callable[..., Shown]
WEAK = ["--counts", "30", "25", "20", "25", "--claim", "3"]
LEAKS = ["--counts", "970", "20", "30", "980", "--claim", "3"]
FAIR = ["--counts", "4000", "1000", "1000", "4000", "--claim", "2"]  # as strong as ε = 1.4
TRAINING = """
import pathlib
import numpy as np

def train(data, seed, noise=1.0):
    pathlib.Path("trained").touch()
    sums = np.stack([data.x[data.y == label].sum(axis=0) for label in (0, 1)])
    sums += noise * np.random.default_rng(seed).normal(size=sums.shape)
    return lambda points: points @ sums.T
"""


@pytest.fixture
def training(place: Path) -> list[str]:
    """The beginning of a command that audits a training of one's own, without a process of its own."""
    (place / "sums.py").write_text(TRAINING)
    np.savez(place / "d.npz", x=np.random.default_rng(0).normal(size=(40, 5)), y=np.arange(40) % 2)
    return ["audit", "sums:train", "--data", "d.npz", "--isolation", "here", "--trials", "25", "--quiet"]


# ---------------------------------------------------------------------------------------------------------- exit codes
@pytest.mark.parametrize(
    ("counts", "verdict", "alone", "required"),
    [(WEAK, "inconclusive", 0, 4), (LEAKS, "violated", 1, 1), (FAIR, "consistent", 0, 0)],
)
def test_what_is_required_decides_the_exit_code(
    here: Program, counts: list[str], verdict: str, alone: int, required: int
) -> None:
    shown = here("bound", *counts)
    assert shown.stdout.startswith(f"{verdict}: ")
    assert shown.returncode == alone
    assert here("bound", *counts, "--require", "consistent").returncode == required


def test_an_audit_that_is_too_weak_ends_with_4(here: Program, training: list[str]) -> None:
    shown = here(*training, "--epsilon", "3", "--require", "consistent")
    assert shown.returncode == 4
    assert "--require consistent, but the audit is inconclusive" in shown.stderr
    assert here(*training, "--epsilon", "3").returncode == 0


def test_mistakes_are_found_before_anything_is_trained(here: Program, training: list[str], place: Path) -> None:
    (place / "mine.xml").write_text("<testsuites/>")
    mistakes = {
        ("--require", "private"): "--require = 'private': expected consistent",
        ("--summary", "no/such/s.md"): "--summary = 'no/such/s.md': expected a file in an existing directory",
        ("--model-card", "."): "--model-card = '.': expected a file",
        ("--junit", "mine.xml"): "--junit = 'mine.xml': expected a new file, or one that epsilometer has written",
    }
    for arguments, expected in mistakes.items():
        shown = here(*training, "--epsilon", "3", *arguments)
        assert (shown.returncode, shown.stdout) == (2, "")
        assert expected in shown.stderr
    assert not (place / "trained").exists()
    shown = here("bound", *WEAK[:5], "--require", "consistent")
    assert "--require = 'consistent': expected a claim that could be consistent" in shown.stderr


@pytest.mark.skipif(importlib.util.find_spec("mlflow") is not None, reason="MLflow is installed")
def test_mlflow_that_is_missing_is_a_mistake_too(here: Program, training: list[str], place: Path) -> None:
    shown = here(*training, "--epsilon", "3", "--mlflow", "privacy")
    assert shown.returncode == 2
    assert "pip install 'epsilometer[mlflow]'" in shown.stderr
    assert not (place / "trained").exists()


# -------------------------------------------------------------------------------------------------------- who is told
def test_files_say_what_the_command_says(here: Program, training: list[str], place: Path) -> None:
    told = ["--summary", "s.md", "--junit=j.xml", "--model-card", "m.md"]
    shown = here(*training, "--epsilon", "3", *told, "--json")
    document = json.loads(shown.stdout)
    summary, card = (place / "s.md").read_text(), (place / "m.md").read_text()
    assert f"ε ≥ {down(document['lower_bound']['epsilon'])}" in summary
    assert "## Epsilometer: sums:train on d (40 records): inconclusive" in summary
    command = "$ epsilometer audit sums:train --data d.npz --isolation here --trials 25 --quiet --epsilon 3 --json"
    assert command in summary  # those who were told are left out
    assert command in card
    case = ElementTree.parse(place / "j.xml").find(".//testcase")
    assert case is not None
    kept = {one.get("name"): one.get("value") for one in case.iter("property")}
    assert kept["epsilometer.verdict"] == document["verdict"]
    assert kept["epsilometer.seed"] == "0"
    assert case.find("skipped") is not None
    assert "wrote s.md and m.md and j.xml" in shown.stderr


def test_several_commands_share_a_summary(here: Program, place: Path) -> None:
    for _ in range(2):
        for counts in (WEAK, LEAKS, FAIR):
            here("bound", *counts, "--summary", "s.md")
    text = (place / "s.md").read_text()
    assert [text.count(f": {verdict}\n") for verdict in ("inconclusive", "violated", "consistent")] == [1, 1, 1]


def test_a_bound_without_a_claim_is_told_too(here: Program, place: Path) -> None:
    rng = np.random.default_rng(0)
    scores = [(0, one) for one in rng.normal(size=50)] + [(1, one) for one in rng.normal(2, size=50)]
    (place / "scores.csv").write_text("world,score\n" + "".join(f"{world},{score}\n" for world, score in scores))
    shown = here("bound", "scores.csv", "--model-card", "m.md", "--junit", "j.xml", "--summary", "s.md")
    assert shown.returncode == 0
    assert "no claim was tested" in (place / "m.md").read_text()
    assert "## Epsilometer: scores.csv: ε ≥ " in (place / "s.md").read_text()
    assert b'failures="0" errors="0" skipped="0"' in (place / "j.xml").read_bytes()


def test_whoever_cannot_be_told_does_not_hide_an_accusation(
    here: Program, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full when it is written to."""
    from epsilometer.report import outlets

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outlets, "write_whole", full)
    assert here("bound", *FAIR, "--junit", "j.xml").returncode == 2
    shown = here("bound", *LEAKS, "--junit", "j.xml")
    assert shown.returncode == 1
    assert "--junit = 'j.xml': expected a file that can be read and written (No space left on device)" in shown.stderr
