"""Pictures that a browser can show, whatever was measured."""

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsilometer.report.panels import HEIGHT, TOP, WIDTH, Panel, Series, panels_figure

SVG = "{http://www.w3.org/2000/svg}"
SCALES = [None, 0.01]


def figure(*values: float, floor: float | None = None, places: str = "abcdef") -> ElementTree.Element:
    series = Series("found", list(zip(places, values, strict=False)))
    return ElementTree.fromstring(panels_figure([Panel("one", list(places), [series])], "all", "x", "y", floor=floor))


def line(root: ElementTree.Element) -> list[tuple[float, float]]:
    (found,) = root.iter(f"{SVG}polyline")
    return [tuple(map(float, pair.split(","))) for pair in found.attrib["points"].split()]  # type: ignore[misc]


def tooltips(root: ElementTree.Element) -> list[str]:
    return [str(title.text) for title in root.iter(f"{SVG}title")]


def labels(root: ElementTree.Element) -> list[str]:
    return [str(text.text) for text in root.iter(f"{SVG}text") if text.attrib.get("text-anchor") == "end"]


def test_equal_steps_are_equally_high() -> None:
    (_, first), (_, second), (_, third) = line(figure(1, 2, 3))
    assert first - second == pytest.approx(second - third, abs=0.11)
    assert first > second > third  # up is smaller


def test_equal_factors_are_equally_high_on_a_logarithmic_scale() -> None:
    (_, first), (_, second), (_, third) = line(figure(0.1, 1, 10, floor=0.01))
    assert first - second == pytest.approx(second - third, abs=0.11)
    assert figure_ticks(floor=0.01) == [0.1, 1, 10]
    assert "≤ 0.01" in labels(figure(0.1, 1, 10, floor=0.01))  # whatever is lower is drawn there
    (_, first), (_, second), (_, third) = line(figure(0.1, 1, 10))
    assert first - second < (second - third) / 5


def figure_ticks(floor: float | None) -> list[float]:
    return [float(text) for text in labels(figure(0.1, 1, 10, floor=floor)) if re.fullmatch(r"[\d.]+", text)]


def test_a_scale_begins_at_its_floor() -> None:
    low, floor, above = line(figure(0.0, 0.01, 0.02, floor=0.01))
    assert low[1] == floor[1] > above[1]


@pytest.mark.parametrize("floor", SCALES)
@pytest.mark.parametrize("values", [(), (0.0,), (0.0095,), (0.01,), (0.0005, 0.0), (1e-12,), (math.inf,), (math.nan,)])
def test_little_or_nothing_to_draw_is_drawn(values: tuple[float, ...], floor: float | None) -> None:
    assert len(line(figure(*values, floor=floor))) == sum(not math.isnan(value) for value in values)


def test_no_panels_and_no_series_are_drawn() -> None:
    for panels in ([], [Panel("empty", [], [])], [Panel("empty", ["1"], [Series("none", [])])]):
        assert ElementTree.fromstring(panels_figure(panels, "all", "x", "y")).tag == f"{SVG}svg"


@given(st.lists(st.floats(), max_size=6), st.sampled_from(SCALES))
def test_every_coordinate_is_a_number_inside_the_picture(values: list[float], floor: float | None) -> None:
    root = figure(*(min(value, 1e100) if math.isfinite(value) else value for value in values), floor=floor)
    for x, y in line(root):
        assert 0 <= x <= WIDTH
        assert TOP - 0.1 <= y <= HEIGHT
    for element in root.iter():
        assert not any(re.search(r"nan|inf", value) for key, value in element.attrib.items() if key != "aria-label")


@pytest.mark.parametrize("floor", SCALES)
def test_what_is_infinite_is_drawn_at_the_edge(floor: float | None) -> None:
    most, infinite, below = line(figure(4, math.inf, -math.inf, floor=floor))
    assert most[1] == infinite[1] < below[1]


def test_a_gap_moves_no_tooltip() -> None:
    root = figure(1, math.nan, 3)
    assert tooltips(root) == ["found, a: 1", "found, c: 3"]
    first, third = line(root)
    assert third[0] - first[0] == pytest.approx(2 * (line(figure(1, 2))[1][0] - first[0]), abs=0.1)


def test_points_at_unknown_places_are_left_out() -> None:
    panel = Panel("one", ["a", "c"], [Series("found", [("a", 1.0), ("b", 2.0), ("c", 3.0)])])
    root = ElementTree.fromstring(panels_figure([panel], "all", "x", "y"))
    assert tooltips(root) == ["found, a: 1", "found, c: 3"]


def test_what_people_write_is_escaped() -> None:
    bad = """<a & "b" 'c'>"""
    panel = Panel(f"panel {bad}", [f"place {bad}"], [Series(f"series {bad}", [(f"place {bad}", 1.0)])])
    root = ElementTree.fromstring(panels_figure([panel], f"title {bad}", f"x {bad}", f"y {bad}"))
    texts = [str(element.text) for element in root.iter(f"{SVG}text")]
    for word in ("panel", "place", "series", "title", "x"):
        assert f"{word} {bad}" in texts
    assert f"↑ y {bad}" in texts
    assert root.attrib["aria-label"] == f"title {bad}"
    assert tooltips(root) == [f"series {bad}, place {bad}: 1"]


def test_panels_share_scale_legend_and_page() -> None:
    panels = [Panel(str(i), ["a"], [Series("s", [("a", 1.0 + i)]), Series("r", [("a", 2.0)], True)]) for i in range(5)]
    root = ElementTree.fromstring(panels_figure(panels, "all", "x", "y", columns=2))
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    assert width == 2 * WIDTH
    assert 3 * HEIGHT < height < 3 * HEIGHT + 100
    assert [text.text for text in root.iter(f"{SVG}text")].count("s") == 1
    dashed = [found for found in root.iter(f"{SVG}polyline") if "stroke-dasharray" in found.attrib]
    assert len(dashed) == 5
    assert len({found.attrib["points"] for found in dashed}) == 1  # the same height in every panel
