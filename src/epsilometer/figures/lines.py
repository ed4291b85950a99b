"""Lines over the same places, a panel each: what papers show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from epsilometer.figures.figure import Figure, Table, number, plain_ticks
from epsilometer.figures.palette import GRID, MARKERS, SERIES
from epsilometer.rounding import down


@dataclass(frozen=True)
class Series:
    """Points (place on the x-axis, height), in the order in which they are joined; `reference` is drawn dashed, and
    heights that are lower bounds (`at_least`) are not rounded up."""

    label: str
    points: tuple[tuple[str, float], ...]
    reference: bool = False
    at_least: bool = False


@dataclass(frozen=True)
class Lines(Figure):
    """Series over the same places. With a `floor` heights are logarithmic, and what is lower is drawn there.

    `most` and `labels` are those of all panels of a grid: the same height and colour mean the same everywhere.
    """

    kind: ClassVar[str] = "lines"
    title: str
    places: tuple[str, ...]
    series: tuple[Series, ...]
    x_label: str = ""
    y_label: str = ""
    floor: float | None = None
    most: float | None = None
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for end in (self.floor, self.most):
            if end is not None and not 0.0 < end < math.inf:  # a stored figure may have been changed
                raise ValueError(f"floor and most: {end} is no height of an axis")

    @property
    def height(self) -> float:
        return 2.9

    @property
    def reading(self) -> str:
        words = "Dashed lines with hollow marks are what others state, or what there is to compare with"
        return f"{words}; full ones were measured here."

    @property
    def marks(self) -> int:
        return sum(len(self._placed(one)) for one in self.series)

    def table(self) -> Table:
        rows = [
            (one.label, place, down(y) if one.at_least else number(y))
            for one in self.series
            for place, y in self._placed(one)
        ]
        return Table(("line", self.x_label or "at", self.y_label or "height"), tuple(rows))

    def _placed(self, one: Series) -> list[tuple[str, float]]:
        return [(place, y) for place, y in one.points if place in self.places and not math.isnan(y)]

    @property
    def _top(self) -> float:
        return highest([self]) if self.most is None else self.most

    def draw(self, ax: Any) -> None:
        least, top = (0.0 if self.floor is None else self.floor), self._top
        where = {place: i for i, place in enumerate(self.places)}
        order = self.labels or tuple(one.label for one in self.series)
        for one in self.series:
            placed = self._placed(one)
            style = order.index(one.label) if one.label in order else 0
            colour = SERIES[style % len(SERIES)]
            (drawn,) = ax.plot(
                [where[place] for place, _ in placed], [min(max(y, least), top) for _, y in placed],
                marker=MARKERS[style % len(MARKERS)], markersize=5, color=colour, clip_on=False,
                markerfacecolor="none" if one.reference else colour, linestyle="--" if one.reference else "-",
                linewidth=1.4, label=one.label,
            )  # fmt: skip
            drawn.set_gid(f"marks-{style}")
        ax.set_xticks(range(len(self.places)), self.places)
        ax.set_xlim(-0.5, max(0.5, len(self.places) - 0.5))
        if self.floor is not None:
            ax.set_yscale("log")
            plain_ticks(ax.yaxis, least=self.floor)  # what is lower is drawn there, 0 among it
        ax.set_ylim(least, top * (1.3 if self.floor is not None else 1.05))
        ax.grid(axis="y", color=GRID)
        ax.set_axisbelow(True)
        ax.set_xlabel(self.x_label)
        ax.set_ylabel(self.y_label)


def highest(panels: Sequence[Lines]) -> float:
    """What all panels fit below."""
    heights = [y for panel in panels for one in panel.series for _, y in one.points if math.isfinite(y)]
    floor = next((panel.floor for panel in panels if panel.floor is not None), None)
    return max([1e-9 if floor is None else 10.0 * floor, *heights])  # there is something to divide by
