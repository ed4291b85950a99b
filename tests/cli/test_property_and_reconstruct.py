"""`epsilometer property` and `epsilometer reconstruct`: results, files, going on, and one line for every mistake."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from epsilometer.report.private import OF_REBUILT

QUIETLY = ("--quiet", "--executor", "inline")
SHARED = """
[data]
name = "digits"
classes = [0, 1]
[collaboration]
hidden = [4]
rounds = 8
level = "participant"
noise_multiplier = 0.05
[property]
trials = 20
"""
REBUILT = "[reconstruction]\nrecords = 5\nhidden = [8]\n"


@pytest.fixture
def shared(place: Path) -> str:
    (place / "shared.toml").write_text(SHARED)
    return "shared.toml"


@pytest.fixture
def rebuilt(place: Path) -> str:
    (place / "rebuilt.toml").write_text(REBUILT)
    return "rebuilt.toml"


def test_a_property_is_told_written_and_read_again(here, place: Path, shared: str) -> None:
    shown = here("property", shared, "--out", "kept", *QUIETLY)
    assert shown.returncode == 0, shown.stderr
    document = json.loads((place / "kept" / "result.json").read_text())
    report = (place / "kept" / "report.html").read_text()
    assert document["kind"] == "property"
    assert document["unit"] == "participant"
    assert document["trials"] == {"out": 20, "in": 20}
    for text in (shown.stdout, document["headline"], report):
        assert "40 independent collaborations" in text
        assert "all data of a participant replaced" in text
    for said in ("its AUC is ½ but for chance", "What a participant is promised", "epsilometer property shared.toml"):
        assert said in report
    assert "<script" not in report
    rows = (place / "kept" / "scores.csv").read_text().splitlines()
    assert rows[0] == "world,index,score,relation,unit"
    assert len(rows) == 41  # the control has none
    bound = here("bound", "kept/scores.csv", "--relation", "replace", "--delta", "1e-5", "--json")
    assert json.loads(bound.stdout)["lower_bound"]["epsilon"] == document["lower_bound"]["epsilon"]
    assert "finished\t60 of 60" in here("runs", "kept").stdout
    assert here("report", "kept").returncode == 0
    assert "had its results already" in here("property", shared, "--out", "kept", *QUIETLY).stderr
    refused = here("property", shared, "--rounds", "9", "--out", "kept", *QUIETLY)
    assert refused.returncode == 2
    assert "rounds: 8 there, 9 now" in refused.stderr
    exported = here("runs", "kept", "--export", "x.csv")
    assert exported.returncode == 2
    assert "scores.csv beside its result.json has them" in exported.stderr


def test_other_units_are_not_comparable(here, place: Path, shared: str, rebuilt: str) -> None:
    assert here("property", shared, "--out", "a", *QUIETLY).returncode == 0
    assert here("property", shared, "--seed", "1", "--out", "b", *QUIETLY).returncode == 0
    assert here("reconstruct", rebuilt, "--out", "c", *QUIETLY).returncode == 0
    alike = here("diff", "a", "b")
    assert "not comparable" not in alike.stdout
    assert "seed\t0\t1" in alike.stdout
    assert "differ in unit (participant, record)" in here("diff", "a", "c").stdout


def test_options_win_over_the_spec(here, shared: str) -> None:
    shown = here("property", shared, "--level", "none", "--noise-multiplier", "0", "--no-control", "--json", *QUIETLY)
    found = json.loads(shown.stdout)
    assert found["lower_bound"] is None
    assert found["no_epsilon"].startswith("no ε is stated")
    assert found["control"]["auc"] is None
    assert found["plan"]["updates"]["level"] == "none"


def test_data_of_ones_own(here, place: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 5)), np.arange(200) % 2
    np.savez(place / "my.npz", x=x, y=y)
    (place / "my.toml").write_text('[data]\npath = "my.npz"\n[collaboration]\nrounds = 8\n[property]\nfeature = 2\n')
    shown = here("property", "my.toml", "--trials", "4", "--json", *QUIETLY)
    assert json.loads(shown.stdout)["property"] == {"name": "feature 2 > -0.02465", "having": 100, "records": 200}
    (place / "my.toml").write_text('[data]\npath = "my.npz"\n')
    shown = here("reconstruct", "my.toml", "--attack", "layer", "--records", "4", "--out", "kept", *QUIETLY)
    assert shown.returncode == 0, shown.stderr
    assert "The records are no images" in (place / "kept" / "report.html").read_text()


def test_records_are_rebuilt_shown_and_read_again(here, place: Path, rebuilt: str) -> None:
    shown = here("reconstruct", rebuilt, "--out", "kept", *QUIETLY)
    assert shown.returncode == 0, shown.stderr
    assert "PRIVATE" in shown.stdout
    document = json.loads((place / "kept" / "result.json").read_text())
    report = (place / "kept" / "report.html").read_text()
    assert document["kind"] == "reconstruction"
    assert document["noises"][0]["found"]["value"] == 1.0
    assert document["noises"][0]["epsilon"] == "inf"
    assert f'<p class="warning">{OF_REBUILT}</p>' in report
    assert report.count("data:image/png") == 3 * 6  # an original and five noises, of three records
    assert len(report) < 1_000_000
    rows = (place / "kept" / "scores.csv").read_text().splitlines()
    assert rows[0] == "noise_multiplier,record,mse,cut_mse,found"
    assert len(rows) == 26
    assert "finished\t25 of 25" in here("runs", "kept").stdout
    assert here("report", "kept").returncode == 0
    assert "had its results already" in here("reconstruct", rebuilt, "--out", "kept", *QUIETLY).stderr
    other = here("reconstruct", rebuilt, "--noise-multiplier", "0", "--noise-multiplier", "2", "--json", *QUIETLY)
    assert [one["noise_multiplier"] for one in json.loads(other.stdout)["noises"]] == [0.0, 2.0]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("property --level user", "--level = 'user': expected one of none, participant, record"),
        ("property --rounds 2", "--rounds = 2: expected a whole number ≥ 8"),
        ("property --noise-multiplier 1", "--noise-multiplier = 1.0: expected 0, as nothing is clipped"),
        ("property --property sex", "--property = 'sex': expected a property of digits: ink"),
        ("property --feature 99", "--feature = 99: expected a whole number from 0 to 63"),
        ("property --data nosuch", "--data = 'nosuch': expected one of"),
        ("property missing.toml", "SPEC = 'missing.toml': expected a readable file"),
        ("property --trials 1", "--trials = 1: expected a whole number from 4 to 100,000"),
        ("reconstruct --attack gradient", "--attack = 'gradient': expected one of layer, network, sums"),
        ("reconstruct --releases 3", "--releases = 3: expected nothing for network; it is a setting of sums"),
        ("reconstruct --noise-multiplier -1", "--noise-multiplier = -1.0"),
        ("reconstruct --records 0", "--records = 0: expected a whole number from 1 to 1,797"),
        ("reconstruct --delta 1", "--delta = 1.0"),
    ],
)
def test_mistakes_are_one_line(here, place: Path, line: str, said: str) -> None:
    shown = here(*line.split(), "--out", "kept", *QUIETLY)
    assert shown.returncode == 2
    (told,) = shown.stderr.splitlines()
    assert told.startswith(f"epsilometer: {said}")
    assert not (place / "kept").exists()
