"""The sample-size theorem of output perturbation (Chaudhuri et al. 2011), beside how many records it really takes.

The world is one in which all is known: x is one of p axes, y = ±1 by a logistic model θ*, so that the risk of any
model and its least value have closed forms, and n records are 2p numbers that say how often each occurred.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from epsilometer.arrays import Floats
from epsilometer.figures import Figure, Lines, Series, panels
from epsilometer.mechanisms.erm import Logistic, OutputPerturbation, Problem, Risk, optimum
from epsilometer.mechanisms.erm.utility import sample_size, theorem_regularisation
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session, grid

DELTA, BETA, FEATURES, NORM = 1e-5, 0.05, 5, 1.0
EPSILONS, GAMMAS = ("inf", "1", "0.1"), ("0.2", "0.1", "0.05", "0.02", "0.01")
GRID = 4  # sizes between a number and its double
LARGEST = 36 * GRID  # 2³⁶ records: more than anybody has
_CELLS = grid(eps=EPSILONS, gamma=GAMMAS)
_BEST = np.full(FEATURES, NORM / math.sqrt(FEATURES))  # θ*


def _measure(cell: Cell, session: Session) -> Row:
    epsilon, gamma = float(cell["eps"]), float(cell["gamma"])
    theorem = sample_size(gamma, epsilon=epsilon, delta=DELTA, features=FEATURES, norm=NORM, beta=BETA)
    seed = [session.seed, _CELLS.index(cell)]

    @functools.cache
    def share(step: int) -> float:
        rng = np.random.default_rng([*seed, step])
        return float(np.mean(excess_risks(_records(step), gamma, epsilon, session.trials, rng) <= gamma))

    low, high = 0, LARGEST  # whether `high` is enough is never asked: it is said below if it is not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if share(middle) >= 1.0 - 2.0 * BETA else (middle, high)
    needed = _records(high)
    return Row(
        cell=cell,
        paper=theorem.records,
        measured=float(needed),
        details={
            "ratio": needed / theorem.records,
            "term": max(vars(theorem), key=lambda name: getattr(theorem, name)).replace("_", " "),
            "share": share(high),
            "share_below": share(low),
            "regularisation": theorem_regularisation(gamma, NORM),
            "runs": session.trials,
        },
    )


def excess_risks(records: int, gamma: float, epsilon: float, runs: int, rng: np.random.Generator) -> Floats:
    """R(θ) − R(θ*) of independent private models, each on records of its own."""
    problem = Problem(Logistic(), theorem_regularisation(gamma, NORM))
    axes = np.vstack([np.eye(FEATURES), np.eye(FEATURES)])
    labels = np.repeat([1.0, -1.0], FEATURES)
    chances = special.expit(labels * np.tile(_BEST, 2)) / FEATURES
    counts = rng.multinomial(records, chances, size=runs).astype(np.float64)
    risk = Risk.of(problem.loss, axes, labels, np.full(FEATURES, problem.regularisation), weights=counts)
    models = optimum(risk, 1e-9)
    if math.isfinite(epsilon):
        noise = OutputPerturbation(problem, epsilon, DELTA).noise_std(records)
        models = models + noise * rng.standard_normal(models.shape)
    losses = problem.loss.value(np.vstack([models, _BEST]) @ axes.T, labels) @ chances
    excess: Floats = losses[:-1] - losses[-1]
    return excess


def _records(step: int) -> int:
    return math.ceil(math.exp2(step / GRID))


def _draw(rows: Sequence[Row]) -> Figure:
    charts = []
    for eps in EPSILONS:
        own = [row for row in rows if row.cell["eps"] == eps]
        if own:
            theorem = tuple((row.cell["gamma"], row.paper or math.nan) for row in own)
            series = (
                Series("theorem, constants 1", theorem, reference=True),
                Series("measured", tuple((row.cell["gamma"], row.measured) for row in own)),
            )
            title = "no privacy" if eps == "inf" else f"ε = {eps}, δ = {DELTA:g}"
            charts.append(Lines(title, tuple(row.cell["gamma"] for row in own), series))
    return panels("Records that output perturbation needs", charts, "excess risk γ", "records", floor=1.0)


SAMPLE_SIZE = Reproduction(
    name="chaudhuri-sample-size",
    summary="records that output perturbation needs, beside its utility theorem (Chaudhuri et al. 2011)",
    about="paper is the largest of the theorem's three terms with constants 1: only how it grows can be compared. "
    "measured is the least number of records (in steps of a quarter of a doubling) for which the excess risk is at "
    f"most gamma in {100 * (1 - 2 * BETA):g} % of runs: logistic, {FEATURES} features, ‖θ*‖ = {NORM:g}, λ = γ/‖θ*‖², "
    "analytic normal noise; --trials is the number of runs for each size.",
    trials=1000,
    cells=_CELLS,
    measure=_measure,
    draw=_draw,
    shown=("ratio", "term"),
)
