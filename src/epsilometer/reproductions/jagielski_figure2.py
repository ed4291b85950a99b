"""Figure 2 of Jagielski, Ullman & Oprea (2020): three attacks on three data sets and two models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from epsilometer.accounting import account
from epsilometer.adversaries import Adversary, Backdoor, ClipBkd, MembershipAttack
from epsilometer.auditing import Plan, run
from epsilometer.bounds import OneRunPoint, Threshold
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.figures import Figure, Lines, Series, panels
from epsilometer.reproductions.jagielski import (
    CONFIDENCE,
    DELTA,
    EPSILONS,
    MODELS,
    SETTINGS,
    best_copies,
    plan_of,
    recipe_of,
    records_of,
)
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session
from epsilometer.training import Recipe

ATTACKS = {"clipbkd": "ClipBKD", "backdoor": "backdoor", "mi": "membership inference"}
_PAPER = {("purchase", "fnn", "clipbkd", "4"): 0.46, ("purchase", "fnn", "mi", "4"): 0.04}  # what its text says


def _measure(cell: Cell, session: Session) -> Row:
    data = records_of(cell["data"], session)
    recipe = recipe_of(cell["data"], data, cell["eps"], cell["model"])
    plan = _membership(data, recipe, session) if cell["attack"] == "mi" else _poisoning(cell, data, recipe, session)
    result = run(plan, session.progress, store=session.store, executor=session.executor)
    bound = result.lower_bound
    return Row(
        cell=cell,
        paper=_PAPER.get((cell["data"], cell["model"], cell["attack"], cell["eps"])),
        measured=bound.epsilon,
        details={
            "k": plan.adversary.group_size,
            "relation": plan.relation.value,
            "theory": result.upper_bound and result.upper_bound.epsilon,
            "proof": str(bound.proof),
            "method": bound.method,
            "noise_multiplier": recipe.noise_multiplier,
            "rdp_classic_add_remove": account(recipe.mechanism, DELTA, accountant="rdp-classic").epsilon,
            "trials": plan.planned_trials,
            "delta": DELTA,
            "confidence": CONFIDENCE,
            "seed": session.seed,
            "verdict": result.verdict.outcome.value,
            "plan_sha256": plan.fingerprint(),
            "seconds": round(result.seconds, 1),
        },
    )


def _poisoning(cell: Cell, data: Dataset, recipe: Recipe, session: Session) -> Plan:
    adversary: Adversary = ClipBkd() if cell["attack"] == "clipbkd" else Backdoor()
    return best_copies(plan_of(data, recipe, adversary, Relation.REPLACE, session), session).plan


def _membership(data: Dataset, recipe: Recipe, session: Session) -> Plan:
    """1000 records and 10 models, as in the paper; every record is guessed, at Yeom's threshold."""
    fewer = replace(session, trials=max(1, session.trials // 50))
    plan = plan_of(data, recipe, MembershipAttack(min(1000, len(data) // 2)), Relation.ADD_REMOVE, fewer)
    return replace(plan, method=OneRunPoint(Threshold(0.0), session.seed))


def _draw(rows: Sequence[Row]) -> Figure:
    """A panel for each data set and model, a line for each attack, as in the paper."""
    charts = []
    places = tuple(eps.replace("inf", "∞") for eps in EPSILONS)
    for data, setting in SETTINGS.items():
        for model in MODELS:
            series = []
            for attack, label in ATTACKS.items():
                own = [r for r in rows if (r.cell["data"], r.cell["model"], r.cell["attack"]) == (data, model, attack)]
                if own:
                    points = tuple((r.cell["eps"].replace("inf", "∞"), r.measured) for r in own)
                    series.append(Series(label, points))
            if series:
                stated = tuple((eps, float(eps)) for eps in places if eps != "∞")
                series.append(Series("ε_th", stated, reference=True))
                charts.append(Lines(f"{setting.title}, {model.upper()}", places, tuple(series)))
    return panels("Three attacks on DP-SGD", charts, "ε_th", "ε proved, 99 %", floor=0.01)


def _cells() -> tuple[Cell, ...]:
    return tuple(
        {"data": data, "model": model, "attack": attack, "eps": eps}
        for data in SETTINGS
        for model in MODELS
        for attack in ATTACKS
        for eps in EPSILONS
        if (data, attack) != ("purchase", "backdoor")  # no images
    )


FIGURE2 = Reproduction(
    name="jagielski-figure2",
    summary="ClipBKD, backdoor and membership inference on three data sets (Jagielski et al. 2020, Figure 2)",
    about="measured is the default bound (exact rank) for the two poisonings, whose k comes from a pilot, and one on "
    "the accuracy of Yeom's rule for membership inference; all certified. theory is PLD (Poisson sampling) under the "
    "relation of the game: replace for poisonings, add-remove for membership. Initialisation is fixed. The purchase "
    "data are a stand-in that is not Purchase-100, so the paper's numbers there are for orientation only.",
    trials=500,
    cells=_cells(),
    measure=_measure,
    draw=_draw,
    shown=("k", "theory"),
)
