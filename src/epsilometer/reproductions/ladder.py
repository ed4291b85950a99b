"""The ladder of adversaries on one training: what each power adds (Nasr et al. 2021)."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from epsilometer.adversaries import (
    ADVERSARIES,
    LADDER,
    Adversary,
    Gradient,
    GradientSteps,
    Intermediate,
)
from epsilometer.adversaries.target import STATISTICS
from epsilometer.auditing import Plan, choose_adversary, decide, run
from epsilometer.auditing.per_step import ComposedSteps
from epsilometer.bounds import Kind, attack_strength, eps_opt
from epsilometer.bounds.strength import EITHER
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Evidence
from epsilometer.figures import Figure, Grid, Ladder, Rung
from epsilometer.report.headline import Headline, certified, theory_of
from epsilometer.report.release import DO_NOT_RELEASE
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session
from epsilometer.rounding import confidence, percent
from epsilometer.subjects import KnowsRecipe, NoisySteps
from epsilometer.verdict import ENOUGH_POWER

PER_STEP = {"gradient": GradientSteps(), "malicious-dataset": GradientSteps(malicious=True)}


def ladder_of(plan: Plan) -> Reproduction:
    """All adversaries whose powers the plan's training grants, as cells of one table."""
    plan.subject.require(KnowsRecipe, "the ladder")  # all of them can play against nothing else
    if plan.planned_method.kind is not Kind.CERTIFIED or not plan.adversary.evidence_type.independent:
        raise InvalidInput("method", plan.planned_method.name, "one that certifies bounds from trials", "leave it out")
    granted = [name for name in LADDER if not plan.access.lacks(ADVERSARIES[name]().needs)]
    return Reproduction(
        name="ladder",
        summary="the six adversaries of Nasr et al. (2021) on one training",
        about="Certified bounds assume nothing but independent trials; each has the stated confidence if it was chosen "
        "beforehand, and those named together hold at once. If the training is DP-SGD with some noise, more follows: "
        "from the same trials (family), or from single steps of two trainings (per_step). With few trials even a "
        "perfect attack can certify little (eps_opt). Verdicts rest on tests at "
        f"{corrected(plan):.4g} confidence each, so that all {len(LADDER)} keep the stated one. "
        "strength is an attack's μ, an estimate with a 95 % interval, to compare adversaries by.",
        trials=plan.planned_trials,
        cells=tuple({"adversary": name} for name in granted),
        measure=functools.partial(_measure, plan),
        draw=functools.partial(_draw, plan),
        shown=("family", "per_step"),
        headline=functools.partial(ladder_headline, plan),
    )


def ladder(plan: Plan, session: Session | None = None) -> list[Row]:
    """Climb the ladder of a plan: a row for each adversary. The plan's own adversary does not matter."""
    chosen = ladder_of(plan)
    return list(chosen.rows(chosen.cells, Session(plan.planned_trials) if session is None else session))


def corrected(plan: Plan) -> float:
    """The confidence of each of six tests that together keep the plan's."""
    return 1.0 - (1.0 - plan.confidence) / len(LADDER)


def ladder_headline(plan: Plan, rows: Sequence[Row]) -> Headline:
    """What all adversaries have shown together: each was judged at its share of the error."""
    played = [row for row in rows if "verdict" in row.details]
    what = f"the claimed ε = {plan.claimed_epsilon:.4g} at δ = {plan.delta:g} ({plan.claim.statement})"
    sure = f"{confidence(plan.confidence)} for all adversaries together"
    by = [row.cell["adversary"] for row in played if row.details["verdict"] == "violated"]
    able = [row.cell["adversary"] for row in played if row.details["verdict"] == "consistent"]
    if by:
        verdict, first = "violated", f"{what} is refuted by {', '.join(by)}, with {sure}. {DO_NOT_RELEASE[:-1]}"
    elif able:
        caught = f"is caught in {percent(ENOUGH_POWER)} of cases or more"
        strong = f"an attack twice as strong as that of {', '.join(able)} {caught}, by simulation, {EITHER}"
        verdict, first = "consistent", f"no violation of {what} was found by {len(played)} adversaries; {strong}"
    else:
        weak = "none was strong enough to say more; run more trials"
        verdict, first = "inconclusive", f"no violation of {what} was found by {len(played)} adversaries, but {weak}"
    best = max(played, key=lambda row: float(row.details["together"]), default=None)
    theory = theory_of(plan.upper_bound)
    if best is None:
        return Headline(verdict, (f"{verdict}: {first}.", f"Nothing is certified; {theory}."), "nothing")
    quote = certified(float(best.details["together"]), f"at δ = {plan.delta:g} ({plan.neighbours})", sure)
    return Headline(verdict, (f"{verdict}: {first}.", f"Quote {quote}, by {best.cell['adversary']}; {theory}."), quote)


