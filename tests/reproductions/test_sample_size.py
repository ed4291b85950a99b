"""The sample-size curve of output perturbation: the world in which it is measured, and how it grows."""

import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from epsilometer.reproductions import Session, chaudhuri_sample_size, reproduction_named, write_rows
from epsilometer.reproductions.chaudhuri_sample_size import excess_risks

SAMPLE_SIZE = reproduction_named("chaudhuri-sample-size")


def test_excess_risks_are_positive_and_shrink() -> None:
    rng = np.random.default_rng(0)
    few, many = (excess_risks(n, 0.05, 1.0, 200, rng) for n in (200, 20_000))
    assert few.min() >= 0
    assert many.min() >= 0
    assert np.median(many) < np.median(few) / 10
    clean = excess_risks(10**9, 0.05, math.inf, 5, rng)
    assert 0 < clean.max() < 0.025  # what the penalty costs, and no noise: at most λ‖θ*‖²/2


def test_it_grows_as_the_theorem_says(tmp_path: Path) -> None:
    """n ∝ γ^{−3/2}/ε, in steps of a quarter of a doubling; n ∝ 1/γ would be off by a factor of 4."""
    cells = SAMPLE_SIZE.chosen(["eps=0.1", "eps=1", "gamma=0.2", "gamma=0.01"])
    rows = list(SAMPLE_SIZE.rows(cells, Session(200)))
    found = {tuple(row.cell.values()): row.measured for row in rows}
    assert found["0.1", "0.01"] / found["0.1", "0.2"] == pytest.approx(20**1.5, rel=0.5)
    assert found["0.1", "0.01"] / found["1", "0.01"] == pytest.approx(10, rel=0.5)
    for row in rows:
        assert row.details["term"] == "noise and penalty"
        assert row.details["share_below"] < 0.9 <= row.details["share"]
    write_rows(tmp_path, SAMPLE_SIZE, {}, rows)
    picture = ElementTree.parse(tmp_path / "figure.svg").getroot()
    assert "theorem, constants 1" in "".join(picture.itertext())


def test_every_cell_is_measured_alike() -> None:
    (cell,) = SAMPLE_SIZE.chosen(["eps=1", "gamma=0.1"])
    (first,), (again,), (other,) = (list(SAMPLE_SIZE.rows([cell], Session(50, seed))) for seed in (1, 1, 2))
    assert first == again
    assert first.details["share"] >= 1 - 2 * chaudhuri_sample_size.BETA
    assert other.paper == first.paper
