"""How values are spread, in one or several groups that share their bins, beside levels that mean something."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer.figures.figure import Figure, Table, number
from epsilometer.figures.palette import CLAIM, SERIES
from epsilometer.figures.path import Level

BINS = 24


@dataclass(frozen=True)
class Group:
    """How many values of one kind lie in each bin."""

    label: str
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Distribution(Figure):
    """Counts between `edges`, groups stacked."""

    kind: ClassVar[str] = "distribution"
    title: str
    edges: tuple[float, ...]
    groups: tuple[Group, ...]
    levels: tuple[Level, ...] = ()
    x_label: str = ""
    things: str = "records"

    @classmethod
    def of(
        cls,
        title: str,
        groups: Mapping[str, NDArray[np.float64]],
        levels: tuple[Level, ...] = (),
        x_label: str = "",
        things: str = "records",
    ) -> Distribution:
        """Count values from 0 on.

        >>> Distribution.of("ε", {"all": np.array([0.1, 0.2, 4.0])}).groups[0].counts[0]
        1
        """
        finite = np.concatenate([[0.0], *(one[np.isfinite(one)] for one in groups.values()), [a.value for a in levels]])
        edges = np.linspace(0.0, float(finite[np.isfinite(finite)].max()) or 1.0, BINS + 1)
        counted = [
            Group(label, tuple(np.histogram(np.clip(one, 0.0, edges[-1]), edges)[0].tolist()))
            for label, one in groups.items()
        ]
        return cls(title, tuple(edges.tolist()), tuple(counted), levels, x_label, things)

    @property
    def reading(self) -> str:
        return f"Each bar counts {self.things}; groups are stacked. Dashed lines are what the legend says."

    @property
    def marks(self) -> int:
        return sum(len(one.counts) for one in self.groups)

    def table(self) -> Table:
        rows = tuple(
            (number(low, 4), number(high, 4), *(f"{one.counts[i]:,}" for one in self.groups))
            for i, (low, high) in enumerate(zip(self.edges[:-1], self.edges[1:], strict=True))
        )
        return Table(("from", "to", *(one.label for one in self.groups)), rows)

    def draw(self, ax: Any) -> None:
        below = np.zeros(len(self.edges) - 1)
        for place, one in enumerate(self.groups):
            bars = ax.bar(
                self.edges[:-1], one.counts, np.diff(self.edges), bottom=below, align="edge",
                color=SERIES[(2 * place) % len(SERIES)], label=one.label,
            )  # fmt: skip
            for i, bar in enumerate(bars):
                bar.set_gid(f"mark-{place}-{i}")
            below = below + np.array(one.counts)
        for place, level in enumerate(self.levels):
            style = ((0, (4, 3)), (0, (1, 2)))[place % 2]
            ax.axvline(min(level.value, self.edges[-1]), color=CLAIM, linestyle=style, linewidth=1.2, label=level.label)
        ax.set_xlim(self.edges[0], self.edges[-1] * 1.02)
        ax.set_xlabel(self.x_label)
        ax.set_ylabel(f"number of {self.things}")
