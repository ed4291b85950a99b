"""Property inference as a reproduction, on made-up people with Adult's columns."""

import numpy as np
import pytest

from epsilometer.data import Dataset
from epsilometer.data.adult import CATEGORIES
from epsilometer.errors import InvalidInput
from epsilometer.json_values import json_values
from epsilometer.reproductions import REPRODUCTIONS, Row, Session, melis_property

MELIS = REPRODUCTIONS["melis-property"]


def people(*_: object, part: str = "train", features: int = 108, **__: object) -> Dataset:
    """Sex shows in other categories too; the income is in the first number."""
    rng = np.random.default_rng(0 if part == "train" else 1)
    x = np.zeros((1200, 108))
    y = rng.integers(2, size=len(x))
    x[:, 0] = 0.5 * y + 0.5 * rng.random(len(x))
    for columns in CATEGORIES.values():
        size = columns.stop - columns.start
        x[np.arange(len(x)), columns.start + rng.integers(size, size=len(x))] = 1.0
    female = x[:, CATEGORIES["sex"].start] == 1
    for name in ("relationship", "occupation", "education"):  # women have the first half of the values, men the rest
        columns = CATEGORIES[name]
        middle = (columns.start + columns.stop) // 2
        x[female, middle : columns.stop] = 0.0
        x[~female, columns.start : middle] = 0.0
    return Dataset("adult", x[:, :features], y, 2)


def test_categories_are_all_columns_after_the_six_numbers() -> None:
    assert [column for one in CATEGORIES.values() for column in range(one.start, one.stop)] == list(range(6, 108))


def test_cells_are_measured_and_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(melis_property, "load", people)
    cells = [*MELIS.chosen(["property=sex", "level=none"]), *MELIS.chosen(["property=control", "level=none"])]
    plain, control = MELIS.rows(cells, Session(80))
    assert plain.measured > 0.7 > control.measured
    assert plain.details["test"] > 0.8
    assert plain.details["share"] == pytest.approx(0.5, abs=0.05)
    figure = MELIS.draw([plain, control])
    assert figure.marks == 4  # two lines of sex, the control, and guessing
    others = [Row(cell, None, 0.6, plain.details) for cell in MELIS.chosen(["property=sex"])]
    record, participant = MELIS.draw(others).parts()
    assert (record.places, participant.places) == (("no clipping", "0", "0.3", "1", "3"), ("no clipping", "0.1", "1"))
    assert MELIS.draw([]) is not None
    assert all(key in row.details for row in (plain, control) for key in MELIS.shown)
    json_values(plain.to_dict())


def test_the_property_is_no_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(melis_property, "load", people)
    seen = []
    monkeypatch.setattr(
        melis_property, "infer_property", lambda _, victim, has, *__, **___: seen.append((victim, has)) or 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        list(MELIS.rows(MELIS.chosen(["property=sex", "level=none"]), Session(80)))
    ((victim, has),) = seen
    assert victim.x.shape[1] == 106
    assert not any(np.array_equal(column == 1, has) for column in victim.x.T)


def test_too_few_rounds_and_other_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="trials = 20: expected 40 rounds or more"):
        list(MELIS.rows(MELIS.cells[:1], Session(20)))
    monkeypatch.setattr(melis_property, "load", lambda *a, **k: people(*a, **k, features=107))
    with pytest.raises(InvalidInput, match=r"data file = 'adult\.data': expected the official one, not 107 features"):
        list(MELIS.rows(MELIS.cells[:1], Session(80)))
