"""Figure 2 of Jagielski, Ullman & Oprea (2020): three attacks on three data sets and two models."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from epsilometer.accounting import account
from epsilometer.adversaries import Adversary, Backdoor, ClipBkd, MembershipAttack
from epsilometer.auditing import Choice, Plan, run
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
    by_composed_limits,
    by_papers_rule,
    plan_of,
    recipe_of,
    records_of,
    train_accuracy,
    with_test_part,
)
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session
from epsilometer.training import Recipe

ATTACKS = {"clipbkd": "ClipBKD", "backdoor": "backdoor", "mi": "membership inference"}
INITS = {"1": "", "fixed": ", fixed weights"}  # Glorot's, as the authors' settings have it; and a second picture
_PAPER = {  # what its text says
    ("purchase", "fnn", "clipbkd", "4"): 0.46,
    ("purchase", "fnn", "mi", "4"): 0.04,
    **{("fmnist", model, "backdoor", "inf"): 0.11 for model in MODELS},  # at most
    **{("cifar10", model, "backdoor", eps): 0.0 for model in MODELS for eps in EPSILONS},
}


def _measure(cell: Cell, session: Session) -> Row:
    data = records_of(cell["data"], session)
    recipe = recipe_of(cell["data"], data, cell["eps"], cell["model"], init=cell["init"])
    choice = None if cell["attack"] == "mi" else _poisoning(cell, data, recipe, session)
    plan = _membership(data, recipe, session) if choice is None else choice.plan
    result = run(plan, session.progress, store=session.store, executor=session.executor)
    bound = result.lower_bound
    paper = _PAPER.get((cell["data"], cell["model"], cell["attack"], cell["eps"])) if cell["init"] == "1" else None
    return Row(
        cell=cell,
        paper=paper,
        measured=bound.epsilon,
        details={
            **({} if choice is None else by_composed_limits(choice, result.evidence)),
            **({} if choice is None else by_papers_rule(choice, result.evidence)),
            "k": plan.adversary.group_size,
            "adversary": plan.adversary.describe(),
            "train_accuracy": train_accuracy(plan, session),
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


def _poisoning(cell: Cell, data: Dataset, recipe: Recipe, session: Session) -> Choice:
    adversary: Adversary = ClipBkd()
    if cell["attack"] == "backdoor":
        adversary = Backdoor()
        if cell["init"] != "fixed":  # the paper's way; the second picture has what was stored before there was it
            data = with_test_part(cell["data"], data, session)
            assert data.held_out is not None
            adversary = Backdoor(probes=len(data.held_out), poisons="copies", probed="held-out")
    return best_copies(plan_of(data, recipe, adversary, Relation.REPLACE, session), session)


def _membership(data: Dataset, recipe: Recipe, session: Session) -> Plan:
    """1000 records and 10 models, as in the paper; every record is guessed, at Yeom's threshold."""
    fewer = replace(session, trials=max(1, session.trials // 50))
    plan = plan_of(data, recipe, MembershipAttack(min(1000, len(data) // 2)), Relation.ADD_REMOVE, fewer)
    return replace(plan, method=OneRunPoint(Threshold(0.0), session.seed))


def _draw(rows: Sequence[Row]) -> Figure:
    """A panel for each data set and model, a line for each attack, as in the paper; those of fixed weights below."""
    charts = []
    places = tuple(eps.replace("inf", "∞") for eps in EPSILONS)
    for init, data, model in itertools.product(INITS, SETTINGS, MODELS):
        panel = [r for r in rows if (r.cell["init"], r.cell["data"], r.cell["model"]) == (init, data, model)]
        series = []
        for attack, label in ATTACKS.items():
            own = [row for row in panel if row.cell["attack"] == attack]
            if own:
                points = tuple((row.cell["eps"].replace("inf", "∞"), row.measured) for row in own)
                series.append(Series(label, points, at_least=True))
        if series:
            stated = tuple((eps, float(eps)) for eps in places if eps != "∞")
            series.append(Series("ε_th", stated, reference=True))
            charts.append(Lines(f"{SETTINGS[data].title}, {model.upper()}{INITS[init]}", places, tuple(series)))
    return panels("Three attacks on DP-SGD", charts, "ε_th", "lower bound on ε, 99 %", floor=0.01)


def _cells() -> tuple[Cell, ...]:
    return tuple(
        {"init": init, "data": data, "model": model, "attack": attack, "eps": eps}
        for init in INITS
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
    "the accuracy of Yeom's rule for membership inference; all certified. papers_rule is the paper's own for "
    "poisonings, ln(p1/p0)/k with Clopper–Pearson limits; composed composes such limits k times; each has a threshold "
    "from the pilot, and both have the k that is chosen for the default bound. "
    "theory is PLD (Poisson sampling) under the relation of the game: replace for poisonings, add-remove for "
    "membership. init = 1 is the paper's: random Glorot weights, marked copies in place of other records, scores on "
    "the marked test set (paper's .11 is an upper limit). init = fixed is a second picture: one start for all "
    "trainings, images marked in place. train_accuracy is of five trainings without poison. The purchase data are a "
    "stand-in that is not Purchase-100, so the paper's numbers there are for orientation only.",
    trials=500,
    cells=_cells(),
    measure=_measure,
    draw=_draw,
    shown=("papers_rule", "k", "train_accuracy", "theory"),
    at_least=("measured", "papers_rule"),
    earlier={"init": "fixed"},
)
