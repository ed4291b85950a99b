"""The ladder of Nasr et al. (2021) on three data sets, at four ε."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsilometer.accounting import calibrate
from epsilometer.adversaries import LADDER, Api
from epsilometer.auditing import Plan, claim_curve
from epsilometer.data import Dataset, load
from epsilometer.data import Progress as Download
from epsilometer.figures import Figure, Grid, Ladder
from epsilometer.reproductions.ladder import climb, rungs
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session, grid
from epsilometer.subjects import DpSgdTraining
from epsilometer.training import Recipe

DELTA, CONFIDENCE = 1e-5, 0.95
SAMPLE_RATE, STEPS = 0.1, 100
EPSILONS = ("1", "2", "4", "10")


@dataclass(frozen=True)
class Setting:
    """A data set: about 1000 records of it, and how fast it is learned."""

    title: str
    data: Mapping[str, Any]  # arguments of `load`
    learning_rate: float


SETTINGS = {
    "mnist": Setting("MNIST", {"name": "mnist", "per_class": 100}, 1.0),
    "cifar10": Setting(
        "CIFAR-10, frozen features",
        {"name": "cifar10-features", "classes": ("airplane", "automobile"), "per_class": 500},
        1.0,
    ),
    "purchase": Setting("Purchase stand-in", {"name": "retail", "per_class": 9}, 2.0),
}
# What the text of the paper says; two of its numbers have no data set there.
_PAPER = {
    **{("mnist", eps, "api"): 0.0 for eps in EPSILONS},
    ("cifar10", "4", "api"): 0.31,
    ("purchase", "2", "intermediate"): 0.25,
    ("purchase", "2", "adaptive-poison"): 0.37,
    **{(data, "1", "gradient"): 0.3 for data in SETTINGS},
    **{(data, "4", "malicious-dataset"): 3.6 for data in SETTINGS},
}


def plan_for(data: Dataset, eps: str, learning_rate: float, trials: int, seed: int) -> Plan:
    """A network with 32 hidden units and DP-SGD whose curve promises ε."""
    noise = calibrate(epsilon=float(eps), delta=DELTA, sample_rate=SAMPLE_RATE, steps=STEPS)
    recipe = Recipe(
        records=len(data),
        sample_rate=SAMPLE_RATE,
        steps=STEPS,
        noise_multiplier=noise,
        learning_rate=learning_rate,
        model="mlp",
    )
    return Plan(DpSgdTraining(recipe, data), claim_curve(recipe), DELTA, Api(), trials, CONFIDENCE, seed=seed)


@functools.lru_cache(maxsize=1)
def _loaded(setting: str, data_dir: Path | None, download: Download | None) -> Dataset:
    return load(**SETTINGS[setting].data, directory=data_dir, progress=download)


def _measure(cell: Cell, session: Session) -> Row:
    data = _loaded(cell["data"], session.data_dir, session.download)
    plan = plan_for(data, cell["eps"], SETTINGS[cell["data"]].learning_rate, session.trials, session.seed)
    measured, details = climb(plan, cell["adversary"], session)
    return Row(cell, _PAPER.get((cell["data"], cell["eps"], cell["adversary"])), measured, details)


def _draw(rows: Sequence[Row]) -> Figure:
    ladders = []
    for data, setting in SETTINGS.items():
        for eps in EPSILONS:
            own = [row for row in rows if (row.cell["data"], row.cell["eps"]) == (data, eps)]
            if own:
                ladders.append(Ladder(f"{setting.title}, ε = {eps}", float(eps), tuple(rungs(own))))
    how = f"certified at {CONFIDENCE:g} confidence, δ = {DELTA:g}, add-remove"
    return Grid("Six adversaries of Nasr et al. (2021)", tuple(ladders), how)


NASR_LADDER = Reproduction(
    name="nasr-ladder",
    summary="six adversaries, each with more power, on three data sets (Nasr et al. 2021)",
    about="measured is certified (exact rank, 95 %); family is what follows from the same trials if the training is "
    "DP-SGD with some noise, per_step from single steps of two trainings under the same assumption. ε is PLD's, for "
    "add-remove and Poisson sampling. The paper's numbers are those of its text; its networks, data sizes and numbers "
    "of steps are others, and it chose thresholds on the trials that it judged, so they are for orientation.",
    trials=500,
    cells=grid(data=tuple(SETTINGS), eps=EPSILONS, adversary=LADDER),
    measure=_measure,
    draw=_draw,
    shown=("family", "per_step", "theory"),
)
