"""How accuracy depends on the parameters of a private training (Abadi et al. 2016, Figure 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from epsilometer.figures import Grid, Lines, Series, panels
from epsilometer.reproductions.abadi import Setting, both_parts, learn
from epsilometer.reproductions.abadi_mnist import setting_of
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session

REFERENCE = setting_of("2")
_VALUES = {
    "C": ("1", "2", "4", "8", "median"),
    "sigma": ("2", "4", "8"),
    "lot": ("150", "300", "600", "1200"),
    "hidden": ("250", "500", "1000", "2000"),
}
_CELLS: tuple[Cell, ...] = tuple(
    {"parameter": name, "value": value} for name, values in _VALUES.items() for value in values
)


def varied(parameter: str, value: str) -> Setting:
    """The reference with one parameter changed."""
    if parameter == "C":
        return replace(REFERENCE, clip_norm=0.0 if value == "median" else float(value))
    if parameter == "hidden":
        return replace(REFERENCE, hidden=(int(value),))
    field, kind = {"sigma": ("noise_multiplier", float), "lot": ("lot", int)}[parameter]
    return replace(REFERENCE, **{field: kind(value)})


def _measure(cell: Cell, session: Session) -> Row:
    setting = varied(cell["parameter"], cell["value"])
    found = learn(setting, *both_parts(session, "mnist"), epochs=session.trials, seed=session.seed)
    return Row(cell, None, found.last.test, found.details())


def _draw(rows: Sequence[Row]) -> Grid:
    charts = []
    for parameter in _VALUES:
        own = [row for row in rows if row.cell["parameter"] == parameter]
        if own:
            places = tuple(row.cell["value"] for row in own)
            test = Series("test", tuple((row.cell["value"], row.measured) for row in own))
            training = Series("training", tuple((row.cell["value"], row.details["train"]) for row in own))
            charts.append(Lines(parameter, places, (test, training)))
    title = f"MNIST: accuracy by parameter, budget ε = {REFERENCE.epsilon:g}"
    return panels(title, charts, "value", "accuracy")


ABADI_PARAMETERS = Reproduction(
    name="abadi-parameters",
    summary="accuracy on MNIST against clip norm, noise, lot size and hidden units (Abadi et al. 2016, Figure 5)",
    about="measured is the accuracy on test images of the training with ε = 2 of Figure 3 (C = 4, σ = 4, lots of 600, "
    "1000 hidden units) with one parameter changed, when the budget is spent or after --trials epochs; the "
    "paper has curves and no numbers. C = median is the median gradient norm of ten epochs without clipping and "
    "noise: it looks at the data, and nothing is accounted for that.",
    trials=200,
    cells=_CELLS,
    measure=_measure,
    draw=_draw,
    shown=("train", "clip_norm", "epochs", "moments", "pld"),
)
