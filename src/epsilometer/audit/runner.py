"""Runs a plan in this process: trials → evidence → bound → verdict."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
from threadpoolctl import threadpool_limits

from epsilometer.accounting import DpSgd, UpperBound, curve
from epsilometer.adversaries import IN, OUT
from epsilometer.audit.plan import Plan
from epsilometer.audit.trial import craft, run_trials
from epsilometer.audit.verdict import Verdict, decide
from epsilometer.bounds import (
    ClaimTest,
    LowerBound,
    NoiseLimit,
    ThresholdStrategy,
    clopper_pearson,
    largest_noise_multiplier,
    refute_curve,
)
from epsilometer.claims import Claim, require_same_relation
from epsilometer.evidence import PairedRuns

Progress = Callable[[int, int], None]


class _Settings(TypedDict):
    confidence: float
    thresholds: ThresholdStrategy


@dataclass(frozen=True, eq=False, repr=False)
class AuditResult:
    """What an audit found, from scores to verdict. `seconds` is the only part that varies between runs."""

    plan: Plan
    evidence: PairedRuns
    upper_bound: UpperBound
    lower_bound: LowerBound
    test: ClaimTest
    noise_limit: NoiseLimit | None  # none where no accountant's curve fits the training
    verdict: Verdict
    seconds: float

    def __repr__(self) -> str:
        return f"AuditResult({self.verdict}; {self.lower_bound}; {self.upper_bound})"


def run(plan: Plan, progress: Progress | None = None) -> AuditResult:
    """Play the plan's game and judge its claim."""
    started = time.perf_counter()
    result = judge(plan, play(plan, progress))
    return replace(result, seconds=time.perf_counter() - started)


def play(plan: Plan, progress: Progress | None = None) -> PairedRuns:
    """All trials of a plan. Worlds alternate, so that a run that is cut short is balanced."""
    scores = np.full((2, plan.trials), np.nan)
    with threadpool_limits(limits=1):  # small products: threads cost more than they bring, and change rounding
        game = craft(plan)
        require_same_relation("the claim", plan.relation, "the game", game.relation)
        for index in range(plan.trials):
            scores[:, index] = run_trials(plan, game, [(OUT, index), (IN, index)])
            if progress is not None:
                progress(2 * (index + 1), 2 * plan.trials)
    return PairedRuns(scores[OUT], scores[IN], game.relation, game.group_size)


def judge(plan: Plan, evidence: PairedRuns) -> AuditResult:
    """Bound, test and verdict for the evidence of a plan."""
    settings: _Settings = {"confidence": plan.confidence, "thresholds": plan.thresholds}
    test = refute_curve(evidence, plan.claim, **settings)
    return AuditResult(
        plan=plan,
        evidence=evidence,
        upper_bound=plan.upper_bound,
        lower_bound=clopper_pearson(evidence, delta=plan.delta, **settings),
        test=test,
        noise_limit=_noise_limit(plan, evidence, settings),
        verdict=decide(evidence, test, plan.thresholds),
        seconds=0.0,
    )


def _noise_limit(plan: Plan, evidence: PairedRuns, settings: _Settings) -> NoiseLimit | None:
    """How much noise the training can have had at most."""
    if not plan.recipe.is_accounted:
        return None
    q, steps = plan.recipe.sample_rate, plan.recipe.steps

    def curve_of(noise_multiplier: float) -> Claim:
        return curve(DpSgd(q, noise_multiplier, steps), plan.relation)

    return largest_noise_multiplier(evidence, curve_of, relative_tolerance=5e-3, **settings)
