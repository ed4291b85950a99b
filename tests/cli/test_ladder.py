"""`epsilometer ladder`: climbs, continues, and explains what is wrong."""

import json
from pathlib import Path

import pytest

from epsilometer.cli.ladder import _cells, _line
from epsilometer.reproductions import Row


def test_the_command_climbs_and_continues(here, place: Path) -> None:
    spec = place / "small.toml"
    spec.write_text(
        '[data]\nname = "digits"\nclasses = [0, 1]\nper_class = 30\n[training]\nsample_rate = 0.2\nsteps = 10\n'
        '[audit]\ntrials = 20\n[access]\nsees = "final-model"\ncontrols = ["records"]\n'
    )
    shown = here("ladder", str(spec), "--out", "climbed", "--executor", "inline", "--quiet")
    assert shown.returncode == 0
    assert "static-poison: ε ≥" in shown.stdout
    assert "gradient:" not in shown.stdout
    first = json.loads((place / "climbed" / "result.json").read_text())
    assert [row["adversary"] for row in first["rows"]] == ["api", "static-poison"]
    again = here("ladder", str(spec), "--out", "climbed", "--executor", "inline", "--quiet", "--json")
    rows = json.loads(again.stdout)["rows"]
    assert json.loads(again.stdout)["headline"].startswith(json.loads(again.stdout)["verdict"])
    assert [row["measured"] for row in rows] == [row["measured"] for row in first["rows"]]
    first = json.loads((place / "climbed" / "result.json").read_text())
    other = here("ladder", str(spec), "--seed", "1", "--out", "climbed", "--executor", "inline", "--quiet")
    assert other.returncode == 2
    assert "seed: 0 there, 1 now" in other.stderr
    assert json.loads((place / "climbed" / "result.json").read_text()) == first


def test_an_edited_table_and_a_link_are_kept(here, place: Path) -> None:
    spec = place / "small.toml"
    spec.write_text(
        '[data]\nname = "digits"\nclasses = [0, 1]\nper_class = 30\n[training]\nsample_rate = 0.2\nsteps = 10\n'
        '[audit]\ntrials = 20\n[access]\nsees = "final-model"\ncontrols = ["records"]\n'
    )
    climb = ["ladder", str(spec), "--out", "climbed", "--executor", "inline", "--quiet"]
    assert "kept" not in here(*climb).stderr
    table, picture = place / "climbed" / "table.csv", place / "climbed" / "figure.svg"
    assert "kept" not in here(*climb).stderr  # what it wrote itself, it may write again
    table.write_text(table.read_text() + "my remark\n")
    picture.rename(place / "elsewhere.svg")
    picture.symlink_to(place / "elsewhere.svg")
    again = here(*climb)
    assert again.returncode == 0
    assert "kept climbed/table.csv, which was changed" in again.stderr
    assert "kept climbed/figure.svg" in again.stderr
    assert table.read_text().endswith("my remark\n")
    assert picture.is_symlink()


def test_the_command_explains_what_is_wrong(here, place: Path) -> None:
    for arguments, words in (
        (["--trials", "1"], "--trials = 1: expected"),
        (["--epsilon", "-1"], "--epsilon"),
        (["nowhere.toml"], "SPEC = 'nowhere.toml'"),
    ):
        shown = here("ladder", *arguments, "--out", "new", "--quiet")
        assert shown.returncode == 2
        assert words in shown.stderr
        assert shown.stderr.count("\n") == 1
        assert not (place / "new").exists()


def test_no_training_with_an_access_that_grants_too_little(here, place: Path) -> None:
    (place / "black-box.toml").write_text('[access]\nsees = "final-model"\n')
    shown = here("audit", "black-box.toml", "--quiet")
    assert shown.returncode == 2
    assert "it also needs every-model; these would work: api, static-poison" in shown.stderr


@pytest.mark.full
def test_a_fifth_of_the_noise_is_a_violation_whatever_bound_the_spec_has(here, place: Path) -> None:
    (place / "spec.toml").write_text(
        '[data]\nname = "digits"\nclasses = [0, 1]\nper_class = 30\n[training]\nsample_rate = 0.2\nsteps = 10\n'
        '[audit]\ntrials = 30\nbound = "best-on-same"\n'
    )
    shown = here("ladder", "spec.toml", "--noise-scale", "0.2", "--executor", "inline", "--quiet")
    assert shown.returncode == 1
    assert "gradient: ε ≥" in shown.stdout
    assert "VIOLATED" in shown.stdout
    assert "\nviolated: the claimed ε = 4 at δ = 1e-05 (its trade-off curve) is refuted by" in shown.stdout


def test_a_spec_for_one_run_has_a_ladder_too(here, place: Path) -> None:
    assert here("init", "one.toml", "--template", "one-run").returncode == 0
    text = (place / "one.toml").read_text()
    (place / "one.toml").write_text(text + '\n[access]\nsees = "final-model"\ncontrols = []\n')
    shown = here("ladder", "one.toml", "--trials", "4", "--executor", "inline", "--quiet")
    assert shown.returncode == 0, shown
    assert "not granted (final-model): static-poison, intermediate" in shown.stdout
    _, _, last = shown.stdout.partition("adversary\tcertified ε ≥\tif DP-SGD\tsingle steps\tverdict\n")
    assert last.startswith("api\t")
    assert "\ninconclusive: no violation of the claimed ε = 4 at δ = 1e-05 (its trade-off curve) was found by 1" in last
    assert "\nQuote nothing: no ε above 0 is certified at δ = 1e-05" in last


def test_scores_of_single_steps_are_not_taken_for_a_run(here, place: Path) -> None:
    (place / "steps.toml").write_text(
        '[data]\nname = "digits"\nclasses = [0, 1]\nper_class = 30\n[training]\nsample_rate = 0.2\nsteps = 4\n'
        '[adversary]\nname = "gradient-steps"\ncoordinates = 5\n[audit]\nbound = "gaussian-steps"\n'
    )
    audited = here("audit", "steps.toml", "--out", "run", "--executor", "inline", "--quiet")
    assert audited.returncode == 0, audited
    assert "family         ε ≥" in audited.stdout
    exported = here("runs", "run", "--export", "scores.csv")
    assert exported.returncode == 0
    assert "no bound for runs takes them" in exported.stdout + exported.stderr
    for name in ("scores.csv", "run/scores.csv"):
        for option in (["--one-run"], []):
            refused = here("bound", *option, name)
            assert refused.returncode == 2, refused
    (place / "bad.toml").write_text('[adversary]\nname = "gradient-steps"\nmalicious = "no"\n')
    assert "malicious = 'no': expected true or false" in here("preview", "bad.toml").stderr


def test_lines_and_tables_round_no_bound_up() -> None:
    details = {"settings": "api", "needs": "n", "family": 1.99999, "per_step": None, "violated": False, "verdict": "v"}
    row = Row({"adversary": "api"}, None, 0.69689, details)
    assert _line(row, 0.0) == "api: ε ≥ 0.696 certified (0.69 more), ε ≥ 1.999 if it is DP-SGD; n"
    assert _cells(row) == ("api", "0.696", "1.999", "–", "v")
