"""The ladder of Nasr et al. (2021) at the size of the paper: all of MNIST, 1000 trainings of each world."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from epsilometer.adversaries import LADDER
from epsilometer.auditing.utility import measure_accuracy
from epsilometer.data import Dataset
from epsilometer.data import Progress as Download
from epsilometer.figures import Figure, Grid, Ladder
from epsilometer.reproductions.ladder import climb, rungs
from epsilometer.reproductions.nasr_ladder import AS_IN_THE_PAPER, CONFIDENCE, DELTA, EPSILONS, both_parts, plan_for
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session, grid
from epsilometer.runs import Inline

LOT, EPOCHS, LEARNING_RATE = 250, 1, 2.0
_PAPER = {**{("api", eps): 0.0 for eps in EPSILONS}, ("gradient", "1"): 0.3, ("malicious-dataset", "4"): 3.6}


@functools.lru_cache(maxsize=1)
def _loaded(data_dir: Path | None, download: Download | None) -> Dataset:
    return both_parts({"name": "mnist"}, data_dir, download)


def _measure(cell: Cell, session: Session) -> Row:
    data, adversary = _loaded(session.data_dir, session.download), cell["adversary"]
    rate, steps = LOT / len(data), EPOCHS * len(data) // LOT
    plan = plan_for(data, cell["eps"], LEARNING_RATE, session.trials, session.seed, rate, steps)
    measured, details = climb(plan, adversary, session, AS_IN_THE_PAPER.get(adversary))
    _, test = measure_accuracy(
        plan, test=data.held_out, progress=session.progress, store=session.store, executor=session.executor or Inline()
    )  # fmt: skip
    return Row(cell, _PAPER.get((adversary, cell["eps"])), measured, {**details, "test_accuracy": test.mean})


def _draw(rows: Sequence[Row]) -> Figure:
    ladders = []
    for eps in EPSILONS:
        own = sorted(
            (row for row in rows if row.cell["eps"] == eps), key=lambda row: LADDER.index(row.cell["adversary"])
        )
        if own:
            ladders.append(Ladder(f"MNIST, ε = {eps}", float(eps), tuple(rungs(own))))
    how = f"certified at {CONFIDENCE:g} confidence, δ = {DELTA:g}, add-remove"
    return Grid("Six adversaries of Nasr et al. (2021), all of MNIST", tuple(ladders), how)


NASR_MNIST = Reproduction(
    name="nasr-mnist",
    summary="six adversaries on all of MNIST, 1000 trials a world (Nasr et al. 2021)",
    about="as nasr-ladder with game = paper, at the size of the paper: 60,000 records, lots of "
    f"{LOT} by Poisson sampling, {EPOCHS} epoch, a network with 32 hidden units (the paper's has convolutions and more "
    "epochs). measured is certified (exact rank, 95 %); family is what follows from the same trials if the training is "
    "DP-SGD with some noise, per_step from single steps of two trainings under the same assumption. test_accuracy is "
    "of five trainings without a canary.",
    trials=1000,
    cells=grid(eps=EPSILONS, adversary=LADDER),
    measure=_measure,
    draw=_draw,
    shown=("family", "per_step", "test_accuracy"),
    at_least=("measured", "family", "per_step"),
)
