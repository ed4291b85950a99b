"""Pictures as SVG, drawn from data that were computed before; no dependency, readable without colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from epsilometer.bounds.calibration import Cell

WIDTH, LABELS, ROW, TOP, BOTTOM = 860, 170, 26, 58, 44


def calibration_figure(cells: Sequence[Cell]) -> str:
    """False-alarm rates: a row for each bound, a dot with its 95 % interval for each mechanism, a line at α."""
    names = list(dict.fromkeys(cell.bound for cell in cells))
    height = TOP + ROW * len(names) + BOTTOM
    alpha = cells[0].alpha
    most = max(0.2, *(cell.interval[1] for cell in cells))

    def x(rate: float) -> float:  # a root scale: what matters lies between 0 and α
        return LABELS + (WIDTH - LABELS - 20) * math.sqrt(rate / most)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="Measured false-alarm rates of bounds">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LABELS}" y="16">How often a bound exceeds the truth, 95 % intervals; '
        f"filled: certified, hollow: not</text>",
    ]
    for tick in (0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0):
        if tick <= most:
            parts.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP - 12}" y2="{height - BOTTOM + 6}" '
                         f'stroke="#ddd"/>')  # fmt: skip
            parts.append(f'<text x="{x(tick):.1f}" y="{height - 22}" text-anchor="middle">{tick:g}</text>')
    parts.append(f'<line x1="{x(alpha):.1f}" x2="{x(alpha):.1f}" y1="{TOP - 16}" y2="{height - BOTTOM + 6}" '
                 f'stroke="#c00" stroke-dasharray="4 3"/>')  # fmt: skip
    parts.append(f'<text x="{x(alpha):.1f}" y="{TOP - 18}" text-anchor="middle" fill="#c00">α = {alpha:g}</text>')
    parts.append(f'<text x="{WIDTH - 20}" y="{height - 6}" text-anchor="end">share of audits (root scale)</text>')
    for row, name in enumerate(names):
        own = [cell for cell in cells if cell.bound == name]
        middle = TOP + ROW * (row + 0.5)
        parts.append(f'<text x="{LABELS - 10}" y="{middle + 4:.1f}" text-anchor="end">{escape(name)}</text>')
        for i, cell in enumerate(own):
            y = middle + (i - (len(own) - 1) / 2) * (ROW - 8) / max(len(own), 1)
            low, high = cell.interval
            fill = "#1f4e79" if cell.kind == "certified" else "white"
            told = f"{cell.mechanism}: {cell.exceeded} of {cell.repetitions}"
            parts.append(f'<g><title>{escape(told)}</title><line x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{y:.1f}" '
                         f'y2="{y:.1f}" stroke="#1f4e79" stroke-width="1"/><circle cx="{x(cell.rate):.1f}" '
                         f'cy="{y:.1f}" r="2.6" fill="{fill}" stroke="#1f4e79"/></g>')  # fmt: skip
    return "\n".join([*parts, "</svg>", ""])
