"""Worst-case against average-case initial weights in black-box audits (Annamalai & De Cristofaro 2024)."""

from __future__ import annotations

from collections.abc import Sequence

from epsilometer.accounting import calibrate
from epsilometer.adversaries import WorstCaseInit
from epsilometer.auditing import Plan, claim_curve, run
from epsilometer.data import load
from epsilometer.figures import Figure, Lines, Series, panels
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session, grid
from epsilometer.subjects import DpSgdTraining
from epsilometer.training import Recipe

DELTA, STEPS = 1e-5, 100
EPSILONS = ("1", "4", "10")
_STARTS = {"average": WorstCaseInit(pretraining=0), "worst": WorstCaseInit(pretraining=3000)}
_PAPER = {("worst", "10"): 7.21}


def _measure(cell: Cell, session: Session) -> Row:
    data = load("mnist", per_class=100, directory=session.data_dir, progress=session.download)
    recipe = Recipe(
        records=len(data),
        sample_rate=1.0,
        sampling="full",
        steps=STEPS,
        noise_multiplier=calibrate(epsilon=float(cell["eps"]), delta=DELTA, sample_rate=1.0, steps=STEPS),
        learning_rate=4.0,
    )
    adversary = _STARTS[cell["init"]]
    subject = DpSgdTraining(recipe, data)
    plan = Plan(subject, claim_curve(recipe), DELTA, adversary, session.trials, seed=session.seed)
    result = run(plan, session.progress, store=session.store, executor=session.executor)
    assert result.family_bound is not None
    return Row(
        cell=cell,
        paper=_PAPER.get((cell["init"], cell["eps"])),
        measured=result.family_bound.epsilon,
        details={
            "certified": result.lower_bound.epsilon,
            "theory": result.upper_bound and result.upper_bound.epsilon,
            "noise_multiplier": recipe.noise_multiplier,
            "proof": str(result.lower_bound.proof),
            "trials": plan.planned_trials,
            "delta": DELTA,
            "confidence": plan.confidence,
            "seed": session.seed,
            "plan_sha256": plan.fingerprint(),
            "seconds": round(result.seconds, 1),
        },
    )


def _draw(rows: Sequence[Row]) -> Figure:
    series = [
        Series(
            f"{init} case",
            tuple((row.cell["eps"], row.measured) for row in rows if row.cell["init"] == init),
            at_least=True,
        )
        for init in _STARTS
    ]
    theory = Series("theory", tuple((eps, float(eps)) for eps in EPSILONS), reference=True)
    chart = Lines("MNIST, 1000 records, full batch", EPSILONS, (*series, theory))
    return panels("Initial weights in black-box audits", [chart], "ε", "ε, family, 95 %")


ANNAMALAI = Reproduction(
    name="annamalai-init",
    summary="worst-case initial weights in black-box audits (Annamalai & De Cristofaro 2024)",
    about="measured is what follows from the trials (95 %) if the training is Gaussian DP, as in the paper; certified "
    "assumes nothing. Logistic regression stands for the paper's convolutional network, and the weights are trained on "
    "the audited records themselves, which their adversary may know.",
    trials=500,
    cells=grid(init=tuple(_STARTS), eps=EPSILONS),
    measure=_measure,
    draw=_draw,
    shown=("certified", "theory"),
    at_least=("measured", "certified"),
)
