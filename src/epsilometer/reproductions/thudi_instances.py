"""Privacy of single records (Thudi et al. 2024; Yu et al. 2023): what they pay, and what attacks measure of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from epsilometer.auditing import noise_for
from epsilometer.data import load
from epsilometer.figures import Figure, Lines, Series, panels
from epsilometer.instances import (
    InstancePlan,
    InstanceResult,
    chosen_records,
    ends,
    measure,
    run_instances,
    step_by_step,
)
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session, grid
from epsilometer.rounding import down
from epsilometer.runs import Inline, play
from epsilometer.subjects import DpSgdTraining
from epsilometer.training import Recipe

EPSILON, DELTA, RECORDS, ENDS = 10.0, 1e-5, 500, 5


@dataclass(frozen=True)
class Setting:
    """A training on so many records of each class."""

    per_class: int
    batch: float | None  # expected; none: full batches, which hide nothing
    steps: int
    clip_norm: float
    learning_rate: float


_DATA = {"mnist": "mnist", "cifar10": "cifar10-features"}
# Large batches: their models are alike in all trainings, so that what a record costs is, too.
_SAMPLED = {"mnist": Setting(1000, 1000.0, 500, 8.0, 0.5), "cifar10": Setting(1000, 1000.0, 500, 16.0, 0.05)}
_ATTACKED = {"mnist": Setting(50, None, 30, 4.0, 1.0), "cifar10": Setting(50, None, 60, 4.0, 1.0)}


def setting_of(cell: Cell, session: Session) -> DpSgdTraining:
    """Logistic regression with noise for ε = 10."""
    chosen = (_ATTACKED if cell["part"] == "leakage" else _SAMPLED)[cell["data"]]
    data = load(
        name=_DATA[cell["data"]],
        per_class=chosen.per_class,
        directory=session.data_dir,
        progress=session.download,
    )
    rate = 1.0 if chosen.batch is None else chosen.batch / len(data)
    return DpSgdTraining(
        Recipe(
            records=len(data),
            sample_rate=rate,
            steps=chosen.steps,
            noise_multiplier=noise_for(EPSILON, DELTA, rate, chosen.steps),
            clip_norm=chosen.clip_norm,
            learning_rate=chosen.learning_rate,
        ),
        data,
    )


def _measure(cell: Cell, session: Session) -> Row:
    started = time.process_time()
    subject = setting_of(cell, session)
    rule = "sum" if cell["part"] == "leakage" else cell["part"]
    count = min(RECORDS, len(subject.data))
    plan = InstancePlan(
        subject, chosen_records(subject.data, count, session.seed), DELTA, rule=rule, seed=session.seed
    )  # fmt: skip
    executor = session.executor or Inline()
    found = run_instances(plan, session.progress, store=session.store, executor=executor)
    details = _details(found)
    if rule == "sum":
        results = play(plan, session.store, executor).results  # all of them are there
        details["median_by_steps"] = float(np.median(step_by_step(plan, results)))
    if cell["part"] == "leakage":
        details |= _leakage(found, session)
    details["processor_seconds"] = time.process_time() - started
    worst = found.worst_case.epsilon
    return Row(cell, None, found.quantile(0.5) / worst, details)


def _details(found: InstanceResult) -> dict[str, object]:
    compared = found.right_against_wrong
    return {
        "median": found.quantile(0.5),
        "tenth": found.quantile(0.1),
        "worst": found.worst_case.epsilon,
        "worst_renyi": found.worst_renyi,
        "records": len(found.epsilons),
        "right": compared["right"],
        "median_right": compared["median_right"],
        "median_wrong": compared["median_wrong"],
        "p_value": compared["p_value"],
        "median_costliest": None if found.costliest_training is None else float(np.median(found.costliest_training)),
        "trainings_wanted": found.trainings_wanted,
    }


def _leakage(found: InstanceResult, session: Session) -> dict[str, object]:
    """5 records of lowest and 5 of highest ε, with and without each."""
    executor = session.executor or Inline()
    seen = measure(
        found, ends(found, ENDS), trials=session.trials, store=session.store, executor=executor,
        progress=session.progress,
    )  # fmt: skip
    epsilons, strengths = np.array([one.epsilon for one in seen]), np.array([one.strength for one in seen])
    bounds = np.array([one.bound.epsilon for one in seen])
    return {
        "within": bool((bounds <= epsilons).all()),
        "low_epsilons": f"{epsilons[:ENDS].min():.3g}–{epsilons[:ENDS].max():.3g}",
        "high_epsilons": f"{epsilons[ENDS:].min():.3g}–{epsilons[ENDS:].max():.3g}",
        "low_certified": ", ".join(down(bound) for bound in bounds[:ENDS]),
        "high_certified": ", ".join(down(bound) for bound in bounds[ENDS:]),
        "low_strength": float(strengths[:ENDS].mean()),
        "high_strength": float(strengths[ENDS:].mean()),
        "rank_correlation": float(stats.spearmanr(epsilons, strengths).statistic),
        "in_order": bool(strengths[:ENDS].max() < strengths[ENDS:].min()),
        "trials": session.trials,
    }


def _draw(rows: Sequence[Row]) -> Figure:
    charts = []
    for data in _DATA:
        own = [row for row in rows if row.cell["data"] == data]
        if own:
            places = tuple(row.cell["part"] for row in own)
            lines = [
                Series(
                    label, tuple((row.cell["part"], float(row.details[key])) for row in own), reference=key == "worst"
                )
                for key, label in (("tenth", "10th percentile"), ("median", "median"), ("worst", "worst case"))
            ]
            charts.append(Lines(data, places, tuple(lines)))
    return panels("ε of single records", charts, "how it was found", "ε")


THUDI_INSTANCES = Reproduction(
    name="thudi-instances",
    summary="ε of 500 single records against the worst case, and what attacks measure (Thudi et al. 2024)",
    about="measured is the median of records' ε, divided by the worst case (PLD, ε = 10 at δ = 1e-5); the paper shows "
    "curves and no number. part=sum is an estimate of a guarantee in expectation over 8 trainings, composed along "
    "whole trainings (median_by_steps: step by step, as in the paper, with any p; median_costliest: the most costly of "
    "the 8, for each record); part=individual is one training, after Yu et al. (2023); both: logistic regression, "
    "500 steps, batches of 1,000 of 10,000 records. "
    "part=leakage attacks the 5 records of lowest and the 5 of highest ε (sum rule) in 30 (mnist) or 60 steps with "
    "full batches of 500 records: --trials trainings with and as many without each; certified bounds hold all at once "
    "with 95 % confidence.",
    trials=100,
    cells=grid(data=tuple(_DATA), part=("individual", "sum", "leakage")),
    measure=_measure,
    draw=_draw,
    shown=("median", "tenth", "worst", "median_right", "median_wrong", "p_value", "within", "rank_correlation"),
)
