"""Melis et al. (2019): updates of collaborative learning give away properties that have nothing to do with the task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epsilometer.collaborative import PROPERTIES, Collaboration, Updates, infer_property, property_named
from epsilometer.data import load
from epsilometer.errors import InvalidInput
from epsilometer.figures import Figure, Lines, Series, panels
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session
from epsilometer.seeds import Stream, seed_of
from epsilometer.training import Network, accuracy

HIDDEN, BATCH, TOGETHER = 64, 32, 10
_PROPERTIES = tuple(name for name, one in PROPERTIES.items() if one.of == "adult")
CONTROL = "control"
PROTECTIONS = (
    ("none", "0"), ("record", "0"), ("record", "0.3"), ("record", "1"), ("record", "3"), ("participant", "0.1"),
    ("participant", "1"),
)  # fmt: skip


def _measure(cell: Cell, session: Session) -> Row:
    if session.trials < 4 * TOGETHER:
        raise InvalidInput("trials", session.trials, f"{4 * TOGETHER} rounds or more")
    control = cell["property"] == CONTROL
    category = "sex" if control else cell["property"]
    train, other = (
        property_named(category, load("adult", part=part, directory=session.data_dir, progress=session.download))
        for part in ("train", "test")
    )
    data, has, test = train.data, train.has, other.data
    shared = np.random.default_rng(seed_of(session.seed, Stream.COLLABORATING))
    theirs, ours = np.array_split(shared.permutation(len(data)), 2)  # the same halves in every cell
    network = Network((data.x.shape[1], HIDDEN, data.classes), "tanh")
    updates = Updates(cell["level"], float(cell["noise"]))
    found = infer_property(
        Collaboration(network, updates, rounds=session.trials, batch=BATCH),
        data.taken(theirs), has[theirs], data.taken(ours), has[ours],
        np.random.default_rng(seed_of(session.seed, Stream.COLLABORATING, MELIS_PROPERTY.cells.index(cell))),
        control=control,
    )  # fmt: skip
    one, several = found.auc, found.auc_of(TOGETHER)
    details = {
        "auc_low": one.low,
        "auc_high": one.high,
        "together": several.value,
        "together_low": several.low,
        "together_high": several.high,
        "test": accuracy(network.logits(found.parameters, test.x.astype(np.float64)), test.y),
        "share": float(has.mean()),
        "correlation": float(np.corrcoef(has, data.y)[0, 1]),
        "rounds": session.trials,
        "seed": session.seed,
    }
    return Row(cell, None, one.value, details)


def _draw(rows: Sequence[Row]) -> Figure:
    levels = [level for level in ("record", "participant") if any(row.cell["level"] == level for row in rows)]
    charts = [
        _panel(level, [row for row in rows if row.cell["level"] in ("none", level)]) for level in levels or ["record"]
    ]
    return panels("A property seen in updates", charts, "noise multiplier", "AUC")


def _panel(level: str, rows: Sequence[Row]) -> Lines:
    """Noise that hides a record is another than noise that hides a participant: no line goes from one to the other."""
    places = tuple(dict.fromkeys(_place(row.cell) for row in rows))
    series = []
    for name in dict.fromkeys(row.cell["property"] for row in rows):
        own = [row for row in rows if row.cell["property"] == name]
        series.append(Series(f"{name}, a round", tuple((_place(row.cell), row.measured) for row in own)))
        if name != CONTROL:
            many = tuple((_place(row.cell), row.details["together"]) for row in own)
            series.append(Series(f"{name}, {TOGETHER} rounds", many))
    series.append(Series("guessing", tuple((place, 0.5) for place in places), reference=True))
    return Lines(f"Noise that hides a {level}", places, tuple(series))


def _place(cell: Cell) -> str:
    return "no clipping" if cell["level"] == "none" else cell["noise"]


MELIS_PROPERTY = Reproduction(
    name="melis-property",
    summary="properties of a participant's batches, seen in the updates that it shares (Melis et al. 2019)",
    about=(
        "measured is the AUC of a round: does a batch have the property? together: of the mean score of 10 rounds with "
        "the same answer. Adult, task income; the property (women; people who are not white) is taken out of the "
        "features, and labels are drawn alike with and without it. Two participants with half of the records each, a "
        "network 108-64-2 (less the property's columns), batches of 32 in which all records have the property or none; "
        "the adversary rehearses with its own half, with the same noise. record: DP-SGD, σ·C on the sum of 32 clipped "
        "gradients; participant: σ·C on the clipped mean; C = 1. control: the victim's batches do not depend on the "
        "coin, so that the AUC must be about .5. The paper has faces, texts and reviews, deeper networks, and random "
        "forests on whole gradients, where here a linear discriminant looks at norms and one direction; no number of "
        "it stands here. --trials is the number of rounds."
    ),
    trials=600,
    cells=(
        *({"property": name, "level": level, "noise": noise} for name in _PROPERTIES for level, noise in PROTECTIONS),
        *({"property": CONTROL, "level": level, "noise": noise} for level, noise in (("none", "0"), ("record", "1"))),
    ),
    measure=_measure,
    draw=_draw,
    shown=("auc_low", "auc_high", "together", "test"),
)
