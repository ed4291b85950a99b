"""Pictures of what records pay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.figures import Distribution, Figure, Level, Lines, Pictures, Series
from epsilometer.figures.figure import number

if TYPE_CHECKING:
    from epsilometer.instances.result import InstanceResult

PLACES = 10  # of a line along the training, or along losses
SHOWN = 5  # records of each end
QUANTILES = ((0.1, "10th percentile"), (0.5, "median"), (0.9, "90th percentile"))


def figures_of(result: InstanceResult) -> dict[str, Figure]:
    """All that there are of it, by name."""
    drawn: dict[str, Figure | None] = {
        "epsilons": _epsilons(result),
        "classes": _classes(result),
        "losses": _losses(result),
        "gains": _gains(result),
        "records": _records(result),
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def _epsilons(result: InstanceResult) -> Distribution:
    right = result.right > 0.5
    groups = {"classified correctly": result.epsilons[right], "not": result.epsilons[~right]}
    levels = (Level("median", result.quantile(0.5)), Level("worst case", result.worst_case.epsilon))
    return Distribution.of("ε of each record, against the worst case", groups, levels, "ε of a record")


def _classes(result: InstanceResult) -> Lines:
    data = result.plan.subject.data
    names = data.class_names or tuple(str(label) for label in range(data.classes))
    places = tuple(names[label] for label in np.unique(result.labels))
    grouped = [result.epsilons[result.labels == label] for label in np.unique(result.labels)]
    return _quantiles(result, "ε by class", places, grouped, "class")


def _losses(result: InstanceResult) -> Lines | None:
    """Tenths of the records by their loss at the end."""
    if len(result.epsilons) < 2 * PLACES:
        return None
    parts = np.array_split(np.argsort(result.losses, kind="stable"), PLACES)
    places = tuple(str(i) for i in range(1, len(parts) + 1))
    grouped = [result.epsilons[part] for part in parts]
    return _quantiles(result, "ε by loss", places, grouped, "tenth of records by loss, 1: the smallest")


def _quantiles(
    result: InstanceResult, title: str, places: tuple[str, ...], groups: list[Floats], x_label: str
) -> Lines:
    lines = [
        Series(label, tuple((place, float(np.quantile(one, share))) for place, one in zip(places, groups, strict=True)))
        for share, label in QUANTILES
    ]
    worst = Series("worst case", tuple((place, result.worst_case.epsilon) for place in places), reference=True)
    return Lines(title, places, (*lines, worst), x_label, "ε of a record")


def _gains(result: InstanceResult) -> Lines | None:
    """By how much the divergence of a step is below the worst one: the figure of the slides."""
    count = len(result.gains)
    if count < 2:
        return None
    shown = np.unique(np.linspace(0, count - 1, PLACES).astype(int))
    places = tuple(str(int(step) * result.plan.interval) for step in shown)
    lines = [
        Series(label, tuple((place, min(float(np.quantile(result.gains[step], share)), 1e9))
                            for place, step in zip(places, shown, strict=True)))
        for share, label in QUANTILES
    ]  # fmt: skip
    title = "By how much a step costs a record less than the worst case (divergence of order 8)"
    return Lines(title, places, tuple(lines), "step", "worst case / record", floor=1.0)


def _records(result: InstanceResult) -> Pictures | None:
    """The least and the most exposed, where records are pictures."""
    data = result.plan.subject.data
    if len(data.shape) < 2:
        return None
    order = result.from_least_to_most_exposed
    ends = list(dict.fromkeys([*order[:SHOWN].tolist(), *order[-SHOWN:].tolist()]))
    shown = [(f"ε {number(float(result.epsilons[i]), 2)}", result.plan.looked_at.x[i]) for i in ends]
    least, most = float(data.x.min()), float(data.x.max())
    return Pictures.of("The least and the most exposed records", shown, data.shape, least, most)
