"""Runs a plan: trials → evidence → bound → verdict. What is stored is not played again."""

from __future__ import annotations

import math
import time
from contextlib import closing
from dataclasses import dataclass, replace

from epsilometer.accounting import DpSgd, UpperBound, curve, epsilon_floor
from epsilometer.audit.executors import Executor, Inline
from epsilometer.audit.groups import Groups
from epsilometer.audit.plan import Plan
from epsilometer.audit.progress import Progress, Reporter
from epsilometer.audit.replay import require_same_game
from epsilometer.audit.store import MemoryStore, Store
from epsilometer.audit.tally import Tally
from epsilometer.audit.trial import accepted
from epsilometer.audit.verdict import Verdict, decide
from epsilometer.bounds import ClaimTest, Kind, LowerBound, NoiseLimit, Sequential, largest_noise_multiplier
from epsilometer.claims import Claim
from epsilometer.evidence import CoinFlips, PairedRuns


@dataclass(frozen=True, eq=False, repr=False)
class AuditResult:
    """What an audit found, from scores to verdict. `seconds` is the only part that varies between runs."""

    plan: Plan
    evidence: PairedRuns | CoinFlips
    upper_bound: UpperBound
    lower_bound: LowerBound
    test: ClaimTest
    noise_limit: NoiseLimit | None  # none where no accountant's curve fits the training
    family_bound: LowerBound | None  # what follows from that limit, if the training is DP-SGD with some noise
    verdict: Verdict
    seconds: float

    @property
    def stopped_early(self) -> bool:
        """Whether the method had enough before all trials were played: no other method holds for such scores."""
        return isinstance(self.evidence, PairedRuns) and len(self.evidence.out_scores) < self.plan.trials

    def __repr__(self) -> str:
        return f"AuditResult({self.verdict}; {self.lower_bound}; {self.upper_bound})"


def run(
    plan: Plan, progress: Progress | None = None, *, store: Store | None = None, executor: Executor | None = None
) -> AuditResult:
    """Play the plan's game and judge its claim.

    Trials that `store` has are not played again, and new ones are kept there; without a store, nothing is kept.
    `executor` says who plays: this process, if nothing else is said. Neither changes a result.
    """
    store = MemoryStore() if store is None else store
    evidence = play(plan, store, executor or Inline(), progress)
    started = time.perf_counter()
    result = judge(plan, evidence)
    result = replace(result, seconds=store.begin(plan).seconds + time.perf_counter() - started)
    store.conclude(
        plan.fingerprint(),
        {
            "verdict": result.verdict.to_dict(),
            "lower_bound": result.lower_bound.to_dict(),
            "stopped_early": result.stopped_early,
            "judged": len(result.evidence.out_scores) if isinstance(result.evidence, PairedRuns) else plan.trials,
        },
    )
    return result


def play(plan: Plan, store: Store, executor: Executor, progress: Progress | None = None) -> PairedRuns | CoinFlips:
    """All trials of a plan, or as many as its method needs if it may stop early."""
    key, last = store.begin(plan).fingerprint, time.perf_counter()
    stored = store.results(key)
    tally = Tally(plan, stored)
    reporter = Reporter(progress, tally)
    if not tally.is_enough():
        require_same_game(plan, stored)
        groups = Groups(tally.missing())
        with closing(executor.play(plan, groups)) as playing:  # whatever happens here, workers are stopped
            for played in playing:
                groups.learn(played)
                last, since = time.perf_counter(), last
                results = accepted(plan, played.results)  # whoever played them, before anything is stored
                store.add(key, results, last - since)
                tally.add(results)
                reporter.tell()
                if tally.is_enough():
                    break
    return tally.evidence()


def judge(plan: Plan, evidence: PairedRuns | CoinFlips) -> AuditResult:
    """Bound, test and verdict for the evidence of a plan."""
    test = plan.method.test(evidence, plan.claim, confidence=plan.confidence)
    lower_bound = plan.method.bound(evidence, delta=plan.delta, confidence=plan.confidence)
    noise_limit = _noise_limit(plan, evidence)
    return AuditResult(
        plan=plan,
        evidence=evidence,
        upper_bound=plan.upper_bound,
        lower_bound=lower_bound,
        test=test,
        noise_limit=noise_limit,
        family_bound=_family_bound(plan, lower_bound, noise_limit),
        verdict=decide(evidence, test, plan.method),
        seconds=0.0,
    )


def _noise_limit(plan: Plan, evidence: PairedRuns | CoinFlips) -> NoiseLimit | None:
    """How much noise the training can have had at most; none where no accountant's curve fits.

    None either for one run, or for a method that bets anew against every claim: its refutations need not be nested.
    """
    if not plan.recipe.is_accounted or isinstance(evidence, CoinFlips) or isinstance(plan.method, Sequential):
        return None
    q, steps = plan.recipe.sample_rate, plan.recipe.steps

    def curve_of(noise_multiplier: float) -> Claim:
        return curve(DpSgd(q, noise_multiplier, steps), plan.relation)

    return largest_noise_multiplier(
        evidence,
        curve_of,
        confidence=plan.confidence,
        method=plan.method,
        reference=curve(plan.recipe.mechanism, plan.relation),
        relative_tolerance=5e-3,
    )


def _family_bound(plan: Plan, bound: LowerBound, limit: NoiseLimit | None) -> LowerBound | None:
    """ε at the plan's δ, by PLD, of DP-SGD with the most noise that the scores allow; nothing else is assumed."""
    if bound.kind is Kind.FAMILY:
        return bound
    if limit is None or limit.kind is not Kind.CERTIFIED or bound.group_size > 1:
        return None
    epsilon = 0.0
    if math.isfinite(limit.noise_multiplier):
        mechanism = replace(plan.recipe.mechanism, noise_multiplier=limit.noise_multiplier)
        epsilon = epsilon_floor(mechanism, plan.delta, plan.relation)
    return replace(
        bound,
        epsilon=epsilon,
        method=f"DP-SGD with some noise, {limit.method}",
        kind=Kind.FAMILY,
        proof=limit,
    )
