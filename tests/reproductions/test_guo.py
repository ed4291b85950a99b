"""Reconstruction as a reproduction: cells, pictures, what is kept, and what the command says."""

import json
from pathlib import Path

import pytest

from epsilometer.cli.app import program
from epsilometer.errors import InvalidInput
from epsilometer.figures import Grid, Lines, Pictures
from epsilometer.reproductions import Row, Session
from epsilometer.reproductions.guo_reconstruction import GUO_RECONSTRUCTION


def measured(*only: str, trials: int = 20, seed: int = 0) -> list[Row]:
    return list(GUO_RECONSTRUCTION.rows(GUO_RECONSTRUCTION.chosen(only), Session(trials, seed)))


def test_what_is_exact_without_noise_is_lost_with_it() -> None:
    rows = measured("data=digits", "noise=0", "noise=0.01", "noise=1")
    for attack in ("sums", "gradient"):
        exact, little, much = (row for row in rows if row.cell["attack"] == attack)
        assert exact.measured < 1e-12
        assert exact.details["found"] == little.details["found"] == 1.0
        assert exact.details["fisher"] < little.details["fisher"] < little.details["raw"] < little.details["guess"]
        assert much.measured > much.details["guess"]
        assert much.details["found"] < 0.2
        assert exact.details["renyi"] <= little.details["renyi"] <= much.details["renyi"]
    # Replacing a gradient moves it by 2C, replacing a picture moves a sum by √d: four times the exponent.
    epsilons = {row.cell["attack"]: row.details["renyi_epsilon"] for row in rows if row.cell["noise"] == "1"}
    assert epsilons == pytest.approx({"sums": 1.0, "gradient": 4.0})


def test_the_same_seed_gives_the_same_and_another_other_records() -> None:
    first, again, other = (measured("attack=sums", "noise=0.01", seed=seed)[0] for seed in (0, 0, 1))
    assert first.to_dict() == again.to_dict()
    assert first.details["guess"] != other.details["guess"]


def test_pictures_stand_beside_the_errors() -> None:
    rows = measured("attack=gradient", "data=digits", "noise=0", "noise=0.03")
    figure = GUO_RECONSTRUCTION.draw(rows)
    assert isinstance(figure, Grid)
    lines, pictures = figure.figures
    assert isinstance(lines, Lines)
    assert isinstance(pictures, Pictures)
    original, exact, noisy = pictures.pictures
    assert [one.label for one in pictures.pictures] == ["original", "0", "0.03"]
    assert original.pixels == exact.pixels != noisy.pixels
    table = figure.table()
    assert {"line", "record"} <= set(table.columns)  # tables of two kinds in one
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert GUO_RECONSTRUCTION.draw([]).marks == 0


def test_more_records_than_there_are_is_refused() -> None:
    with pytest.raises(InvalidInput, match="trials = 1798: expected 1797 at most"):
        measured("attack=sums", "noise=0", trials=1798)


def test_the_command_keeps_numbers_and_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reproduce", "guo-reconstruction", "--only", "attack=gradient", "--only", "data=digits", "--only",
             "noise=0", "--trials", "20", "--out", str(tmp_path / "out"), "--json", "--quiet"]  # fmt: skip
    assert not program()(words, standalone_mode=False)
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["found"] == 1.0
    assert row["picture"]["original"] == row["picture"]["estimate"]
    assert "picture" not in (tmp_path / "out" / "table.csv").read_text()
    assert "<image" in (tmp_path / "out" / "figure.svg").read_text()
    assert "<image" in (tmp_path / "out" / "report.html").read_text()
