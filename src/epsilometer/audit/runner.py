"""Runs a plan in this process: trials → evidence → bound → verdict."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from epsilometer.accounting import DpSgd, UpperBound, curve
from epsilometer.adversaries import IN, OUT, CanaryGame, Game
from epsilometer.audit.plan import Plan
from epsilometer.audit.trial import craft, run_canaries, run_trials
from epsilometer.audit.verdict import Verdict, decide
from epsilometer.bounds import ClaimTest, LowerBound, NoiseLimit, Sequential, largest_noise_multiplier, pool_runs
from epsilometer.claims import Claim, require_same_relation
from epsilometer.evidence import OneRun, PairedRuns

Progress = Callable[[int, int], None]
FIRST_LOOK, LOOK_AGAIN = 10, 1.1  # when a method that may stop early is asked whether it has enough


@dataclass(frozen=True, eq=False, repr=False)
class AuditResult:
    """What an audit found, from scores to verdict. `seconds` is the only part that varies between runs."""

    plan: Plan
    evidence: PairedRuns | OneRun
    upper_bound: UpperBound
    lower_bound: LowerBound
    test: ClaimTest
    noise_limit: NoiseLimit | None  # none where no accountant's curve fits the training
    verdict: Verdict
    seconds: float

    @property
    def stopped_early(self) -> bool:
        """Whether the method had enough before all trials were played: no other method holds for such scores."""
        return isinstance(self.evidence, PairedRuns) and len(self.evidence.out_scores) < self.plan.trials

    def __repr__(self) -> str:
        return f"AuditResult({self.verdict}; {self.lower_bound}; {self.upper_bound})"


def run(plan: Plan, progress: Progress | None = None) -> AuditResult:
    """Play the plan's game and judge its claim."""
    started = time.perf_counter()
    result = judge(plan, play(plan, progress))
    return replace(result, seconds=time.perf_counter() - started)


def play(plan: Plan, progress: Progress | None = None) -> PairedRuns | OneRun:
    """All trials of a plan, or as many as its method needs if it may stop early."""
    with threadpool_limits(limits=1):  # small products: threads cost more than they bring, and change rounding
        game = craft(plan)
        require_same_relation("the claim", plan.relation, "the game", game.relation)
        if isinstance(game, CanaryGame):
            return _play_canaries(plan, game, progress)
        return _play_pairs(plan, game, progress)


def _play_pairs(plan: Plan, game: Game, progress: Progress | None) -> PairedRuns:
    """Worlds alternate, so that a run that is cut short is balanced."""
    scores = np.full((2, plan.trials), np.nan)
    look = FIRST_LOOK
    for index in range(plan.trials):
        scores[:, index] = run_trials(plan, game, [(OUT, index), (IN, index)])
        if progress is not None:
            progress(2 * (index + 1), 2 * plan.trials)
        if isinstance(plan.method, Sequential) and index + 1 >= look:
            look = max(look + 1, math.ceil(look * LOOK_AGAIN))
            so_far = PairedRuns(scores[OUT, : index + 1], scores[IN, : index + 1], game.relation, game.group_size)
            if plan.method.enough(so_far, plan.claim, plan.delta, plan.confidence):
                return so_far
    return PairedRuns(scores[OUT], scores[IN], game.relation, game.group_size)


def _play_canaries(plan: Plan, game: CanaryGame, progress: Progress | None) -> OneRun:
    runs = []
    for index in range(plan.trials):
        runs.append(run_canaries(plan, game, index))
        if progress is not None:
            progress(index + 1, plan.trials)
    return pool_runs(runs)


def judge(plan: Plan, evidence: PairedRuns | OneRun) -> AuditResult:
    """Bound, test and verdict for the evidence of a plan."""
    test = plan.method.test(evidence, plan.claim, confidence=plan.confidence)
    return AuditResult(
        plan=plan,
        evidence=evidence,
        upper_bound=plan.upper_bound,
        lower_bound=plan.method.bound(evidence, delta=plan.delta, confidence=plan.confidence),
        test=test,
        noise_limit=_noise_limit(plan, evidence),
        verdict=decide(evidence, test, plan.method),
        seconds=0.0,
    )


def _noise_limit(plan: Plan, evidence: PairedRuns | OneRun) -> NoiseLimit | None:
    """How much noise the training can have had at most; none where no accountant's curve fits.

    None either for one run, or for a method that bets anew against every claim: its refutations need not be nested.
    """
    if not plan.recipe.is_accounted or isinstance(evidence, OneRun) or isinstance(plan.method, Sequential):
        return None
    q, steps = plan.recipe.sample_rate, plan.recipe.steps

    def curve_of(noise_multiplier: float) -> Claim:
        return curve(DpSgd(q, noise_multiplier, steps), plan.relation)

    return largest_noise_multiplier(
        evidence, curve_of, confidence=plan.confidence, method=plan.method, relative_tolerance=5e-3
    )
