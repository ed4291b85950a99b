"""The ladder of adversaries on one training: what each power adds (Nasr et al. 2021)."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from epsilometer.adversaries import ADVERSARIES, LADDER, AdaptivePoison, Adversary, GradientSteps, Intermediate
from epsilometer.audit import Plan, choose_adversary, run
from epsilometer.bounds import eps_opt
from epsilometer.errors import InvalidInput
from epsilometer.report.rungs import Ladder, Rung, ladder_figure
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session

STATISTICS = ("mean", "max", "last")
RIVALS: dict[str, tuple[Adversary, ...]] = {
    kind.name: tuple(kind(statistic=statistic) for statistic in STATISTICS) for kind in (Intermediate, AdaptivePoison)
}
PER_STEP = {"gradient": GradientSteps(), "malicious-dataset": GradientSteps(malicious=True)}


def ladder_of(plan: Plan) -> Reproduction:
    """All adversaries whose powers the plan's training grants, as cells of one table."""
    granted = [name for name in LADDER if not plan.access.lacks(ADVERSARIES[name]().needs)]
    return Reproduction(
        name="ladder",
        summary="the six adversaries of Nasr et al. (2021) on one training",
        about="Certified bounds assume nothing but independent trials; each holds by itself, at the stated confidence. "
        "family is what follows if the training is DP-SGD with some noise: from the same trials, or (per_step) from "
        "single steps of two trainings. eps_opt is the most that so many trials can certify.",
        trials=plan.trials,
        cells=tuple({"adversary": name} for name in granted),
        measure=functools.partial(_measure, plan),
        draw=functools.partial(_draw, plan),
        shown=("family", "per_step"),
    )


def _measure(plan: Plan, cell: Cell, session: Session) -> Row:
    measured, details = climb(plan, cell["adversary"], session)
    return Row(cell, None, measured, details)


def climb(plan: Plan, name: str, session: Session) -> tuple[float, dict[str, Any]]:
    """One adversary's certified bound, and what else is known; nan and the reason, where it cannot play."""
    try:
        chosen = _chosen(plan, name, session)
        result = run(chosen, session.progress, store=session.store, executor=session.executor)
        per_step = _per_step(plan, name, session)
    except InvalidInput as error:
        return math.nan, {"note": str(error)}
    bound, family = result.lower_bound, result.family_bound
    return bound.epsilon, {
        "settings": chosen.adversary.describe(),
        "needs": str(chosen.adversary.needs),
        "family": None if family is None else family.epsilon,
        "per_step": per_step,
        "theory": result.upper_bound.epsilon,
        "eps_opt": eps_opt(chosen.trials, plan.confidence, plan.delta, method=plan.method),
        "noise_multiplier": plan.recipe.noise_multiplier,
        "noise_limit": None if result.noise_limit is None else result.noise_limit.noise_multiplier,
        "proof": str(bound.proof),
        "method": bound.method,
        "trials": chosen.trials,
        "delta": plan.delta,
        "relation": plan.relation.value,
        "confidence": plan.confidence,
        "seed": plan.seed,
        "verdict": result.verdict.outcome.value,
        "plan_sha256": chosen.fingerprint(),
        "seconds": round(result.seconds, 1),
    }


def _chosen(plan: Plan, name: str, session: Session) -> Plan:
    """The plan with that adversary; a pilot decides where it could score in several ways."""
    rivals = RIVALS.get(name, (ADVERSARIES[name](),))
    first = replace(plan, adversary=rivals[0])
    if len(rivals) == 1:
        return first
    return choose_adversary(
        first, rivals, progress=session.progress, store=session.store, executor=session.executor
    ).plan


def _per_step(plan: Plan, name: str, session: Session) -> float | None:
    """The family bound from single steps of two trainings, for adversaries that have such a twin."""
    if name not in PER_STEP or not plan.recipe.is_accounted:
        return None
    twin = Plan(
        plan.claim, plan.delta, plan.data, plan.recipe, PER_STEP[name], confidence=plan.confidence, seed=plan.seed,
        faults=plan.faults, accountant=plan.accountant, access=plan.access,
    )  # fmt: skip
    return run(twin, session.progress, store=session.store, executor=session.executor).lower_bound.epsilon


def rungs(rows: Sequence[Row]) -> list[Rung]:
    """What a picture needs of rows."""
    return [
        Rung(row.cell["adversary"], row.measured, row.details.get("family"), row.details.get("per_step"))
        for row in rows
    ]


def _draw(plan: Plan, rows: Sequence[Row]) -> str:
    title = f"{plan.recipe.model} on {plan.data.name}"
    ladder = Ladder(plan.recipe.mechanism.describe(), plan.upper_bound.epsilon, rungs(rows))
    return ladder_figure([ladder], f"What each power adds: {title}")
