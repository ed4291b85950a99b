"""`epsilometer ladder`: climbs, continues, and explains what is wrong."""

import json
from pathlib import Path


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
    assert [row["measured"] for row in rows] == [row["measured"] for row in first["rows"]]
    first = json.loads((place / "climbed" / "result.json").read_text())
    other = here("ladder", str(spec), "--seed", "1", "--out", "climbed", "--executor", "inline", "--quiet")
    assert other.returncode == 2
    assert "seed: 0 there, 1 now" in other.stderr
    assert json.loads((place / "climbed" / "result.json").read_text()) == first


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
