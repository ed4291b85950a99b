"""`epsilometer sweep`: each cell is the audit that its settings describe, played once, with its accuracy beside it."""

from __future__ import annotations

import csv
import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from epsilometer.auditing import Plan, parse_spec, runner, spec_from_dict
from epsilometer.auditing.utility import TRAININGS, Utility, measure_accuracy
from epsilometer.bounds import ExactRank
from epsilometer.data import DATASETS, Dataset, Source, digits, load
from epsilometer.data.request import TEST, Request
from epsilometer.errors import InvalidInput
from epsilometer.reproductions import parse_axis, sweep_of
from epsilometer.runs import Inline, MemoryStore, SqliteStore
from epsilometer.seeds import Stream, seed_of
from epsilometer.training import network_for, train_many

SPEC = (
    '[data]\nname = "digits"\nclasses = [0, 1]\nper_class = 30\n'
    "[training]\nsample_rate = 0.2\nsteps = 5\nnoise_multiplier = 1.5\n[audit]\ntrials = 20\n"
)
CELLS = ["training.noise_multiplier=1", "training.noise_multiplier=2"]
SWEEP = ["sweep", "spec.toml", "--vary", "training.noise_multiplier=1,2.0", "--executor", "inline", "--quiet"]


@pytest.fixture
def whole_spec(place: Path) -> Path:
    (place / "spec.toml").write_text(SPEC)
    return place


