"""Scores of both worlds as shares of trials, one above the axis and one below it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer.figures.figure import Figure, Table, number, percent
from epsilometer.figures.palette import CLAIM, IN, MUTED, OUT

BINS = 40
RECORD = "the record"
_ENDS = 0.002  # of the scores at either end, which share a bin with what lies just inside
_FAR = 4.0  # times the range of the middle half: what lies further away does too
_LARGEST = 1e100  # that axes can show


@dataclass(frozen=True)
class ScoreHistograms(Figure):
    """Counts between `edges` in the worlds without and with the record, or `what` else they differ in; what lies beyond
    is in the first or last."""

    kind: ClassVar[str] = "worlds"
    title: str
    edges: tuple[float, ...]
    out_counts: tuple[int, ...]
    in_counts: tuple[int, ...]
    threshold: float | None = None
    things: str = "trials"
    what: str = RECORD

    @classmethod
    def of(
        cls,
        out_scores: Sequence[float] | np.ndarray,
        in_scores: Sequence[float] | np.ndarray,
        threshold: float | None = None,
        title: str = "Scores with and without the record",
        things: str = "trials",
        what: str = RECORD,
    ) -> ScoreHistograms:
        """Count scores, as many as there may be, in few bins.

        >>> ScoreHistograms.of([0.0, 1.0, 1.0], [2.0, 2.0]).out_counts[0]
        1
        """
        outs, ins = np.asarray(out_scores, np.float64), np.asarray(in_scores, np.float64)
        both = np.concatenate([outs, ins])
        finite = np.clip(both[np.isfinite(both)], -_LARGEST, _LARGEST)
        low, high = _range(finite, threshold)
        bins = int(min(BINS, max(8, math.sqrt(max(len(both), 1)))))
        edges = np.linspace(low, high, bins + 1)
        inner = edges[1:-1]
        counts = [np.bincount(np.searchsorted(inner, one, side="right"), minlength=bins) for one in (outs, ins)]
        shown = threshold if threshold is not None and abs(threshold) <= _LARGEST else None
        rows = [tuple(int(count) for count in one) for one in counts]
        return cls(title, tuple(edges.tolist()), rows[0], rows[1], shown, things, what)

    def to_dict(self) -> dict[str, Any]:
        """`what` is newer than stored results, and in them only where it is another."""
        values = super().to_dict()
        return values if self.what != RECORD else {key: value for key, value in values.items() if key != "what"}

    @property
    def reading(self) -> str:
        words = (
            f"Bars above the line: {self.things} without {self.what}; below: with it. The more the two halves mirror "
            "each other, the less the attack can tell. The outermost bars hold everything beyond them."
        )
        return words if self.threshold is None else f"{words} The dashed line is the threshold of the bound."

    @property
    def marks(self) -> int:
        return len(self.out_counts) + len(self.in_counts)

    def table(self) -> Table:
        rows = []
        for i, (outs, ins) in enumerate(zip(self.out_counts, self.in_counts, strict=True)):
            first = "below" if i == 0 else number(self.edges[i], 4)
            last = "above" if i == len(self.out_counts) - 1 else number(self.edges[i + 1], 4)
            rows.append((first, last, f"{outs:,}", f"{ins:,}"))
        return Table(("from", "to", "without", "with"), tuple(rows))

    def draw(self, ax: Any) -> None:
        from matplotlib.ticker import FuncFormatter

        sides = ((f"without {self.what}", self.out_counts, OUT, 1.0), (f"with {self.what}", self.in_counts, IN, -1.0))
        widths = np.diff(self.edges)
        for label, counts, colour, sign in sides:
            shares = sign * np.asarray(counts) / max(1, sum(counts))
            bars = ax.bar(self.edges[:-1], shares, widths, align="edge", color=colour, label=label)
            for i, bar in enumerate(bars):
                bar.set_gid(f"mark-{'out' if sign > 0 else 'in'}-{i}")
        ax.axhline(0, linewidth=0.8, color=MUTED)
        if self.threshold is not None:
            ax.axvline(self.threshold, color=CLAIM, linestyle=(0, (4, 3)), linewidth=1.2, label="threshold")
        ax.set_xlabel(f"score (higher means: {self.what} was there)")
        ax.set_ylabel(f"share of {self.things}")
        ax.yaxis.set_major_formatter(FuncFormatter(lambda share, _: percent(abs(share))))
        ax.set_xlim(self.edges[0], self.edges[-1])


def _range(scores: NDArray[np.float64], threshold: float | None) -> tuple[float, float]:
    """From where to where bars are drawn: all scores but few, however far these are."""
    if not len(scores):
        return 0.0, 1.0
    low, first, third, high = np.quantile(scores, [_ENDS, 0.25, 0.75, 1.0 - _ENDS]).tolist()
    if third > first:
        low, high = max(low, first - _FAR * (third - first)), min(high, third + _FAR * (third - first))
    if threshold is not None and abs(threshold) <= _LARGEST:
        low, high = min(low, threshold), max(high, threshold)
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-290):
        reach = max(0.5, 1e-6 * abs(low))
        return low - reach, low + reach
    return low, high