def _measure(plan: Plan, cell: Cell, session: Session) -> Row:
    measured, details = climb(plan, cell["adversary"], session)
    return Row(cell, None, measured, details)


def climb(
    plan: Plan, name: str, session: Session, settings: Mapping[str, Any] | None = None
) -> tuple[float, dict[str, Any]]:
    """One adversary's certified bound, and what else is known; nan and the reason, where it cannot play.

    `settings` are the adversary's, where they are not the usual ones.
    """
    try:
        chosen = _chosen(plan, name, session, settings or {})
        result = run(chosen, session.progress, store=session.store, executor=session.executor)
    except InvalidInput as error:
        return math.nan, {"note": f"{error.argument} = {error.value!r}: expected {error.expected}"}
    bound, family, method = result.lower_bound, result.family_bound, plan.planned_method
    test = method.test(result.evidence, plan.claim, confidence=corrected(plan))
    return bound.epsilon, {
        "settings": _settings(chosen.adversary),
        "needs": str(chosen.adversary.needs),
        **dict(zip(("strength_low", "strength", "strength_high"), _strengths(result.evidence), strict=True)),
        "violated": test.refuted and test.kind is Kind.CERTIFIED,
        "verdict": decide(result.evidence, test, method).outcome.value,
        "together": method.bound(result.evidence, delta=plan.delta, confidence=corrected(plan)).epsilon,
        "family": None if family is None else family.epsilon,
        "per_step": _per_step(plan, name, session),
        "theory": result.upper_bound and result.upper_bound.epsilon,
        "eps_opt": eps_opt(chosen.planned_trials, plan.confidence, plan.delta, method=plan.planned_method),
        "noise_multiplier": plan.promise.noise_multiplier,
        "noise_limit": None if result.noise_limit is None else result.noise_limit.noise_multiplier,
        "proof": str(bound.proof),
        "method": bound.method,
        "trials": chosen.planned_trials,
        "delta": plan.delta,
        **plan.neighbours.to_dict(),
        "confidence": plan.confidence,
        "seed": plan.seed,
        "plan_sha256": chosen.fingerprint(),
        "seconds": round(result.seconds, 1),
    }


def _strengths(evidence: Evidence) -> list[float]:
    """The attack's μ and a 95 % interval for it: estimates, to compare adversaries by."""
    return [attack_strength(evidence.as_pairs(), level) for level in (0.975, 0.5, 0.025)]


def _settings(adversary: Adversary) -> str:
    """Its name, and how it scores if it has a choice."""
    statistic = getattr(adversary, "statistic", None)
    return adversary.name if statistic is None else f"{adversary.name}, {statistic} loss"


def _rivals(plan: Plan, name: str, settings: Mapping[str, Any]) -> Sequence[Adversary]:
    """An adversary in all the ways in which it may score."""
    kind = ADVERSARIES[name]
    if issubclass(kind, Intermediate):
        return [kind(statistic=statistic, **settings) for statistic in STATISTICS]
    if issubclass(kind, Gradient):
        return [kind(coordinates=min(kind.coordinates, plan.subject.require(NoisySteps, name).width), **settings)]
    return [kind(**settings)]


def _chosen(plan: Plan, name: str, session: Session, settings: Mapping[str, Any]) -> Plan:
    """The plan with that adversary; a pilot decides where it could score in several ways."""
    rivals = _rivals(plan, name, settings)
    first = replace(plan, adversary=rivals[0])
    if len(rivals) == 1:
        return first
    return choose_adversary(
        first, rivals, progress=session.progress, store=session.store, executor=session.executor
    ).plan


def _per_step(plan: Plan, name: str, session: Session) -> float | None:
    """The family bound from single steps of two trainings, for adversaries that have such a twin."""
    if name not in PER_STEP or plan.promise.caveat or plan.promise.steps is None:
        return None
    twin = replace(plan, adversary=PER_STEP[name], trials=None, method=ComposedSteps(plan.promise.steps))
    return run(twin, session.progress, store=session.store, executor=session.executor).lower_bound.epsilon


def rungs(rows: Sequence[Row]) -> list[Rung]:
    """What a picture needs of rows."""
    return [
        Rung(row.cell["adversary"], row.measured, row.details.get("family"), row.details.get("per_step"), row.paper)
        for row in rows
    ]


def _draw(plan: Plan, rows: Sequence[Row]) -> Figure:
    training, theory = plan.subject.require(KnowsRecipe, "the ladder"), plan.upper_bound
    assert theory is not None  # of the own DP-SGD there always is one
    drawn = Ladder(plan.promise.describe(), theory.epsilon, tuple(rungs(rows)))
    what = f"{training.recipe.model} on {plan.subject.data.name}"
    how = (
        f"{plan.planned_trials} trials per world, {confidence(plan.confidence)}, δ = {plan.delta:g}, {plan.neighbours}"
    )
    return Grid(f"What each power adds: {what}", (drawn,), how)
