"""`epsilometer instances`: what records pay, everywhere with its warning; it goes on, and explains what is wrong."""

import csv
import json
import shutil
from pathlib import Path

import pytest

SPEC = (
    '[data]\nname = "digits"\nclasses = [0, 1]\nper_class = 30\n'
    "[training]\nsample_rate = 0.5\nsteps = 10\nnoise_multiplier = 2.0\n"
)
QUIET = ["--executor", "inline", "--quiet"]
WARNING = "private themselves"


def test_the_command_tells_what_records_pay(here, place: Path) -> None:
    (place / "small.toml").write_text(SPEC)
    asked = [
        "instances",
        "small.toml",
        "--records",
        "30",
        "--trainings",
        "3",
        "--measure",
        "1",
        "--trials",
        "10",
        *QUIET,
    ]
    shown = here(*asked, "--out", "found")
    assert shown.returncode == 0, shown.stderr
    assert WARNING in shown.stdout
    assert "worst case" in shown.stdout
    assert "measured" in shown.stdout
    assert "By estimate" in shown.stdout  # and not as a promise
    assert "0 of 30 records" in shown.stdout  # are certified to pay less than the worst case, by 3 trainings
    result = json.loads((place / "found" / "result.json").read_text())
    assert WARNING in result["warning"]
    worst = result["worst_case"]["epsilon"]
    assert all(row["epsilon"] <= row["certified"] <= worst for row in result["records"])
    assert all(row["one_training"] <= row["costliest_training"] + 1e-9 for row in result["records"])
    assert result["trainings_wanted"] is None or result["trainings_wanted"] > 10_000
    assert len(result["measured"]) == 2
    lines = (place / "found" / "records.csv").read_text().splitlines()
    assert WARNING in lines[0]
    rows = list(csv.DictReader(lines[1:]))
    assert [float(row["epsilon"]) for row in rows] == [row["epsilon"] for row in result["records"]]
    report = (place / "found" / "report.html").read_text()
    assert WARNING in report
    for words in ("Against the worst case", "Along the training", "The least and the most exposed", "What attacks"):
        assert words in report
    again = here(*asked, "--out", "found", "--json")
    document = json.loads(again.stdout)
    assert WARNING in document["warning"]
    assert document["records"] == result["records"]
    assert (place / "found" / "report.html").read_text() == report
    same = here(
        "instances", "small.toml", "--records", "found/records.csv", "--seed", "5", "--against", "found", *QUIET
    )
    assert "against found: Agreement(records=30" in same.stdout  # the same records in another training
    cheaper = here("instances", "small.toml", "--records", "30", "--trainings", "2", "--against", "found", *QUIET)
    assert "against found: Agreement(records=30" in cheaper.stdout
    other = here("instances", "small.toml", "--records", "40", "--against", "found", *QUIET)
    assert (other.returncode, "the same records" in other.stderr) == (2, True)
    listed = here("runs", "found", "--json")
    assert listed.returncode == 0
    assert "instances (sum)" in listed.stdout
    assert "not what" not in listed.stdout
    shutil.copytree(place / "found", place / "copied")
    beside = here("diff", "found", "copied")
    assert ("no claim was tested" in beside.stdout, "is not used" in beside.stderr + beside.stdout) == (True, False)
    assert here("report", "found").returncode == 0
    edited = {**result, "records_sha256": "0" * 64}
    (place / "found" / "result.json").write_text(json.dumps(edited))
    assert here("report", "found").returncode == 2


@pytest.mark.parametrize("rule", ["mean", "individual"])
def test_other_rules(here, place: Path, rule: str) -> None:
    (place / "small.toml").write_text(SPEC)
    (place / "rows.txt").write_text("3\n44\n7\n")
    drawn = ["--draws", "2", "--tuples", "2", "--every", "5"] if rule == "mean" else []
    shown = here("instances", "small.toml", "--records", "rows.txt", "--rule", rule, "--json", *drawn, *QUIET)
    assert shown.returncode == 0, shown.stderr
    document = json.loads(shown.stdout)
    assert [row["row"] for row in document["records"]] == [3, 44, 7]
    assert WARNING in document["warning"]
    assert ("certified" in document["records"][0]) == (rule == "mean")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--records", "61"], "--records"),
        (["--records", "0"], "--records"),
        (["--records", "nothing.txt"], "a number, or a file of row numbers"),
        (["--records", "rows.txt"], "row numbers from 0 to 59"),
        (["--p", "1"], "--p = 1.0"),
        (["--order", "0.5"], "--order"),
        (["--every", "11"], "the checkpoint is missing"),
        (["--rule", "median"], "--rule"),
        (["--measure", "31"], "--measure"),
        (["--trainings", "0"], "--trainings"),
        (["--against", "nowhere"], "--against"),
    ],
)
def test_mistakes_are_told_in_one_line(here, place: Path, arguments: list[str], told: str) -> None:
    (place / "small.toml").write_text(SPEC)
    (place / "rows.txt").write_text("3\n60\n")
    shown = here("instances", "small.toml", *arguments, "--out", "found", *QUIET)
    assert shown.returncode == 2
    assert told in shown.stderr
    assert len(shown.stderr.strip().splitlines()) == 1
    assert not (place / "found").exists()
