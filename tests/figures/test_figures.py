"""Every kind of figure: the numbers go to JSON and back, and each number of the data has its mark."""

import json
import math
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from epsilometer.claims import GaussianClaim, PointClaim, StepClaim
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Membership, OneRun, PairedRuns
from epsilometer.figures import (
    FIGURES,
    AlarmRate,
    Curve,
    Distribution,
    FalseAlarms,
    Figure,
    Grid,
    Ladder,
    Level,
    Lines,
    Path,
    Pictures,
    Point,
    Roc,
    RocCurve,
    Rung,
    Scale,
    ScaleMark,
    ScoreHistograms,
    Series,
    TradeOff,
    panels,
)
from epsilometer.figures.canvas import svg
from epsilometer.figures.palette import DARK
from epsilometer.report.stored_figures import figure_from_dict

SVG = "{http://www.w3.org/2000/svg}"
BAD = "<script>alert(1)</script> & $x$ \x1b[31m"
ONES = (1.0, math.inf, 0.0)
EXAMPLES: list[Figure] = [
    Scale(BAD, BAD, (ScaleMark(BAD, 1.0, "at least"), ScaleMark("b", math.inf, "claimed"), ScaleMark("c", 0.0, "x"))),
    ScoreHistograms.of([0.0, 1.0, 2.0] * 40, [1.0, 2.0, 3.0] * 40, threshold=1.5, title=BAD),
    TradeOff(BAD, (PointClaim(1.0, 1e-5).curve(BAD), Curve("seen", (0.0, 0.5, 1.0), (0.0, 0.7, 1.0), "seen")),
             (Point("a", 0.1, 0.4), Point("a", 0.2, 0.5), Point(BAD, 0.0, 0.1))),
    Path(BAD, BAD, BAD, BAD, (10, 100, 1000), (0.1, math.inf, 0.3), (Level(BAD, 1.0), Level("t", math.inf, "theory"))),
    Ladder(BAD, 4.0, (Rung(BAD, math.nan), Rung("b", 0.5, 2.0, 3.0), Rung("c", math.inf))),
    Ladder("empty", math.inf, ()),
    panels(BAD, [Lines(BAD, ("1", BAD), (Series(BAD, (("1", 1.0), (BAD, 3.0))),)) for _ in range(3)], BAD, BAD),
    Grid(BAD, (Ladder("a", 1.0, (Rung("x", 0.5),)), Ladder("b", 2.0, (Rung("x", 0.5),))), "note"),
    FalseAlarms(BAD, 0.05, (AlarmRate("a", BAD, True, 3, 60, 0.01, 0.1), AlarmRate("b", "m", False, 30, 60, 0.3, 0.7))),
    Roc(BAD, (RocCurve.of(BAD, np.arange(900.0), np.arange(100.0, 1000.0)), RocCurve("b", (0.0, 1.0), (0.5, 1.0)))),
    Distribution.of(BAD, {BAD: np.array([0.1, 2.0, math.inf]), "b": np.array([])}, (Level(BAD, 3.0),), BAD, BAD),
    Pictures.of(BAD, [(BAD, np.arange(64.0)), ("b", np.zeros(64))], (8, 8), 0.0, 63.0),
]  # fmt: skip


def count(root: ElementTree.Element) -> int:
    """Marks that stand for data: bars and pictures by themselves, others by where they are used."""
    marked = [one for one in root.iter() if one.attrib.get("id", "").startswith("figure-mark")]
    uses = sum(len(list(one.iter(f"{SVG}use"))) for one in marked if "-marks-" in one.attrib["id"])
    return uses + sum("-mark-" in one.attrib["id"] for one in marked)


def test_all_kinds_are_here() -> None:
    assert {type(one) for one in EXAMPLES} | {Lines} >= {
        kind for kind in FIGURES.values() if kind.__module__ != "epsilometer.figures.side_by_side"
    }


@pytest.mark.parametrize("figure", EXAMPLES, ids=lambda one: one.kind)
def test_a_figure_is_drawn_as_its_data_say(figure: Figure) -> None:
    text = svg(figure)
    assert text == svg(figure)  # no date, no random ids
    root = ElementTree.fromstring(text)
    assert count(root) == figure.marks
    assert not [one for one in root.iter() if one.tag.endswith("script")]
    assert "\x1b" not in text
    assert "mathdefault" not in text  # formulas are not typeset: ticks must be plain numbers
    title = root.find(f"{SVG}title")
    assert title is not None
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-labelledby"] == title.attrib["id"]
    if figure.title == BAD:
        assert title.text == BAD.replace("\x1b", "\\x1b")
    assert all(len(row) == len(figure.table().columns) for row in figure.table().rows)


