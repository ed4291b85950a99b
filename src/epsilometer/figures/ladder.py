"""A ladder: a bar for each adversary, and what theory promises as a line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from epsilometer.figures.figure import Figure, Table, number
from epsilometer.figures.palette import CERTIFIED, CLAIM, FAMILY, INK, THEORY
from epsilometer.rounding import down


@dataclass(frozen=True)
class Rung:
    """An adversary, its certified bound, what follows if the training is DP-SGD (from trials, from single steps), and
    what a paper has for it."""

    label: str
    proved: float
    family: float | None = None
    per_step: float | None = None
    paper: float | None = None


@dataclass(frozen=True)
class Ladder(Figure):
    """All adversaries of one training, weak ones first and lowest, below what theory promises."""

    kind: ClassVar[str] = "ladder"
    title: str
    upper: float
    rungs: tuple[Rung, ...]

    @property
    def height(self) -> float:
        return 0.9 + 0.32 * max(1, len(self.rungs))

    @property
    def reading(self) -> str:
        stated = any(rung.paper is not None for rung in self.rungs)
        return (
            "Each adversary has more power than the one below it. The bar is certified; diamonds and triangles follow "
            "only if the training is DP-SGD as stated. The line is what theory promises: no sound bound is beyond it."
            + (" Circles are what the paper states, of trainings of its own." if stated else "")
        )

    @property
    def marks(self) -> int:
        later = sum(v is not None for rung in self.rungs for v in (rung.family, rung.per_step, rung.paper))
        return later + sum(not math.isnan(rung.proved) for rung in self.rungs)

    def table(self) -> Table:
        rows = [
            (rung.label, _least(rung.proved) if not math.isnan(rung.proved) else "not played", _least(rung.family),
             _least(rung.per_step), number(self.upper), number(rung.paper))
            for rung in self.rungs
        ]  # fmt: skip
        columns = (
            "adversary", "ε ≥, certified", "ε ≥, if it is DP-SGD", "ε ≥, from single steps", "ε ≤, theory", "paper",
        )  # fmt: skip
        kept = len(columns) - all(rung.paper is None for rung in self.rungs)
        return Table(columns[:kept], tuple(row[:kept] for row in rows))

    def draw(self, ax: Any) -> None:
        of_each = [(rung.proved, rung.family, rung.per_step, rung.paper) for rung in self.rungs]
        values = [value for of_one in of_each for value in of_one if value is not None]
        finite = [v for v in (*values, self.upper) if math.isfinite(v) and v > 0]
        most = 1.15 * max(finite, default=1.0)
        for y, rung in enumerate(self.rungs):
            if math.isnan(rung.proved):
                ax.text(0.01 * most, y, "not played", va="center", fontsize=8)
            else:
                (bar,) = ax.barh([y], [min(max(rung.proved, 0.0), most)], 0.5, color=CERTIFIED, label="certified")
                bar.set_gid(f"mark-{y}")
                end = (min(rung.proved, most), y)
                ax.annotate(_least(rung.proved), end, (3, 0), textcoords="offset points", va="center", fontsize=8)
            others = (
                ("if it is DP-SGD", rung.family, "D", FAMILY),
                ("single steps", rung.per_step, "^", CLAIM),
                ("paper", rung.paper, "o", INK),
            )
            for label, value, marker, colour in others:
                if value is not None:
                    (drawn,) = ax.plot([min(max(value, 0.0), most)], [y], marker, color=colour, label=label,
                                       markersize=6, clip_on=False, linestyle="none",
                                       markerfacecolor="none" if label == "paper" else colour)  # fmt: skip
                    drawn.set_gid(f"marks-{y}-{marker}")
        if math.isfinite(self.upper):
            ax.axvline(self.upper, color=THEORY, linestyle="--", linewidth=1.4, label="theory")
        ax.set_yticks(range(len(self.rungs)), [rung.label for rung in self.rungs])
        ax.set_ylim(-0.6, max(0.6, len(self.rungs) - 0.4))
        ax.set_xlim(0, most)
        ax.set_xlabel("ε")


def _least(value: float | None) -> str:
    """A lower bound, which is never rounded up."""
    return number(value) if value is None or math.isnan(value) else down(value)
