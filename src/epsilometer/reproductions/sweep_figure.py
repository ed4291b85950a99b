"""The picture of a sweep: what is certified, promised and claimed over one setting, and accuracy below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from epsilometer.figures import Figure, Grid, Lines, Series
from epsilometer.figures.lines import highest
from epsilometer.reproductions.reproduction import Row

# What a line is called, the column that it shows, and whether it is stated and not measured.
_EPSILONS = (
    ("certified", "certified", False),
    ("if it is DP-SGD", "family", False),
    ("theory", "theory", True),
    ("claimed", "claimed", True),
)
_ACCURACIES = (("train", "train_accuracy", False), ("test", "test_accuracy", False))


def sweep_figure(keys: Sequence[str], rows: Sequence[Row]) -> Figure:
    """The first setting is along the axis; each combination of the others has panels of its own."""
    across, *others = keys
    places = tuple(dict.fromkeys(row.cell[across] for row in rows))
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(", ".join(f"{key} = {row.cell[key]}" for key in others), []).append(row)
    privacy = [_panel(name, "ε", _EPSILONS, across, places, group) for name, group in groups.items()]
    accuracy = [_panel(name, "accuracy", _ACCURACIES, across, places, group) for name, group in groups.items()]
    most, labels = highest(privacy), tuple(label for label, *_ in (*_EPSILONS, *_ACCURACIES))
    pairs = zip(privacy, (replace(panel, most=1.0) for panel in accuracy), strict=True)
    panels = [replace(one, most=one.most or most, labels=labels) for pair in pairs for one in pair if one.series]
    return Grid(f"Privacy and accuracy over {across}", tuple(panels))


def _panel(
    name: str,
    quantity: str,
    columns: Sequence[tuple[str, str, bool]],
    across: str,
    places: tuple[str, ...],
    rows: Sequence[Row],
) -> Lines:
    series = []
    for label, column, reference in columns:
        found = [(row.cell[across], row.to_dict().get(column)) for row in rows]
        points = tuple((place, float(value)) for place, value in found if value is not None)
        if points:
            series.append(Series(label, points, reference))
    title = f"{quantity}, {name}" if name else quantity
    return Lines(title, places, tuple(series), across, quantity)