@pytest.mark.parametrize("figure", EXAMPLES, ids=lambda one: one.kind)
def test_a_figure_comes_back_from_json(figure: Figure) -> None:
    again = figure_from_dict(json.loads(json.dumps(figure.to_dict(), allow_nan=False)))
    assert again.to_dict() == figure.to_dict()
    assert again.table() == figure.table()
    assert (again.marks, again.reading) == (figure.marks, figure.reading)


@pytest.mark.parametrize(
    "bad", [{}, {"kind": "none"}, {"kind": "path"}, {"kind": "grid", "title": "a", "figures": [1]}]
)
def test_what_is_no_figure_is_refused(bad: dict) -> None:
    with pytest.raises(InvalidInput, match="figures"):
        figure_from_dict(bad)


def test_colours_follow_the_page_and_files_have_a_background() -> None:
    text = svg(EXAMPLES[1], "page")
    assert 'id="page-title"' in text
    assert not [colour for colour in DARK if text.count(colour) != text.count(f"var(--{DARK[colour][0]}, {colour})")]
    assert "#ffffff" not in text
    assert "#ffffff" in svg(EXAMPLES[1], alone=True)


@pytest.mark.parametrize(
    "scores", [[0.0], [1.0] * 7, [math.inf, -math.inf, 0.0], [1e308, -1e308], [5e-324, 0.0], [math.inf]]
)
def test_every_score_is_in_a_bin(scores: list[float]) -> None:
    figure = ScoreHistograms.of(scores, scores[::-1], threshold=scores[0])
    assert sum(figure.out_counts) == sum(figure.in_counts) == len(scores)
    assert all(np.diff(figure.edges) > 0)
    assert count(ElementTree.fromstring(svg(figure))) == figure.marks


def test_a_hundred_thousand_scores_are_few_bars() -> None:
    rng = np.random.default_rng(0)
    figure = ScoreHistograms.of(rng.standard_cauchy(50_000), rng.standard_cauchy(50_000) + 1)
    assert figure.marks == 80
    assert sum(figure.out_counts) == 50_000
    assert max(figure.out_counts) < 15_000  # outliers do not push all others into one bar


def test_claims_evidence_and_results_are_plotted() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    rng = np.random.default_rng(0)
    runs = PairedRuns(rng.normal(size=50), rng.normal(size=50))
    one_run = OneRun(rng.normal(size=20), rng.random(20) < 0.5)
    for one in (PointClaim(1.0), GaussianClaim(1.0), StepClaim(0.5), runs, one_run, Membership([0.0, 1.0], [0, 1])):
        ax = one.plot()
        assert one.plot(ax) is ax
        assert ax.get_title(loc="left")
        assert "<svg" in one._repr_html_()
        assert "\n" not in repr(one)
        pyplot.close("all")
    with pytest.raises(InvalidInput, match="ax"):
        EXAMPLES[6].plot(pyplot.subplots()[1])
    assert len(EXAMPLES[6].plot()) == 3
    pyplot.close("all")


def test_what_is_below_the_floor_is_said_to_be() -> None:
    lines = Lines("l", ("1",), (Series("a", (("1", 0.0),)), Series("b", (("1", 1.0),))), "x", "y", floor=0.01)
    assert "≤ 0.01" in svg(lines)
    assert "≤" not in svg(replace(lines, floor=None))


def test_a_grid_has_one_table_of_all_its_panels() -> None:
    lines = Lines("l", ("1",), (Series("a", (("1", 2.0),)),), "x", "x")  # two columns of one name
    same = Grid("g", (lines, lines)).table()
    assert same.columns == ("panel", "line", "x", "x")
    assert same.rows == (("l", "a", "1", "2"),) * 2
    ladder = Ladder("r", 1.0, (Rung("one", 0.5),))
    mixed = Grid("g", (Lines("l", ("1",), (Series("a", (("1", 2.0),)),), "x", "y"), ladder)).table()
    assert set(mixed.columns) == {"panel", "line", "x", "y", *ladder.table().columns}
    assert [len(row) for row in mixed.rows] == [len(mixed.columns)] * 2
    assert mixed.rows[0][:4] == ("l", "a", "1", "2")
    assert mixed.rows[1][:4] == ("r", "–", "–", "–")
