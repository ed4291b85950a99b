"""Several runs below each other: the lower bound of each, what it claims, and what theory promises for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from epsilometer.escape import visible
from epsilometer.figures.figure import Figure, Table, number
from epsilometer.figures.palette import CERTIFIED, CLAIM, FAMILY, GRID, THEORY


@dataclass(frozen=True)
class RunMarks:
    """What is known of one run; none where it is not."""

    label: str
    certified: float | None = None
    family: float | None = None
    claim: float | None = None
    theory: float | None = None
    note: str = ""  # of a run without a bound


@dataclass(frozen=True)
class SideBySide(Figure):
    """A line for each run, the first one on top."""

    kind: ClassVar[str] = "side-by-side"
    title: str
    runs: tuple[RunMarks, ...]
    warning: str = ""  # why marks of different lines must not be compared

    @property
    def height(self) -> float:
        return 0.9 + 0.4 * max(1, len(self.runs))

    @property
    def reading(self) -> str:
        words = (
            "A line is a run. The bar is certified: the truth lies at its end or to the right. A diamond follows only "
            "if the training is DP-SGD as stated. A square is the claim, a triangle what theory promises at most."
        )
        return f"{words} {self.warning}".strip()

    @property
    def marks(self) -> int:
        values = (value for run in self.runs for value in (run.certified, run.family, run.claim, run.theory))
        return sum(value is not None for value in values)

    def table(self) -> Table:
        rows = tuple(
            (run.label, *map(number, (run.certified, run.family, run.claim, run.theory)), run.note) for run in self.runs
        )
        return Table(("run", "ε ≥, certified", "ε ≥, if it is DP-SGD", "ε, claimed", "ε ≤, theory", "note"), rows)

    def draw(self, ax: Any) -> None:
        values = [v for run in self.runs for v in (run.certified, run.family, run.claim, run.theory) if v is not None]
        most = 1.15 * max([v for v in values if math.isfinite(v) and v > 0], default=1.0)
        places = list(range(len(self.runs)))[::-1]
        for y, run in zip(places, self.runs, strict=True):
            ax.plot([0, most], [y, y], color=GRID, linewidth=0.8, zorder=0)
            if run.certified is not None:
                (bar,) = ax.barh([y], [min(max(run.certified, 0.0), most)], 0.4, color=CERTIFIED, label="certified")
                bar.set_gid(f"mark-{y}")
            elif run.note:
                ax.text(0.01 * most, y + 0.12, visible(run.note), fontsize=8)
            others = (
                ("if it is DP-SGD", run.family, "D", FAMILY),
                ("claim", run.claim, "s", CLAIM),
                ("theory", run.theory, "<", THEORY),
            )
            for label, value, marker, colour in others:
                if value is not None:
                    hollow = {"markersize": 10, "markerfacecolor": "none"} if marker == "s" else {"markersize": 6}
                    (drawn,) = ax.plot([min(max(value, 0.0), most)], [y], marker, color=colour, label=label,
                                       clip_on=False, linestyle="none", **hollow)  # fmt: skip
                    drawn.set_gid(f"marks-{y}-{marker}")
        ax.set_yticks(places, [visible(run.label) for run in self.runs])
        ax.set_ylim(-0.6, max(0.6, len(self.runs) - 0.4))
        ax.set_xlim(0, most)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel("ε")
