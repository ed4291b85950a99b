"""A ladder as SVG: a bar for each adversary, the upper bound as a line; no dependency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from epsilometer.report.panels import COLOURS

LEFT, WIDTH, RIGHT, ROW, TOP, BOTTOM = 138, 260, 84, 22, 58, 34
PROVED, FAMILY, STEPS, THEORY = COLOURS[0], "#9db8d2", COLOURS[2], COLOURS[1]


@dataclass(frozen=True)
class Rung:
    """An adversary, what it has proved, and what follows if the training is DP-SGD (from trials, from single steps)."""

    label: str
    proved: float
    family: float | None = None
    per_step: float | None = None


@dataclass(frozen=True)
class Ladder:
    """All adversaries of one training, weak ones first, below what theory promises."""

    title: str
    upper: float
    rungs: Sequence[Rung]


def ladder_figure(ladders: Sequence[Ladder], title: str, how: str = "", columns: int = 2) -> str:
    """Ladders side by side, the strongest adversary on top; each has a scale of its own. `how` stands below."""
    across = min(columns, max(1, len(ladders)))
    down = math.ceil(len(ladders) / across)
    wide = LEFT + WIDTH + RIGHT
    tall = TOP + BOTTOM + ROW * max([1, *(len(ladder.rungs) for ladder in ladders)])
    width, height = max(across * wide, 500), 76 + down * tall
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="{escape(title)}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="10" y="20" font-size="14">{escape(title)}</text>',
        *_legend(ladders),
    ]
    for i, ladder in enumerate(ladders):
        parts.append(f'<g transform="translate({i % across * wide} {56 + i // across * tall})">')
        parts += _drawn(ladder)
        parts.append("</g>")
    parts.append(f'<text x="10" y="{height - 8}" fill="#444">{escape(how)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _legend(ladders: Sequence[Ladder]) -> list[str]:
    drawn = [rung for ladder in ladders for rung in ladder.rungs]
    words = [(PROVED, "certified")]
    if any(rung.family is not None for rung in drawn):
        words.append((FAMILY, "if it is DP-SGD"))
    if any(rung.per_step is not None for rung in drawn):
        words.append((STEPS, "single steps"))
    if any(math.isfinite(ladder.upper) for ladder in ladders):
        words.append((THEORY, "theory"))
    return [
        f'<rect x="{10 + 118 * i}" y="31" width="10" height="10" fill="{colour}"/>'
        f'<text x="{24 + 118 * i}" y="40">{word}</text>'
        for i, (colour, word) in enumerate(words)
    ]


def _drawn(ladder: Ladder) -> list[str]:
    values = [v for rung in ladder.rungs for v in (rung.proved, rung.family, rung.per_step) if v is not None]
    finite = [v for v in (*values, ladder.upper) if math.isfinite(v) and v > 0]
    most = 1.05 * max(finite, default=1.0)

    def across(value: float) -> float:
        return LEFT + WIDTH * min(max(value, 0.0), most) / most

    bottom = TOP + ROW * len(ladder.rungs)
    parts = [
        f'<text x="10" y="{TOP - 34}" font-weight="bold">{escape(ladder.title)}</text>',
        f'<text x="{LEFT + WIDTH + 6}" y="{TOP - 12}">ε ≥</text>',
    ]
    for i, rung in enumerate(reversed(ladder.rungs)):
        y = TOP + ROW * i
        played = not math.isnan(rung.proved)
        shown = "not played" if not played else "∞" if math.isinf(rung.proved) else f"{rung.proved:.2f}"
        told = [f"certified {shown}" if played else shown]
        bars = []
        if rung.family is not None:
            bars.append((FAMILY, rung.family, 14))
            told.append(f"if it is DP-SGD {rung.family:.3g}")
        bars.append((PROVED, rung.proved, 8))
        parts.append(f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(rung.label)}</text><g>')
        for colour, value, thick in bars:
            if played:
                parts.append(
                    f'<rect x="{LEFT}" y="{y + 8 - thick / 2:.1f}" width="{across(value) - LEFT:.1f}" '
                    f'height="{thick}" fill="{colour}"/>'
                )
        if rung.per_step is not None:
            x = across(rung.per_step)
            parts.append(f'<path d="M{x:.1f} {y} l5 8 l-5 8 l-5 -8 z" fill="{STEPS}"/>')
            told.append(f"single steps {rung.per_step:.3g}")
        parts.append(f"<title>{escape(rung.label)}: {escape(', '.join(told))}</title></g>")
        parts.append(f'<text x="{LEFT + WIDTH + 6}" y="{y + 12}">{shown}</text>')
    parts.append(f'<line x1="{LEFT}" x2="{LEFT}" y1="{TOP - 6}" y2="{bottom}" stroke="#444"/>')
    if math.isfinite(ladder.upper):
        x = across(ladder.upper)
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{bottom}" stroke="{THEORY}" stroke-width="1.5"/>'
        )
        parts.append(
            f'<text x="{x:.1f}" y="{TOP - 12}" text-anchor="end" fill="{THEORY}">ε ≤ {ladder.upper:.3g}</text>'
        )
    return parts
