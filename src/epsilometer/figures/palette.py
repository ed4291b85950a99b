"""Colours by what they stand for: dark enough on white, and replaced by others where a page is dark."""

from __future__ import annotations

INK, MUTED, GRID = "#1d2733", "#59636e", "#d3d9df"
CERTIFIED, CLAIM, THEORY, FAMILY = "#1f5f99", "#b23c22", "#23744a", "#7a5200"
OUT, IN = "#59789a", "#b5651d"  # the world without the record, and with it
REGION = "#f3ded8"  # what a claim excludes
SERIES = (CERTIFIED, CLAIM, THEORY, FAMILY, "#6b4a9a", MUTED)
MARKERS = ("o", "s", "^", "D", "v", "P")

# The name of each in a style sheet, and what it is on a dark page.
DARK = {
    INK: ("ink", "#e4e8ec"),
    MUTED: ("muted", "#a3adb8"),
    GRID: ("grid", "#3b444e"),
    CERTIFIED: ("certified", "#7cb8ee"),
    CLAIM: ("claim", "#ef9380"),
    THEORY: ("theory", "#72c495"),
    FAMILY: ("family", "#d8ac55"),
    OUT: ("out", "#8fb0d2"),
    IN: ("in", "#e3a066"),
    REGION: ("region", "#47302b"),
    SERIES[4]: ("other", "#b79be0"),
}
