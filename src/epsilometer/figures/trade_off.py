"""What attacks can reach at most under claims, beside what one has reached: true against false positives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from epsilometer.figures.figure import Figure, Table, number
from epsilometer.figures.palette import CERTIFIED, CLAIM, GRID, INK, MARKERS, MUTED, REGION, SERIES, THEORY

_COLOURS = {"claim": CLAIM, "theory": THEORY, "seen": INK, "bound": CERTIFIED}


@dataclass(frozen=True)
class Curve:
    """A line from (0, ·) to (1, ·): `says` is claim, theory, bound, or seen."""

    label: str
    fpr: tuple[float, ...]
    tpr: tuple[float, ...]
    says: str = "claim"


@dataclass(frozen=True)
class Point:
    """A true-positive rate at a false-positive rate, and what is known of it."""

    label: str
    fpr: float
    tpr: float


@dataclass(frozen=True)
class TradeOff(Figure):
    """Curves, of which the first claim's has its forbidden side shaded, and points, one mark each."""

    kind: ClassVar[str] = "trade-off"
    title: str
    curves: tuple[Curve, ...]
    points: tuple[Point, ...] = ()

    @property
    def height(self) -> float:
        return 4.2

    @property
    def reading(self) -> str:
        return (
            "Every test is a point: how often it says member of members (up) and of others (right). Guessing is on the "
            "dotted diagonal. The claim allows no test in the shaded region: a certified point there refutes it."
        )

    @property
    def marks(self) -> int:
        return len(self.points)

    def table(self) -> Table:
        rows = [("point", one.label, number(one.fpr), number(one.tpr)) for one in self.points]
        for curve in self.curves:
            pairs = list(zip(curve.fpr, curve.tpr, strict=True))
            step = max(1, len(pairs) // 12)
            rows += [("curve", curve.label, number(fpr), number(tpr)) for fpr, tpr in pairs[::step]]
        return Table(("what", "of", "false-positive rate", "true-positive rate"), tuple(rows))

    def draw(self, ax: Any) -> None:
        claimed = next((one for one in self.curves if one.says == "claim"), None)
        if claimed is not None:
            ax.fill_between(claimed.fpr, claimed.tpr, 1.0, color=REGION, linewidth=0, label="what the claim excludes")
        grid = [i / 100 for i in range(101)]
        ax.plot(grid, grid, color=MUTED, linestyle=":", linewidth=1.0, label="guessing")
        for curve in self.curves:
            seen = curve.says == "seen"
            ax.plot(
                curve.fpr, curve.tpr, color=_COLOURS[curve.says], linewidth=1.0 if seen else 1.6, label=curve.label,
                drawstyle="steps-post" if seen else "default", linestyle="--" if curve.says == "theory" else "-",
            )  # fmt: skip
        labels = list(dict.fromkeys(point.label for point in self.points))
        for i, label in enumerate(labels):
            own = [point for point in self.points if point.label == label]
            colour = (CERTIFIED, *SERIES[3:])[i % 4]
            (drawn,) = ax.plot(
                [one.fpr for one in own], [one.tpr for one in own], MARKERS[i % len(MARKERS)], color=colour,
                markersize=5 if len(own) > 1 else 8, linestyle="none", label=label, clip_on=False,
            )  # fmt: skip
            drawn.set_gid(f"marks-{i}")
        ax.grid(color=GRID)
        ax.set_axisbelow(True)
        ax.set_ylim(0, 1)
        ax.set_xlim(0, 1)
        ax.set_xlabel("false-positive rate")
        ax.set_ylabel("true-positive rate")
