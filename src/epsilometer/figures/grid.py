"""Several figures as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from epsilometer.errors import InvalidInput
from epsilometer.figures.figure import Figure, Table
from epsilometer.figures.lines import Lines, highest


@dataclass(frozen=True)
class Grid(Figure):
    """Figures side by side, each in axes of its own."""

    kind: ClassVar[str] = "grid"
    title: str
    figures: tuple[Figure, ...]
    note: str = ""

    @property
    def reading(self) -> str:
        words = list(dict.fromkeys(one.reading for one in self.figures))
        return " ".join([*words, self.note]).strip()

    @property
    def marks(self) -> int:
        return sum(one.marks for one in self.figures)

    def parts(self) -> Sequence[Figure]:
        return self.figures

    def table(self) -> Table:
        tables = [(one.title, one.table()) for one in self.figures]
        if len({table.columns for _, table in tables}) <= 1:  # the usual case; two columns may have one name
            columns = tables[0][1].columns if tables else ()
            return Table(("panel", *columns), tuple((title, *row) for title, table in tables for row in table.rows))
        columns = tuple(dict.fromkeys(column for _, table in tables for column in table.columns))
        rows = []
        for title, table in tables:
            for row in table.rows:
                known = dict(zip(table.columns, row, strict=True))
                rows.append((title, *(known.get(column, "–") for column in columns)))
        return Table(("panel", *columns), tuple(rows))

    def draw(self, ax: Any) -> None:
        raise InvalidInput("ax", "axes", f"nothing: {self.title!r} has {len(self.figures)} axes of its own")


def panels(
    title: str, charts: Sequence[Lines], x_label: str, y_label: str, *, floor: float | None = None, note: str = ""
) -> Grid:
    """Charts with one scale and one legend; with a `floor` the scale is logarithmic from there on."""
    alike = [replace(one, x_label=x_label, y_label=y_label, floor=floor) for one in charts]
    most = highest(alike)
    labels = tuple(dict.fromkeys(series.label for one in alike for series in one.series))
    return Grid(title, tuple(replace(one, most=most, labels=labels) for one in alike), note)
