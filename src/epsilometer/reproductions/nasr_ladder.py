"""The ladder of Nasr et al. (2021) on three data sets, at four ε."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from epsilometer.accounting import calibrate
from epsilometer.adversaries import LADDER, Api
from epsilometer.auditing import Plan, claim_curve
from epsilometer.data import Dataset, load
from epsilometer.data import Progress as Download
from epsilometer.data.request import TEST
from epsilometer.figures import Figure, Grid, Ladder
from epsilometer.reproductions.ladder import climb, rungs
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session
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
# The paper's adversaries: a random record for each trial, and shadow models on records that the training does not see.
_POISON = {"shadow_data": "held-out", "shadows": 32}  # of 8, the poison that looks best is often another one
AS_IN_THE_PAPER: Mapping[str, Mapping[str, Any]] = {
    "api": {"record": "random"},
    **dict.fromkeys(("static-poison", "intermediate", "adaptive-poison"), _POISON),
}
GAMES = {"paper": "", "fixed": ", one record, shadows on the data"}  # the second knows more of the data
# What the text of the paper says; two of its numbers have no data set there.
_PAPER = {
    **{("mnist", eps, "api"): 0.0 for eps in EPSILONS},
    ("cifar10", "4", "api"): 0.31,
    ("purchase", "2", "intermediate"): 0.25,
    ("purchase", "2", "adaptive-poison"): 0.37,
    **{(data, "1", "gradient"): 0.3 for data in SETTINGS},
    **{(data, "4", "malicious-dataset"): 3.6 for data in SETTINGS},
}


def plan_for(
    data: Dataset, eps: str, learning_rate: float, trials: int, seed: int, sample_rate: float = SAMPLE_RATE,
    steps: int = STEPS,
) -> Plan:  # fmt: skip
    """A network with 32 hidden units and DP-SGD whose curve promises ε."""
    noise = calibrate(epsilon=float(eps), delta=DELTA, sample_rate=sample_rate, steps=steps)
    recipe = Recipe(
        records=len(data),
        sample_rate=sample_rate,
        steps=steps,
        noise_multiplier=noise,
        learning_rate=learning_rate,
        model="mlp",
    )
    return Plan(DpSgdTraining(recipe, data), claim_curve(recipe), DELTA, Api(), trials, CONFIDENCE, seed=seed)


def records_of(setting: str, session: Session) -> Dataset:
    """The data of a setting, loaded once."""
    return _loaded(setting, session.data_dir, session.download)


@functools.lru_cache(maxsize=1)
def _loaded(setting: str, data_dir: Path | None, download: Download | None) -> Dataset:
    return both_parts(SETTINGS[setting].data, data_dir, download)


def both_parts(chosen: Mapping[str, Any], data_dir: Path | None, download: Download | None) -> Dataset:
    """The records that arguments of `load` ask for, and as held-out ones the test part of their classes."""
    data = load(**chosen, directory=data_dir, progress=download)
    whole = {key: value for key, value in chosen.items() if key != "per_class"}
    return replace(data, held_out=load(**whole, part=TEST, directory=data_dir, progress=download))


def _measure(cell: Cell, session: Session) -> Row:
    data, adversary = records_of(cell["data"], session), cell["adversary"]
    plan = plan_for(data, cell["eps"], SETTINGS[cell["data"]].learning_rate, session.trials, session.seed)
    settings = AS_IN_THE_PAPER[adversary] if cell.get("game") == "paper" else {}
    measured, details = climb(plan, adversary, session, settings)
    return Row(cell, _PAPER.get((cell["data"], cell["eps"], adversary)), measured, details)


def _draw(rows: Sequence[Row]) -> Figure:
    ladders = []
    for game, data, eps in itertools.product(GAMES, SETTINGS, EPSILONS):
        both = [row for row in rows if (row.cell["data"], row.cell["eps"]) == (data, eps)]
        if game in [row.cell.get("game", "paper") for row in both]:
            own = sorted(
                (row for row in both if row.cell.get("game", game) == game),
                key=lambda row: LADDER.index(row.cell["adversary"]),
            )
            title = f"{SETTINGS[data].title}, ε = {eps}{GAMES[game]}"
            ladders.append(Ladder(title, float(eps), tuple(rungs(own))))
    how = f"certified at {CONFIDENCE:g} confidence, δ = {DELTA:g}, add-remove"
    return Grid("Six adversaries of Nasr et al. (2021)", tuple(ladders), how)


def _cells() -> tuple[Cell, ...]:
    """Who is given gradients plays the same game in any case."""
    return tuple(
        {"data": data, "eps": eps, "adversary": adversary} | ({"game": game} if adversary in AS_IN_THE_PAPER else {})
        for game in GAMES
        for data in SETTINGS
        for eps in EPSILONS
        for adversary in LADDER
        if game == "paper" or adversary in AS_IN_THE_PAPER
    )


NASR_LADDER = Reproduction(
    name="nasr-ladder",
    summary="six adversaries, each with more power, on three data sets (Nasr et al. 2021)",
    about="measured is certified (exact rank, 95 %); family is what follows from the same trials if the training is "
    "DP-SGD with some noise, per_step from single steps of two trainings under the same assumption. ε is PLD's, for "
    "add-remove and Poisson sampling. The paper's numbers are those of its text; its networks, data sizes and numbers "
    "of steps are others, so they are for orientation. game = "
    "paper: every trial of api has a random record of its own, shadow models are trained on the test part; game = "
    "fixed: one record for all trials, shadow models are trained on the audited records themselves.",
    trials=500,
    cells=_cells(),
    measure=_measure,
    draw=_draw,
    shown=("family", "per_step", "theory"),
    at_least=("measured", "family", "per_step"),
    earlier={"game": "fixed"},
)
