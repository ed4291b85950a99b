"""Every result.json has exactly the fields that its type says: what a program may rely on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

from epsilometer.report.documents import DOCUMENTS, AuditDocument
from epsilometer.report.kinds import PAGES
from epsilometer.reproductions import Row, reproduction_named
from epsilometer.reproductions.directory import write_rows
from epsilometer.watching.facts import Facts
from epsilometer.watching.monitor import Monitor
from epsilometer.watching.recording import Ended, Imported, MadePrivate, Started, Step, Told
from epsilometer.watching.result import document_of

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "cli")]
from program import in_process
from typed import mistakes

SMALL = (
    '[data]\nname = "digits"\nclasses = [0, 1]\nper_class = 30\n[training]\nsample_rate = 0.5\nsteps = 5\n'
    "noise_multiplier = 2.0\n"
)
CLAIM = "[claim]\nepsilon = 4.0\n"
ACCESS = '[access]\nsees = "final-model"\ncontrols = ["records"]\n'
SHARED = '[data]\nname = "digits"\nclasses = [0, 1]\n[collaboration]\nrounds = 8\nhidden = [4]\n'
NOISY = 'level = "participant"\nnoise_multiplier = 2.0\n'
SPECS = {
    "small": SMALL,
    "claim": SMALL + CLAIM,
    "ladder": SMALL + CLAIM + ACCESS,
    "shared": SHARED,
    "hidden": SHARED + NOISY,
    "rebuilt": "[reconstruction]\nrecords = 3\nhidden = [4]\n",
}
PLAYED = {
    "audit": [
        "audit claim.toml --trials 20",
        "audit small.toml --trials 20 --bound eprocess",
        "audit claim.toml --trials 20 --bound union-bound",
        "audit claim.toml --trials 1 --adversary canaries",
        "mechanism laplace --epsilon 1 --runs 200",
    ],
    "membership": ["membership small.toml --references 4"],
    "instances": [
        "instances small.toml --records 6 --trainings 2 --measure 1 --trials 10",
        "instances small.toml --records 6 --rule individual",
        "instances small.toml --records 4 --rule mean --every 5 --draws 2 --tuples 2",
    ],
    "property": ["property shared.toml --trials 4", "property hidden.toml --trials 4 --no-control"],
    "reconstruction": ["reconstruct rebuilt.toml", "reconstruct rebuilt.toml --attack sums --releases 2"],
    "calibration": ["calibrate --repetitions 2 --trials 20 --bound union-bound"],
    "ladder": ["ladder ladder.toml --trials 20"],
    "reproduction": ["sweep claim.toml --trials 20 --vary training.steps=5,6"],
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name, text in SPECS.items():
        (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


@pytest.mark.parametrize(("kind", "line"), [(kind, line) for kind, lines in PLAYED.items() for line in lines])
def test_a_result_has_the_fields_of_its_type(place: Path, kind: str, line: str) -> None:
    words = line.replace("rebuilt.toml --attack", "other.toml --attack").split()
    (place / "other.toml").write_text("[reconstruction]\nrecords = 3\n")
    quiet = [] if kind == "calibration" else ["--executor", "inline", "--quiet"]
    shown = in_process(*words, *quiet, "--out", "kept", cwd=place)
    assert shown.returncode in (0, 1), shown.stderr
    document = json.loads(
        (place / "kept" / ("calibration.json" if kind == "calibration" else "result.json")).read_text()
    )
    assert document["kind"] == kind
    assert mistakes(document, DOCUMENTS[kind]) == []


def test_a_published_table_has_the_fields_of_its_type(tmp_path: Path) -> None:
    of = reproduction_named("jagielski-table2")
    rows = [Row(cell, 1.0, 0.5, {"note": "x"}) for cell in of.chosen(["init=fixed"])]
    write_rows(tmp_path, of, {"reproduction": of.name}, rows)
    assert mistakes(json.loads((tmp_path / "result.json").read_text()), DOCUMENTS["reproduction"]) == []


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_a_watched_command_has_the_fields_of_its_type(noise: float) -> None:
    monitor, rng = Monitor(), np.random.default_rng(0)
    monitor.take(Started(7, ["train.py"], "3.11"))
    monitor.take(Imported("opacus", "1.5"))
    monitor.take(MadePrivate(1, "DPOptimizer", 1.0, 1.0, 200, "extra", {"loss_reduction": "mean"}))
    for _ in range(20):
        coins = rng.random(200) < 0.5
        monitor.take(Step(1, coins + rng.normal(0, noise, 200), coins, 1.0, 1.0))
    monitor.take(Told(1, Facts(troubles={"sampling": "unknown"})))
    monitor.take(Ended(1, 0, [[1.0, 0.1, 20]]))
    found = document_of(monitor, command=["python", "train.py"], exit_code=0, begun="now", seconds=2.0)
    assert found["trainings"][0]["verdict"] == ("violated" if noise < 1 else found["trainings"][0]["verdict"])
    assert mistakes(json.loads(json.dumps(found)), DOCUMENTS["watch"]) == []


def test_there_is_a_type_for_every_page() -> None:
    assert list(DOCUMENTS) == list(PAGES)


def test_every_field_says_what_it_is() -> None:
    def meaning(hint: Any) -> str:
        inner = hint.__args__[0] if not hasattr(hint, "__metadata__") else hint
        return str(inner.__metadata__[0])

    for kind in DOCUMENTS.values():
        for name, hint in get_type_hints(kind, include_extras=True).items():
            assert meaning(hint), name


def test_a_wrong_field_is_noticed(place: Path) -> None:
    assert in_process("audit", "claim.toml", "--trials", "20", "--quiet", "--out", "kept", cwd=place).returncode == 0
    document = json.loads((place / "kept" / "result.json").read_text())

    def said(*path: str, **changed: Any) -> list[str]:
        copy = json.loads(json.dumps(document))
        inner = copy
        for key in path:
            inner = inner[key]
        for key, value in changed.items():
            if value is ...:
                del inner[key]
            else:
                inner[key] = value
        return mistakes(copy, AuditDocument)

    assert said() == []
    assert said(quote=...) == ["document.quote: is missing"]
    assert said(quotation="x") == ["document.quotation: is no field of AuditDocument"]
    assert said(seed="0") == ["document.seed: '0' is no int"]
    assert said(seed=True) == ["document.seed: True is no int"]
    assert said(verdict="fine")[0].startswith("document.verdict: 'fine' is none of")
    assert said("lower_bound", epsilon="infinite")[0].startswith("document.lower_bound.epsilon")
    assert said("lower_bound", epsilon="inf") == []
    assert said("lower_bound", rank="1") == ["document.lower_bound.rank: '1' is no int"]
    assert said("attack", "auc", low=...) == ["document.attack.auc.low: is missing"]
    assert said("trials", out=1.5) == ["document.trials.out: 1.5 is no int"]
