"""The ladder of adversaries on one training, and the reproductions that use it: small stand-ins from end to end."""

import json
import math
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from epsilometer.adversaries import LADDER
from epsilometer.auditing import spec_from_dict
from epsilometer.data import Dataset, digits
from epsilometer.figures import Figure, Grid, Ladder, Rung
from epsilometer.figures.canvas import svg
from epsilometer.reproductions import (
    REPRODUCTIONS,
    Row,
    Session,
    annamalai_init,
    ladder_headline,
    ladder_of,
    nasr_ladder,
    nasr_mnist,
    write_rows,
)
from epsilometer.reproductions.cebere_gcr import tumours

SMALL = {
    "data": {"name": "digits", "classes": [0, 1], "per_class": 30},
    "training": {"sample_rate": 0.2, "steps": 10},
    "audit": {"trials": 20},
}


@pytest.fixture(scope="module")
def small() -> Dataset:
    return digits().subset(classes=(0, 1), per_class=30)


def texts(figure: Figure) -> list[str]:
    elements = ElementTree.fromstring(svg(figure)).iter()
    return [(one.text or "").strip() for one in elements if one.tag.endswith(("text", "title"))]


def test_the_ladder_has_every_adversary_and_says_what_each_needs() -> None:
    plan = spec_from_dict(SMALL).plan()
    ladder = ladder_of(plan)
    assert [cell["adversary"] for cell in ladder.cells] == list(LADDER)
    rows = list(ladder.rows(ladder.cells, Session(20)))
    for row in rows:
        assert 0 <= row.measured <= row.details["eps_opt"]
        assert row.details["theory"] == pytest.approx(4.0, abs=0.01)
        assert row.details["strength_low"] <= row.details["strength"] <= row.details["strength_high"]
        assert row.details["needs"].startswith("sees ")
        assert (row.details["per_step"] is not None) == (row.cell["adversary"] in ("gradient", "malicious-dataset"))
    by_name = {row.cell["adversary"]: row for row in rows}
    assert by_name["malicious-dataset"].details["per_step"] > 2.0  # two trainings of ten steps
    assert by_name["intermediate"].details["settings"].startswith("intermediate, ")
    assert not any(row.details["violated"] for row in rows)
    shown = texts(ladder.draw(rows))
    assert all(name in shown for name in LADDER)
    assert "theory" in shown
    assert ladder.draw(rows).figures[0].upper == pytest.approx(4.0, abs=1e-3)  # type: ignore[attr-defined]


def test_a_ladder_that_finds_a_violation_says_do_not_release_and_its_power_is_a_probability() -> None:
    plan = spec_from_dict({"training": {"steps": 2}, "audit": {"trials": 20}}).plan()
    cells = ladder_of(plan).cells
    for verdict, said in (
        ("violated", ". Do not release. Quote ε ≥ "),
        ("consistent", f"as that of {cells[0]['adversary']} is caught in 80 % of cases or more, by simulation, if"),
    ):
        rows = [Row(cells[0], None, 0.5, {"verdict": verdict, "together": 0.4})]
        short = ladder_headline(plan, rows)
        assert short.verdict == verdict
        assert said in str(short)
        assert ("Do not release" in str(short)) is (verdict == "violated")


def test_adversaries_without_their_powers_are_left_out() -> None:
    plan = spec_from_dict({
        **SMALL, "adversary": {"name": "api"}, "access": {"sees": "final-model", "controls": ["records"]}
    }).plan()  # fmt: skip
    assert [cell["adversary"] for cell in ladder_of(plan).cells] == ["api", "static-poison"]
    nothing = spec_from_dict({
        **SMALL, "adversary": {"name": "api"}, "access": {"sees": "final-model", "controls": []}
    }).plan()  # fmt: skip
    assert [cell["adversary"] for cell in ladder_of(nothing).cells] == ["api"]


def test_who_cannot_play_is_shown_with_the_reason() -> None:
    plan = spec_from_dict({**SMALL, "training": {**SMALL["training"], "noise_multiplier": 0.0}}).plan()
    ladder = ladder_of(plan)
    cell = {"adversary": "gradient"}
    (row,) = ladder.rows([cell], Session(20))
    assert math.isnan(row.measured)
    assert "noise > 0" in row.details["note"]
    assert "not played" in texts(ladder.draw([row]))


