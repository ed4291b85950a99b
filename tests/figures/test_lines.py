"""Panels of lines that a browser can show, whatever was measured."""

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epsilometer.errors import InvalidInput
from epsilometer.figures import Figure, Lines, Series, panels
from epsilometer.figures.canvas import svg
from epsilometer.report.stored_figures import figure_from_dict

SVG = "{http://www.w3.org/2000/svg}"
SCALES = [None, 0.01]


def chart(*values: float, floor: float | None = None, places: str = "abcdef") -> Lines:
    series = Series("found", tuple(zip(places, values, strict=False)))
    return Lines("one", tuple(places), (series,), floor=floor)


def drawn(figure: Figure) -> ElementTree.Element:
    return ElementTree.fromstring(svg(figure))


def marks(root: ElementTree.Element) -> list[tuple[float, float]]:
    """Where the marks of the first line are."""
    (group,) = [one for one in root.iter() if one.attrib.get("id") == "figure-marks-0"]
    return [(float(use.attrib["x"]), float(use.attrib["y"])) for use in group.iter(f"{SVG}use")]


def texts(root: ElementTree.Element) -> list[str]:
    return [str(text.text).strip() for text in root.iter(f"{SVG}text")]


def test_equal_steps_are_equally_high() -> None:
    (_, first), (_, second), (_, third) = marks(drawn(chart(1, 2, 3)))
    assert first - second == pytest.approx(second - third, abs=0.01)
    assert first > second > third  # up is smaller


def test_equal_factors_are_equally_high_on_a_logarithmic_scale() -> None:
    root = drawn(chart(0.1, 1, 10, floor=0.01))
    (_, first), (_, second), (_, third) = marks(root)
    assert first - second == pytest.approx(second - third, abs=0.01)
    assert {"≤ 0.01", "0.1", "1", "10"} <= set(texts(root))
    assert not any("mathdefault" in text for text in texts(root))


@pytest.mark.parametrize("floor", SCALES)
@pytest.mark.parametrize("values", [(), (0.0,), (0.0095,), (0.01,), (0.0005, 0.0), (1e-12,), (math.inf,), (math.nan,)])
def test_little_or_nothing_to_draw_is_drawn(values: tuple[float, ...], floor: float | None) -> None:
    figure = chart(*values, floor=floor)
    root = drawn(figure)
    shown = [one for one in root.iter() if one.attrib.get("id") == "figure-marks-0"]
    assert sum(len(list(group.iter(f"{SVG}use"))) for group in shown) == figure.marks
    assert figure.marks == sum(not math.isnan(value) for value in values)


def test_no_panels_and_no_series_are_drawn() -> None:
    for charts in ([], [Lines("empty", (), ())], [Lines("empty", ("1",), (Series("none", ()),))]):
        assert drawn(panels("all", charts, "x", "y")).tag == f"{SVG}svg"


@settings(max_examples=6, deadline=None)
@given(st.lists(st.floats(), max_size=6), st.sampled_from(SCALES))
def test_every_mark_is_a_number_inside_the_picture(values: list[float], floor: float | None) -> None:
    root = drawn(chart(*(min(value, 1e100) if math.isfinite(value) else value for value in values), floor=floor))
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for x, y in marks(root) if [value for value in values if not math.isnan(value)] else []:
        assert 0 <= x <= width
        assert 0 <= y <= height
    numbers = [value for element in root.iter() for key, value in element.attrib.items() if key in ("d", "x", "y")]
    assert not any(re.search(r"nan|inf", value) for value in numbers)


@pytest.mark.parametrize("floor", SCALES)
def test_what_is_infinite_is_drawn_at_the_edge(floor: float | None) -> None:
    most, infinite, below = marks(drawn(chart(4, math.inf, -math.inf, floor=floor)))
    assert most[1] == infinite[1] < below[1]


def test_points_at_unknown_places_and_gaps_are_left_out() -> None:
    figure = Lines("one", ("a", "c"), (Series("found", (("a", 1.0), ("b", 2.0), ("c", math.nan))),))
    assert figure.table().rows == (("found", "a", "1"),)
    assert len(marks(drawn(figure))) == figure.marks == 1


def test_panels_share_scale_and_legend() -> None:
    charts = [
        Lines(str(i), ("a",), (Series("s", (("a", 1.0 + i),)), Series("r", (("a", 2.0),), reference=True)))
        for i in range(5)
    ]
    figure = panels("all", charts, "x", "y")
    root = drawn(figure)
    assert texts(root).count("s") == 1
    assert {one.most for one in figure.figures} == {5.0}  # type: ignore[attr-defined]
    dashed = [one for one in root.iter(f"{SVG}path") if "stroke-dasharray" in one.attrib.get("style", "")]
    assert len(dashed) >= 1
    assert figure.marks == 10
    assert len(figure.table().rows) == 10


@pytest.mark.parametrize(
    "ends", [{"floor": 0.0}, {"floor": -0.01}, {"most": 0.0}, {"most": math.nan}, {"most": math.inf}]
)
def test_axes_that_cannot_be_drawn_are_refused(ends: dict[str, float]) -> None:
    """As a stored figure that was changed may have them; matplotlib would warn in the middle of a report."""
    stored = chart(0.1, 1, 10, floor=0.01).to_dict()
    assert figure_from_dict(stored) == chart(0.1, 1, 10, floor=0.01)
    with pytest.raises(InvalidInput, match="a figure as this version writes it"):
        figure_from_dict(stored | ends)
