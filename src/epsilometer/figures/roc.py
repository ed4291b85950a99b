"""True against false positives of several attacks on logarithmic axes, where attacks that matter can be told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer.figures.figure import Figure, Table, number, plain_ticks
from epsilometer.figures.palette import GRID, MUTED, SERIES

_KEPT = 200  # corners of a curve
_STYLES = ("-", "--", "-.")


@dataclass(frozen=True)
class RocCurve:
    """Corners of one attack's curve, from the smallest false-positive rate on."""

    label: str
    fpr: tuple[float, ...]
    tpr: tuple[float, ...]

    @classmethod
    def of(cls, label: str, out_scores: NDArray[np.float64], in_scores: NDArray[np.float64]) -> RocCurve:
        """Every threshold that a score gives; of many, those that a picture can show.

        >>> RocCurve.of("a", np.array([0.0, 1.0]), np.array([0.5, 2.0]))
        RocCurve(label='a', fpr=(0.0, 0.5, 0.5, 1.0), tpr=(0.5, 0.5, 1.0, 1.0))
        """
        thresholds = np.unique(np.concatenate([out_scores, in_scores]))[::-1]
        above = [np.searchsorted(np.sort(-one), -thresholds, side="right") for one in (out_scores, in_scores)]
        fpr, tpr = above[0] / len(out_scores), above[1] / len(in_scores)
        if len(fpr) > _KEPT:
            marks = np.geomspace(1.0 / len(out_scores), 1.0, _KEPT - 1)
            kept = np.unique(np.searchsorted(fpr, [0.0, *marks], side="right") - 1)
            fpr, tpr = fpr[kept[kept >= 0]], tpr[kept[kept >= 0]]
        return cls(label, tuple(fpr.tolist()), tuple(tpr.tolist()))


@dataclass(frozen=True)
class Roc(Figure):
    """Curves of attacks; `least` is where both axes begin."""

    kind: ClassVar[str] = "roc"
    title: str
    curves: tuple[RocCurve, ...]
    least: float = 1e-3

    @property
    def height(self) -> float:
        return 4.6

    @property
    def reading(self) -> str:
        return (
            "How many members an attack finds (up) for how many others that it takes for members (right), both on "
            "logarithmic axes. Guessing is on the dotted diagonal. What counts is how far a curve is above it on the "
            "left: there an attacker is hardly ever wrong."
        )

    @property
    def marks(self) -> int:
        return len(self.curves)

    def table(self) -> Table:
        rows = []
        for one in self.curves:
            step = max(1, len(one.fpr) // 12)
            rows += [
                (one.label, number(fpr), number(tpr))
                for fpr, tpr in list(zip(one.fpr, one.tpr, strict=True))[::step]
            ]  # fmt: skip
        return Table(("attack", "false-positive rate", "true-positive rate"), tuple(rows))

    def draw(self, ax: Any) -> None:
        ends = [self.least, 1.0]
        ax.plot(ends, ends, color=MUTED, linestyle=":", linewidth=1.0, label="guessing")
        for i, one in enumerate(self.curves):
            colour, style = SERIES[i % len(SERIES)], _STYLES[i // len(SERIES) % len(_STYLES)]
            shown = [max(x, self.least) for x in one.fpr], [max(y, self.least) for y in one.tpr]
            (drawn,) = ax.plot(*shown, color=colour, linestyle=style, linewidth=1.4, label=one.label,
                               drawstyle="steps-post")  # fmt: skip
            drawn.set_gid(f"mark-{i}")
        ax.set_xscale("log")
        ax.set_yscale("log")
        plain_ticks(ax.xaxis)
        plain_ticks(ax.yaxis)
        ax.set_xlim(*ends)
        ax.set_ylim(*ends)
        ax.grid(color=GRID)
        ax.set_axisbelow(True)
        ax.set_xlabel("false-positive rate")
        ax.set_ylabel("true-positive rate")
