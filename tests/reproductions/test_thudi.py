"""Single records after Thudi et al., on data that are always there: cells are measured, kept and drawn."""

import pytest

from epsilometer.data import load
from epsilometer.reproductions import Session, reproduction_named, thudi_instances
from epsilometer.reproductions.reproduction import Cell
from epsilometer.runs import MemoryStore


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thudi_instances, "load", lambda **_: load(name="digits", classes=[0, 1, 2], per_class=50))
    monkeypatch.setattr(thudi_instances, "ENDS", 1)
    for name, batch in (("_SAMPLED", 30.0), ("_ATTACKED", None)):
        setting = thudi_instances.Setting(50, batch, 12, 4.0, 1.0)
        monkeypatch.setattr(thudi_instances, name, {"mnist": setting})


@pytest.mark.usefixtures("small")
def test_cells_are_measured_and_drawn() -> None:
    chosen = reproduction_named("thudi-instances")
    cells: list[Cell] = [{"data": "mnist", "part": part} for part in ("individual", "sum", "leakage")]
    store = MemoryStore()
    rows = list(chosen.rows(cells, Session(trials=10, store=store)))
    for row in rows:
        assert row.details["records"] == 150
        assert 0 < row.details["tenth"] <= row.details["median"] <= row.details["worst"]
        assert row.measured == pytest.approx(row.details["median"] / row.details["worst"])
        assert set(chosen.shown[:5]) <= row.details.keys()
    assert rows[1].details["median_costliest"] <= rows[1].details["median"]
    assert rows[1].details["median_by_steps"] > 0
    assert rows[2].details["within"] is True
    assert [part["part"] for part in (run.plan for run in store.runs()) if "part" in part] == ["leakage", "leakage"]
    assert chosen.draw(rows).table().rows