@pytest.fixture
def spec(whole_spec: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Without the search for the noise that scores allow, which takes nearly all of the time."""
    monkeypatch.setattr(runner, "_noise_limit", lambda *_: None)
    return whole_spec


def test_every_cell_is_the_audit_that_its_settings_describe(here, spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = here(*SWEEP, "--out", "swept")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[-1] == "verdict: no violation found"
    rows = json.loads((spec / "swept" / "result.json").read_text())["rows"]
    plans = [parse_spec(SPEC.replace("1.5", noise)).plan() for noise in ("1.0", "2.0")]
    assert [row["plan_sha256"] for row in rows] == [plan.fingerprint() for plan in plans]
    for row, plan, name in zip(rows, plans, CELLS, strict=True):
        single = json.loads((spec / "swept" / name / "result.json").read_text())
        assert single["plan_sha256"] == plan.fingerprint()
        assert single["lower_bound"]["epsilon"] == row["measured"] == row["certified"]
        assert single["upper_bound"]["epsilon"] == row["theory"]
        assert single["verdict"] == row["verdict"]
        models = train_many(
            plan.subject.recipe,
            [plan.subject.data] * TRAININGS,
            [seed_of(plan.seed, Stream.UTILITY, index) for index in range(TRAININGS)],
        )
        network, data = network_for(plan.subject.recipe, plan.subject.data), plan.subject.data
        right = [np.argmax(network.logits(model, data.x), axis=1) == data.y for model in models]
        assert row["train_accuracy"] == pytest.approx(np.mean(right))
        assert row["test_accuracy"] is None
    with (spec / "swept" / "table.csv").open(newline="") as file:
        assert [row["training.noise_multiplier"] for row in csv.DictReader(file)] == ["1", "2"]
    assert "certified" in (spec / "swept" / "figure.svg").read_text()
    listed = json.loads(here("runs", "swept", "--json").stdout)["runs"]
    assert [Path(run["run"]).name for run in listed] == CELLS
    assert json.loads(here("diff", "swept", "--json").stdout)["settings"]["recipe.noise_multiplier"] == [1, 2]

    # The same again plays nothing; another grid there is refused.
    for kind in (Plan, Utility):
        monkeypatch.setattr(kind, "play", lambda *_: pytest.fail("played again"))
    again = here(*SWEEP, "--out", "swept", "--json")
    assert again.returncode == 0, again.stderr
    told = json.loads(again.stdout)["rows"]
    for row in (*told, *rows):
        row.pop("seconds")
    assert told == rows
    other = here(*SWEEP[:3], "training.noise_multiplier=1,3", *SWEEP[4:], "--out", "swept")
    assert other.returncode == 2
    assert 'sweep.training.noise_multiplier: ["1", "2"] there' in other.stderr.replace("'", '"')


@pytest.mark.parametrize("cell", [0, 1])
def test_a_sweep_that_was_stopped_continues(here, spec: Path, monkeypatch: pytest.MonkeyPatch, cell: int) -> None:
    """Whether it was stopped in its first cell or in a later one: no trial is played twice."""
    whole = json.loads(here(*SWEEP, "--json").stdout)["rows"]
    played: list[tuple[str, int, int]] = []
    play, stored = Plan.play, SqliteStore.add

    def note(self: Plan, prepared: object, trials: list[tuple[int, int]]) -> object:
        played.extend((self.fingerprint(), *trial) for trial in trials)
        return play(self, prepared, trials)

    def stop_after(self: SqliteStore, fingerprint: str, *arguments: object) -> None:
        stored(self, fingerprint, *arguments)
        if fingerprint == whole[cell]["plan_sha256"]:
            monkeypatch.setattr(SqliteStore, "add", stored)
            raise KeyboardInterrupt

    monkeypatch.setattr(Plan, "play", note)
    monkeypatch.setattr(SqliteStore, "add", stop_after)
    stopped = here(*SWEEP, "--out", "swept")
    assert stopped.returncode == 130, stopped.stderr
    assert "to continue: epsilometer sweep" in stopped.stderr
    playing = importlib.import_module("epsilometer.runs.play")
    monkeypatch.setattr(playing, "require_same_game", lambda *_: None)  # it plays one trial again, on purpose
    rows = json.loads(here(*SWEEP, "--out", "swept", "--json").stdout)["rows"]
    assert len(played) == len(set(played)) == 2 * 40
    for row in (*whole, *rows):
        row.pop("seconds")
        row.pop("directory")
    assert rows == whole


def test_nothing_is_left_of_a_sweep_that_was_stopped_before_its_first_trial(
    here, spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Plan, "play", stop)
    stopped = here(*SWEEP, "--out", "swept")
    assert stopped.returncode == 130
    assert "nothing was stored yet" in stopped.stderr
    assert not (spec / "swept").exists()


def test_a_violation_counts_if_it_holds_for_all_cells(here, spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tested, test = set(), ExactRank.test

    def note(self: ExactRank, *given: object, confidence: float, **settings: object) -> object:
        tested.add(round(confidence, 6))
        return test(self, *given, confidence=confidence, **settings)

    monkeypatch.setattr(ExactRank, "test", note)
    shown = here(
        "sweep", "spec.toml", "--vary", "faults.noise_scale=0.05,1", "--trials", "40", "--executor", "inline",
        "--quiet", "--json",
    )  # fmt: skip
    assert shown.returncode == 1, shown.stderr
    rows = json.loads(shown.stdout)["rows"]
    assert [row["violated"] for row in rows] == [True, False]
    assert rows[0]["verdict"] == "violated"
    assert rows[0]["train_accuracy"] >= rows[1]["train_accuracy"]  # the fault is in these trainings, too
    assert {0.95, 0.975} <= tested


def test_a_training_that_diverges_is_a_row(here, spec: Path) -> None:
    shown = here(
        "sweep", "spec.toml", "--vary", "training.weight_decay=0,1e20", "--executor", "inline", "--quiet", "--json"
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    first, second = json.loads(shown.stdout)["rows"]
    assert "note" not in first
    assert second["verdict"] is None
    assert "diverged" in second["note"]


@pytest.fixture
def halves(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, object]]:
    """A spec on the digits, even rows as the training part, odd ones as the test part."""

    def halves(request: Request) -> Dataset:
        whole, first = digits(), int(request.part == TEST)
        x, y = whole.x[first::2], whole.y[first::2]
        return request.dataset("halves", lambda rows: x[rows], y, classes=10, class_names=whole.class_names)

    monkeypatch.setitem(DATASETS, "halves", Source("digits in two halves", halves))
    return {
        "data": {"name": "halves", "classes": [3, 1], "per_class": 20},
        "training": {"steps": 20, "sample_rate": 0.5, "noise_multiplier": 0.5},
        "audit": {"trials": 20},
    }


def test_the_test_part_is_of_the_same_classes_and_never_trained_on(halves: dict[str, dict[str, object]]) -> None:
    settings = halves
    swept = sweep_of(settings, [parse_axis("training.steps=20,21")])
    assert "test part (test)" in swept.about
    plan, store = spec_from_dict(settings).plan(), MemoryStore()
    train, test = measure_accuracy(
        plan, load("halves", part=TEST, classes=[3, 1]), store=store, executor=Inline()
    )  # fmt: skip
    assert 0.9 < train.mean <= 1.0
    assert 0.9 < test.mean < 1.0  # with swapped labels it would be wrong nearly always
    assert train.mean != test.mean
    assert all(run.is_part for run in store.runs())


def test_audits_report_test_accuracy_where_there_are_test_data(
    here, place: Path, halves: dict[str, dict[str, object]]
) -> None:
    sections = {name: "".join(f"{key} = {json.dumps(value)}\n" for key, value in one.items())
                for name, one in halves.items()}  # fmt: skip
    spec = "".join(f"[{name}]\n{text}" for name, text in sections.items()).replace("trials = 20", "trials = 25")
    for name, text in (("halves", spec), ("digits", spec.replace('"halves"', '"digits"'))):
        (place / f"{name}.toml").write_text(text)
        shown = here("audit", f"{name}.toml", "--out", name, "--executor", "inline", "--quiet")
        assert shown.returncode == 0, shown.stderr
        assert "accuracy" in shown.stdout
    with_test, without = (
        json.loads((place / name / "result.json").read_text())["utility"] for name in ("halves", "digits")
    )
    assert " % (mean of 5 trainings" in with_test["test accuracy"] != with_test["training accuracy"]
    assert without["test accuracy"].startswith("no test data")
    assert "no test data" in (place / "digits" / "report.html").read_text()


@pytest.mark.full
def test_what_follows_from_dp_sgd_is_in_the_table(here, whole_spec: Path) -> None:
    assert here(*SWEEP, "--out", "swept").returncode == 0
    rows = json.loads((whole_spec / "swept" / "result.json").read_text())["rows"]
    singles = [json.loads((whole_spec / "swept" / name / "result.json").read_text()) for name in CELLS]
    assert [row["family"] for row in rows] == [single["family_bound"]["epsilon"] for single in singles]
    assert rows[0]["family"] > 0


@pytest.mark.parametrize(
    ("vary", "words"),
    [
        (["training.noise_multiplyer=1"], "did you mean 'training.noise_multiplier'?"),
        (["noise_multiplier=1"], "did you mean 'training.noise_multiplier'?"),
        (["training.noise_multiplier"], "expected KEY=VALUE,VALUE"),
        (["training.noise_multiplier="], "expected KEY=VALUE,VALUE"),
        (["training.noise_multiplier=1,,2"], "values between commas"),
        (["training.noise_multiplier=1,1.0"], "each value once"),
        (["training.noise_multiplier=loud"], "--vary training.noise_multiplier = 'loud': expected a number"),
        (["training.steps=1.5"], "--vary training.steps = 1.5: expected a whole number"),
        (["training.sample_rate=0.1,2"], "--vary training.sample_rate = 2.0: expected"),
        (["training.sampling=poison"], "did you mean 'poisson'?"),
        (["training.noise_multiplier=1e400"], "1e400"),
        (["adversary.coordinats=1"], "did you mean 'coordinates'?"),
        (["adversary.coordinates=[1,2]"], "one in each cell"),
        (["training.steps=1", "training.steps=2"], "each key once"),
        (["audit.seed=" + ",".join(map(str, range(1001)))], "at most 1000"),
        (["data.\x1b[2J=1"], "a key of a spec"),
        ([], "at least one setting"),
    ],
)
def test_mistakes_are_one_line(here, spec: Path, vary: list[str], words: str) -> None:
    options = [word for text in vary for word in ("--vary", text)]
    shown = here("sweep", "spec.toml", *options, "--out", "swept", "--quiet")
    assert shown.returncode == 2, shown
    assert words in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert shown.stderr.rstrip("\n").isprintable()
    assert not (spec / "swept").exists()


def test_values_of_all_kinds() -> None:
    assert parse_axis("model.hidden=[8],[4, 4]").values == ([8], [4, 4])
    assert parse_axis("adversary.name=gradient, api").values == ("gradient", "api")
    assert parse_axis('data.classes=["0", "1"],[2, 3]').values == (["0", "1"], [2, 3])
    assert parse_axis("subject.deterministic=true,false").values == (True, False)
    assert parse_axis("claim.epsilon=1").values == (1,)
    with pytest.raises(InvalidInput):
        parse_axis("subject.arguments.size=1")
