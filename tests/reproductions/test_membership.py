"""Reproductions of membership inference on small made-up data: cells, pictures, and what stands in a row."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from epsilometer.data import Dataset
from epsilometer.figures import Figure, Lines
from epsilometer.json_values import json_values
from epsilometer.reproductions import (
    REPRODUCTIONS,
    Row,
    Session,
    carlini_lira,
    nasr_defences,
    shokri_classes,
    write_rows,
)
from epsilometer.runs import MemoryStore


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
    monkeypatch.setattr(nasr_defences, "load", lambda *_, **__: made_up(5))
    monkeypatch.setattr(nasr_defences, "EPOCHS", 3)
    for name, setting in nasr_defences.SETTINGS.items():
        small = replace(setting, records=200, held_out=100, population=50)
        monkeypatch.setitem(nasr_defences.SETTINGS, name, small)
    drawings = []
    for name in nasr_defences.SETTINGS:
        store = MemoryStore()
        cells = REPRODUCTIONS["nasr-defences"].chosen([f"data={name}"])
        rows = [nasr_defences._measure(cell, Session(2, store=store)) for cell in cells]
        papers = {row.cell["defence"]: row.paper for row in rows if row.paper}
        assert papers == ({"none": 0.676, "adversarial": 0.516} if name == "retail" else {})
        assert len({run.plan["data"]["sha256"] for run in store.runs()}) == 1
        promises = [row.details["theory"] is not None for row in rows]
        assert promises == [False] * 6 + [True] * 2  # DP-SGD's
        assert all(row.details["best"] >= row.measured for row in rows)
        drawings.append(drawn("nasr-defences", rows))
    titles = [[one.title for one in drawing.figures] for drawing in drawings]  # type: ignore[attr-defined]
    assert titles == [["market baskets"], ["Location-30"]]


def test_defences_from_before_there_was_location_30_stay(tmp_path: Path) -> None:
    now = REPRODUCTIONS["nasr-defences"]
    old = {"defence": "none"}
    settings = {"reproduction": now.name, "trials": 2, "seed": 0}
    details = {"train": 1.0, "test": 0.869, "attack": 0.733, "best": 0.733, "by": "shadow"}
    before = replace(now, cells=(old,), earlier={}, draw=lambda _: Lines("", (), ()))
    write_rows(tmp_path, before, settings, [Row(old, 0.676, 0.733, details)])
    new = Row({"data": "location", "defence": "none"}, None, 0.9, details)
    assert len(write_rows(tmp_path, now, settings, [new])) == 3  # nothing there was changed by anybody
    rows = json.loads((tmp_path / "result.json").read_text())["rows"]
    assert [(row["data"], row["paper"], row["measured"]) for row in rows] == [
        ("retail", 0.676, 0.733),
        ("location", None, 0.9),
    ]


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