def test_the_paper_has_three_data_sets_four_epsilons_and_six_adversaries(
    small: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    nasr = REPRODUCTIONS["nasr-ladder"]
    assert len(nasr.cells) == 3 * 4 * (6 + 4)
    held_out = digits().subset(classes=(0, 1)).taken(np.arange(100, 250))
    monkeypatch.setattr(nasr_ladder, "_loaded", lambda *_: replace(small, held_out=held_out))
    cells = nasr.chosen(["data=purchase", "eps=2", "adversary=intermediate", "adversary=gradient", "game=paper"])
    rows = list(nasr.rows(cells, Session(20)))
    assert [row.paper for row in rows] == [0.25, None]
    for row in rows:
        assert row.details["theory"] == pytest.approx(2.0, abs=0.01)
    assert rows[1].details["per_step"] > 1.0
    assert "Purchase stand-in, ε = 2" in texts(nasr.draw(rows))
    plans = {}
    for cell in nasr.chosen(["data=purchase", "eps=2", "adversary=api", "adversary=static-poison"]):
        (row,) = nasr.rows([cell], Session(20))
        plans[cell["game"], cell["adversary"]] = row.details["plan_sha256"]
    assert len(set(plans.values())) == 4  # random records and shadows of their own are another game


def test_all_of_mnist_is_climbed_by_the_same_adversaries(small: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    held_out = digits().subset(classes=(0, 1)).taken(np.arange(100, 150))
    monkeypatch.setattr(nasr_mnist, "_loaded", lambda *_: replace(small, held_out=held_out))
    monkeypatch.setattr(nasr_mnist, "LOT", 10)
    whole = REPRODUCTIONS["nasr-mnist"]
    assert len(whole.cells) == 4 * 6
    assert whole.trials == 1000
    cells = whole.chosen(["eps=4", "adversary=api", "adversary=static-poison", "adversary=malicious-dataset"])
    rows = list(whole.rows(cells, Session(20)))
    assert [row.paper for row in rows] == [0.0, None, 3.6]
    for row in rows:
        assert 0 <= row.measured <= row.details["eps_opt"]
        assert row.details["theory"] == pytest.approx(4.0, abs=0.01)
        assert row.details["test_accuracy"] > 0.5
    assert "MNIST, ε = 4" in texts(whole.draw(rows))


def test_adaptive_poisons_are_compared_by_clip_norm(small: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the query's gradient is clipped both are the same trainings, and no longer where it is not."""
    held_out = digits().subset(classes=(0, 1)).taken(np.arange(100, 250))
    monkeypatch.setattr(nasr_ladder, "_loaded", lambda *_: replace(small, held_out=held_out))
    both = REPRODUCTIONS["nasr-adaptive"]
    rows = list(both.rows(both.chosen(["C=1", "C=20"]), Session(20)))
    by_cell = {(row.cell["C"], row.cell["adversary"]): row for row in rows}
    assert by_cell["1", "intermediate"].paper == 0.25
    assert by_cell["20", "intermediate"].details["theory"] == pytest.approx(2.0, abs=0.01)
    strengths = [by_cell["20", name].details["strength"] for name in ("intermediate", "adaptive-poison")]
    assert strengths[0] != strengths[1]
    assert "adaptive-poison" in texts(both.draw(rows))


def test_rungs_from_before_there_was_the_papers_game_stay(tmp_path) -> None:
    nasr = REPRODUCTIONS["nasr-ladder"]
    old = [{"data": "mnist", "eps": "4", "adversary": name} for name in ("api", "gradient")]
    before = replace(nasr, cells=tuple(old), earlier={})
    settings = {"reproduction": "nasr-ladder", "trials": 20, "seed": 0}
    write_rows(tmp_path, before, settings, [Row(cell, None, 1.0, {}) for cell in old])
    written = write_rows(tmp_path, nasr, settings, [])
    assert len(written) == 3  # nothing there was changed by anybody
    rows = json.loads((tmp_path / "result.json").read_text())["rows"]
    assert [(row["adversary"], row.get("game")) for row in rows] == [("gradient", None), ("api", "fixed")]
    rungs = [Row({**old[0], "game": "fixed"}, None, 1.0, {}), Row(old[1], None, 2.0, {})]
    *_, ladder = nasr.draw(rungs).figures  # type: ignore[attr-defined]
    assert ladder.title == "MNIST, ε = 4, one record, shadows on the data"
    assert [rung.label for rung in ladder.rungs] == ["api", "gradient"]


def test_gcr_has_68_parameters_and_the_theory_of_full_batches() -> None:
    data = tumours()
    assert data.x.shape == (569, 8)
    assert 8 * 6 + 6 + 6 * 2 + 2 == 68
    gcr = REPRODUCTIONS["cebere-gcr"]
    (row,) = gcr.rows(gcr.chosen(["lr=0.005", "eps=8"]), Session(60))
    assert row.details["agrees"]
    assert row.details["certified"] <= row.measured <= 8.0
    assert "GC-R" in texts(gcr.draw([row]))


def test_initial_weights_are_compared_side_by_side(small: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annamalai_init, "load", lambda *_, **__: small)
    both = REPRODUCTIONS["annamalai-init"]
    rows = list(both.rows(both.chosen(["eps=10"]), Session(20)))
    assert [row.paper for row in rows] == [None, 7.21]
    assert all(row.measured <= row.details["theory"] for row in rows)
    assert "worst case" in texts(both.draw(rows))


def test_a_ladder_has_the_papers_numbers_and_rounds_no_bound_up() -> None:
    ladder = Ladder("r", 4.0, (Rung("a", 0.69689, 1.99999, None, 0.69689), Rung("b", 0.5)))
    table = ladder.table()
    assert table.columns[-1] == "paper"
    assert table.rows == (("a", "0.696", "1.999", "–", "4", "0.697"), ("b", "0.500", "–", "–", "4", "–"))
    assert {"0.696", "paper"} <= set(texts(Grid("T", (ladder,))))
    assert "Circles" in ladder.reading
    drawn = REPRODUCTIONS["nasr-ladder"].draw(
        [Row({"data": "mnist", "eps": "1", "adversary": "gradient"}, 0.3, 0.69689, {"family": 0.9, "per_step": None})]
    )
    assert [row[-1] for row in drawn.table().rows] == ["0.3"]
    without = Ladder("r", 4.0, (Rung("b", 0.5),))
    assert "paper" not in without.table().columns
    assert (ladder.marks, without.marks) == (4, 1)


def test_a_ladder_is_drawn_whatever_was_measured() -> None:
    odd = (Rung("<a>", math.nan), Rung("b", 0.0, math.nan, 3.0), Rung("c", math.inf, None), Rung("d", 1e300, 1e30))
    for upper in (math.inf, 4.0):
        figure = Grid("T", (Ladder("one & two", upper, odd), Ladder("empty", upper, ())))
        assert {"<a>", "one & two", "not played"} <= set(texts(figure))
        assert [row[3] for row in figure.table().rows] == ["–", "–", "–", "1.000E+30"]
