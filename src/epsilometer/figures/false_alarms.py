"""How often bounds exceed the truth: a row for each bound, a mark with its interval for each mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from epsilometer.figures.figure import Figure, Table, number
from epsilometer.figures.palette import CERTIFIED, CLAIM, GRID


@dataclass(frozen=True)
class AlarmRate:
    """A bound on a mechanism: how often it exceeded the truth, and limits on the probability of that (95 %)."""

    bound: str
    mechanism: str
    certified: bool
    exceeded: int
    repetitions: int
    low: float
    high: float


@dataclass(frozen=True)
class FalseAlarms(Figure):
    """Certified bounds are filled: their marks may stand to the right of the line, at α, by chance only."""

    kind: ClassVar[str] = "false-alarms"
    title: str
    alpha: float
    rates: tuple[AlarmRate, ...]

    @property
    def _bounds(self) -> list[str]:
        return list(dict.fromkeys(rate.bound for rate in self.rates))

    @property
    def height(self) -> float:
        return 1.0 + 0.36 * max(1, len(self._bounds))

    @property
    def reading(self) -> str:
        return (
            "Each mark is a bound on one mechanism of known ε with a 95 % interval. Filled marks are certified bounds: "
            "their true rates are at most the dashed line's. Hollow ones certify nothing. The scale is of square roots."
        )

    @property
    def marks(self) -> int:
        return len(self.rates)

    def table(self) -> Table:
        rows = tuple(
            (rate.bound, "certified" if rate.certified else "not certified", rate.mechanism,
             f"{rate.exceeded} of {rate.repetitions}", f"{number(rate.low)} – {number(rate.high)}")
            for rate in self.rates
        )  # fmt: skip
        return Table(("bound", "kind", "mechanism", "exceeds the truth", "95 % interval"), rows)

    def draw(self, ax: Any) -> None:
        names = self._bounds
        for row, name in enumerate(reversed(names)):
            own = [rate for rate in self.rates if rate.bound == name]
            for i, rate in enumerate(own):
                y = row + (i - (len(own) - 1) / 2) * 0.7 / max(len(own), 1)
                ax.plot([rate.low, rate.high], [y, y], color=CERTIFIED, linewidth=0.8)
                (drawn,) = ax.plot([rate.exceeded / rate.repetitions], [y], "o", color=CERTIFIED, markersize=3.5,
                                   markerfacecolor=CERTIFIED if rate.certified else "none", clip_on=False)  # fmt: skip
                drawn.set_gid(f"marks-{row}-{i}")
        ax.axvline(self.alpha, color=CLAIM, linestyle=(0, (4, 3)), linewidth=1.2, label=f"α = {self.alpha:.3g}")
        ax.set_xscale("function", functions=(_root, _square))
        most = max([0.2, *(rate.high for rate in self.rates)])
        ax.set_xticks([tick for tick in (0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0) if tick <= most])
        ax.set_xlim(0, most)
        ax.set_yticks(range(len(names)), names[::-1])
        ax.grid(axis="x", color=GRID)
        ax.set_axisbelow(True)
        ax.set_xlabel("share of audits whose bound exceeds the truth")


def _root(values: Any) -> Any:
    import numpy as np

    return np.sqrt(np.maximum(values, 0.0))


def _square(values: Any) -> Any:
    return values**2
