"""One axis with everything that is known of a number: what is at least true, what is promised, what could be shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from epsilometer.figures.figure import Figure, Table, number
from epsilometer.figures.palette import CERTIFIED, CLAIM, FAMILY, GRID, MUTED, THEORY

AT_LEAST, ASSUMED, AT_MOST, CLAIMED, REACH = "at least", "at least, if", "at most", "claimed", "could show"
_LOOKS = {  # colour, marker, and where an arrow points
    AT_LEAST: (CERTIFIED, "o", 1),
    ASSUMED: (FAMILY, "D", 1),
    AT_MOST: (THEORY, "^", -1),
    CLAIMED: (CLAIM, "s", 0),
    REACH: (MUTED, "x", 0),
}


@dataclass(frozen=True)
class ScaleMark:
    """A value on the axis, and what is said by it: one of the five words above."""

    label: str
    value: float
    says: str
    note: str = ""


@dataclass(frozen=True)
class Scale(Figure):
    """Marks below each other on one axis; an arrow points to where the truth can be."""

    kind: ClassVar[str] = "scale"
    title: str
    quantity: str
    entries: tuple[ScaleMark, ...]

    @property
    def height(self) -> float:
        return 0.75 + 0.34 * max(1, len(self.entries))

    @property
    def reading(self) -> str:
        return (
            "Each line is one statement. An arrow to the right: the truth is at least there; to the left: at most; no "
            "arrow: a claim, or the most that this run could have shown."
        )

    @property
    def marks(self) -> int:
        return len(self.entries)

    def table(self) -> Table:
        rows = tuple((one.label, one.says, number(one.value, 4), one.note) for one in self.entries)
        return Table(("statement", "says", self.quantity, "how"), rows)

    def draw(self, ax: Any) -> None:
        finite = [one.value for one in self.entries if math.isfinite(one.value)]
        most = 1.2 * max([1e-9, *finite]) if finite else 1.0
        places = list(range(len(self.entries)))[::-1]
        for y, one in zip(places, self.entries, strict=True):
            colour, marker, arrow = _LOOKS.get(one.says, _LOOKS[REACH])
            x = min(max(one.value, 0.0), most)
            ax.plot([0, most], [y, y], color=GRID, linewidth=0.8, zorder=0)
            if arrow and math.isfinite(one.value):
                end = min(most, x + 0.12 * most) if arrow > 0 else max(0.0, x - 0.12 * most)
                ax.annotate("", (end, y), (x, y), arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 1.4})
            (drawn,) = ax.plot([x], [y], marker, color=colour, markersize=7, clip_on=False)
            drawn.set_gid(f"marks-{y}")
            ax.annotate(
                number(one.value), (x, y), (0, 6), textcoords="offset points", ha="center", va="bottom", fontsize=8
            )
        ax.set_yticks(places, [one.label for one in self.entries])
        ax.set_ylim(-0.5, len(self.entries) - 0.35)
        ax.set_xlim(0, most)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.set_xlabel(self.quantity)
