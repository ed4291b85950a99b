"""Line charts side by side as SVG, drawn from data that were computed before; no dependency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, LEGEND = 336, 260, 52, 14, 34, 44, 20
COLOURS = ("#1f4e79", "#c0504d", "#2e7d32", "#8a6d00", "#6a3d9a", "#444444")
MARKS = ("circle", "square", "triangle")


@dataclass(frozen=True)
class Series:
    """Points (place on the x-axis, height), in the order in which they are joined; `reference` is drawn dashed."""

    label: str
    points: Sequence[tuple[str, float]]
    reference: bool = False


@dataclass(frozen=True)
class Panel:
    """A chart: a title, and series over the same places."""

    title: str
    places: Sequence[str]
    series: Sequence[Series]


def panels_figure(
    panels: Sequence[Panel], title: str, x_label: str, y_label: str, columns: int = 3, floor: float | None = None
) -> str:
    """All panels on one page, with one scale and one legend; with a `floor` the scale is logarithmic from there on."""
    heights = [y for panel in panels for one in panel.series for _, y in one.points if math.isfinite(y)]
    least = 1e-9 if floor is None else 10.0 * floor  # there is something to divide by, whatever was measured
    scale = _Scale(_round_up(max([least, *heights])), floor)
    labels = {one.label: one.reference for panel in panels for one in panel.series}
    style = {label: (COLOURS[i % len(COLOURS)], MARKS[i % len(MARKS)]) for i, label in enumerate(labels)}
    across = min(columns, max(1, len(panels)))
    down = math.ceil(len(panels) / across)
    width, top = across * WIDTH, 30 + LEGEND * math.ceil(len(labels) / across)
    height = top + down * HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="{escape(title)}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="10" y="20" font-size="14">{escape(title)}</text>',
    ]
    for i, label in enumerate(labels):
        x, y = 14 + (i % across) * WIDTH, 40 + LEGEND * (i // across)
        parts += [_mark(*style[label], x, y - 4, labels[label]), f'<text x="{x + 12}" y="{y}">{escape(label)}</text>']
    for i, panel in enumerate(panels):
        x, y = (i % across) * WIDTH, top + (i // across) * HEIGHT
        parts.append(f'<g transform="translate({x} {y})">')
        parts += _drawn(panel, scale, style, x_label, y_label)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


@dataclass(frozen=True)
class _Scale:
    """The y-axis: from 0, or from `floor` on by powers of ten."""

    most: float
    floor: float | None

    def ticks(self) -> list[float]:
        if self.floor is None:
            return [self.most * i / 4 for i in range(5)]
        tens = range(round(math.log10(self.floor)), math.floor(math.log10(self.most)) + 1)
        return [10.0**power for power in tens]

    def told(self, tick: float) -> str:
        return f"≤ {tick:g}" if tick == self.floor else f"{tick:g}"

    def share(self, value: float) -> float:
        """Where between the bottom, 0, and the top, 1."""
        if self.floor is None:
            return max(min(value, self.most), 0.0) / self.most
        return math.log(max(min(value, self.most), self.floor) / self.floor) / math.log(self.most / self.floor)


def _drawn(panel: Panel, scale: _Scale, style: dict[str, tuple[str, str]], x_label: str, y_label: str) -> list[str]:
    inner, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    step = inner / max(1, len(panel.places))
    middle = {place: LEFT + step * (i + 0.5) for i, place in enumerate(panel.places)}

    def up(value: float) -> float:
        return TOP + tall * (1.0 - scale.share(value))

    parts = [f'<text x="{LEFT}" y="{TOP - 12}" font-weight="bold">{escape(panel.title)}</text>']
    for value in scale.ticks():
        y = up(value)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{scale.told(value)}</text>')
    parts += [
        f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{escape(place)}</text>'
        for place, x in middle.items()
    ]
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">{escape(x_label)}</text>')
    parts.append(f'<text x="8" y="{HEIGHT - 8}">↑ {escape(y_label)}</text>')
    for one in panel.series:
        colour, mark = style[one.label]
        placed = [(place, y) for place, y in one.points if place in middle and not math.isnan(y)]
        line = " ".join(f"{middle[place]:.1f},{up(y):.1f}" for place, y in placed)
        dashes = ' stroke-dasharray="5 4"' if one.reference else ""
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"{dashes}/>')
        for place, y in placed:
            told = f"{one.label}, {place}: {y:.3g}"
            drawn = _mark(colour, mark, middle[place], up(y), one.reference)
            parts.append(f"<g><title>{escape(told)}</title>{drawn}</g>")
    return parts


def _mark(colour: str, mark: str, x: float, y: float, hollow: bool = False) -> str:
    paint = f'fill="{"white" if hollow else colour}" stroke="{colour}"'
    if mark == "square":
        return f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" {paint}/>'
    if mark == "triangle":
        return f'<path d="M{x:.1f} {y - 4:.1f} l4 7 h-8 z" {paint}/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" {paint}/>'


def _round_up(value: float) -> float:
    """The next number that four steps divide well.

    >>> _round_up(4.6), _round_up(0.13), _round_up(17)
    (6.0, 0.2, 20.0)
    """
    size = 10.0 ** math.floor(math.log10(value))
    return next(m * size for m in (1.0, 2.0, 4.0, 6.0, 8.0, 10.0) if value <= m * size * (1 + 1e-12))
