"""Reproductions of membership inference on small made-up data: cells, pictures, and what stands in a row."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epsilometer.auditing import MemoryStore
from epsilometer.data import Dataset
from epsilometer.figures import Figure
from epsilometer.json_values import json_values
from epsilometer.reproductions import REPRODUCTIONS, Row, Session, carlini_lira, nasr_defences, shokri_classes


def made_up(classes: int, records: int = 400) -> Dataset:
    rng = np.random.default_rng(classes)
    y = rng.integers(classes, size=records)
    return Dataset("made up", rng.random((records, 12)) < 0.3 + 0.4 * (y[:, None] % 2), y, classes)


def drawn(name: str, rows: list[Row]) -> Figure:
    figure = REPRODUCTIONS[name].draw(rows)
    assert figure.marks > 0
    assert REPRODUCTIONS[name].draw([]) is not None  # a run that has just begun
    assert all(key in row.details for row in rows for key in REPRODUCTIONS[name].shown)
    json_values([row.to_dict() for row in rows])
    return figure


def test_classes_and_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shokri_classes, "retail", lambda _, clusters: made_up(clusters))
    monkeypatch.setattr(shokri_classes, "RECORDS", 300)
    monkeypatch.setattr(shokri_classes, "POPULATION", 50)
    cells = REPRODUCTIONS["shokri-classes"].cells
    assert [cell["classes"] for cell in cells if cell["epochs"] == "30"] == ["2", "10", "20", "50", "100"]
    session = Session(2)
    rows = [shokri_classes._measure(cell, session) for cell in ({"classes": "10", "epochs": "30"}, cells[-1])]
    assert [row.paper for row in rows] == [0.550, None]
    assert all(0 <= row.measured <= 1 or math.isnan(row.measured) for row in rows)
    drawn("shokri-classes", rows)


def test_defences_are_attacked_on_the_same_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nasr_defences, "retail", lambda *_: made_up(10))
    for name, value in (("RECORDS", 200), ("HELD_OUT", 100), ("POPULATION", 50), ("EPOCHS", 3)):
        monkeypatch.setattr(nasr_defences, name, value)
    store = MemoryStore()
    rows = [nasr_defences._measure(cell, Session(2, store=store)) for cell in REPRODUCTIONS["nasr-defences"].cells]
    assert {row.cell["defence"]: row.paper for row in rows if row.paper} == {"none": 0.676, "adversarial": 0.516}
    assert {run.plan["data"]["sha256"] for run in store.runs()} == {store.runs()[0].plan["data"]["sha256"]}
    assert [row.details["theory"] is not None for row in rows] == [False] * 6 + [True] * 2  # DP-SGD promises something
    assert all(row.details["best"] >= row.measured for row in rows)
    drawn("nasr-defences", rows)


def test_cells_of_one_table_share_their_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carlini_lira, "load", lambda *_, **__: made_up(10))
    monkeypatch.setattr(carlini_lira, "RECORDS", 300)
    monkeypatch.setattr(carlini_lira, "POPULATION", 50)
    store = MemoryStore()
    rows = [carlini_lira._measure({"attack": name}, Session(4, store=store)) for name in ("loss", "lira")]
    (only,) = store.runs()
    assert only.trials == 5
    assert rows[1].paper == 0.6856
    drawn("carlini-lira", rows)
