"""A number as evidence came in, beside levels that it may pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from epsilometer.figures.figure import Figure, Table, number, plain_ticks
from epsilometer.figures.palette import CERTIFIED, CLAIM, GRID, MUTED, THEORY

_LEVELS = {"claim": (CLAIM, "-"), "theory": (THEORY, "--"), "reach": (MUTED, ":")}


@dataclass(frozen=True)
class Level:
    """A line across; `says` is claim, theory or reach."""

    label: str
    value: float
    says: str = "claim"


@dataclass(frozen=True)
class Path(Figure):
    """`values` after so many (`counts`) of what is counted."""

    kind: ClassVar[str] = "path"
    title: str
    counted: str
    quantity: str
    label: str
    counts: tuple[int, ...]
    values: tuple[float, ...]
    levels: tuple[Level, ...] = ()
    note: str = ""

    @property
    def reading(self) -> str:
        return self.note

    @property
    def marks(self) -> int:
        return sum(math.isfinite(value) for value in self.values)

    def table(self) -> Table:
        rows = [(f"{count:,}", number(value, 4)) for count, value in zip(self.counts, self.values, strict=True)]
        rows += [(level.label, number(level.value, 4)) for level in self.levels]
        return Table((self.counted, self.quantity), tuple(rows))

    def draw(self, ax: Any) -> None:
        pairs = [(c, v) for c, v in zip(self.counts, self.values, strict=True) if math.isfinite(v)]
        (drawn,) = ax.plot(
            [c for c, _ in pairs], [v for _, v in pairs], "o-", color=CERTIFIED, markersize=4, label=self.label
        )
        drawn.set_gid("marks-path")
        for level in self.levels:
            if math.isfinite(level.value):
                colour, style = _LEVELS[level.says]
                ax.axhline(level.value, color=colour, linestyle=style, linewidth=1.4, label=level.label)
        if self.counts and max(self.counts) > 30 * max(1, min(self.counts)):
            ax.set_xscale("log")
            plain_ticks(ax.xaxis)
        ax.grid(axis="y", color=GRID)
        ax.set_axisbelow(True)
        ax.margins(y=0.12)
        if not any(value < 0 for _, value in pairs):
            ax.set_ylim(bottom=0)
        ax.set_xlabel(self.counted)
        ax.set_ylabel(self.quantity)
