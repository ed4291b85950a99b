"""Runs a plan: trials → evidence → bound → verdict. What is stored is not played again."""

from __future__ import annotations

import functools
import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from epsilometer.accounting import UpperBound, epsilon_floor
from epsilometer.auditing.decision import decide
from epsilometer.auditing.plan import Plan
from epsilometer.bounds import ClaimTest, Kind, LowerBound, NoiseLimit, is_sequential, largest_noise_multiplier
from epsilometer.errors import unknown_name
from epsilometer.evidence import Evidence
from epsilometer.figures import Drawable, Figure
from epsilometer.neighbours import require_same_neighbours
from epsilometer.runs.executors import Executor, Inline
from epsilometer.runs.play import play
from epsilometer.runs.progress import Progress, Reporter
from epsilometer.runs.store import MemoryStore, Store
from epsilometer.runs.trials import Preparation
from epsilometer.verdict import Verdict

if TYPE_CHECKING:
    from epsilometer.auditing.utility import Accuracy

# Simulated audits that should exceed the level of a test, for each noise multiplier that is tried. A limit pays for how
# few they are: it is as valid as with four times as many, loses about 1 % of ε, and takes a fourth of the time.
LIMITING = 250


@dataclass(frozen=True, eq=False, repr=False)
class AuditResult(Drawable):
    """What an audit found, from scores to verdict. `seconds` is the only part that varies between runs."""

    plan: Plan
    evidence: Evidence
    upper_bound: UpperBound | None  # none where the subject says too little of itself
    lower_bound: LowerBound
    test: ClaimTest
    noise_limit: NoiseLimit | None  # none where no accountant's curve fits the training, or nobody asked
    family_bound: LowerBound | None  # what follows from that limit, if the training is DP-SGD with some noise
    verdict: Verdict
    judged: int  # trials of each world
    seconds: float
    prepared: Preparation | None = None  # what the adversary made before the first trial, if that was kept
    accuracy: tuple[Accuracy, ...] = ()  # of the training's models, on its own records; empty if nobody measured it

    @property
    def stopped_early(self) -> bool:
        """Whether the method had enough before all trials were played: no other method holds for such scores."""
        return self.judged < self.plan.planned_trials

    @functools.cached_property
    def figures(self) -> dict[str, Figure]:
        """The numbers of its pictures, by name: scale, scores, trade-off, path, records."""
        from epsilometer.auditing.audit_figures import figures_of

        return figures_of(self)

    def figure(self, name: str = "trade-off") -> Figure:
        """One of `figures`."""
        if name not in self.figures:
            raise unknown_name("figure", name, self.figures)
        return self.figures[name]

    def plot(self, ax: Any = None, *, figure: str = "trade-off") -> Any:
        """Draw one of `figures` with matplotlib, into new axes if none are given, and give these back."""
        return self.figure(figure).plot(ax)

    def __repr__(self) -> str:
        return f"AuditResult({self.verdict}; {self.lower_bound}; {self.upper_bound})"


def run(
    plan: Plan,
    progress: Progress | None = None,
    *,
    store: Store | None = None,
    executor: Executor | None = None,
    noise_limit: bool = True,
) -> AuditResult:
    """Play the plan's game and judge its claim.

    Trials that `store` has are not played again, and new ones are kept there; without a store, nothing is kept.
    `executor` says who plays: this process, if nothing else is said. Neither changes a result. The `noise_limit` takes
    some seconds, refutes nothing, and can be left out.
    """
    store = MemoryStore() if store is None else store
    tally = play(plan, store, executor or Inline(), progress)
    started = time.perf_counter()
    Reporter(progress, tally).judging()
    result = judge(plan, plan.evidence(tally.results, tally.complete), tally.complete, noise_limit=noise_limit)
    stored = store.begin(plan)
    result = replace(
        result,
        seconds=stored.seconds + time.perf_counter() - started,
        prepared=store.preparation(stored.fingerprint),
    )
    store.conclude(
        stored.fingerprint,
        {
            "verdict": result.verdict.to_dict(),
            "lower_bound": result.lower_bound.to_dict(),
            "stopped_early": result.stopped_early,
            "judged": result.judged,
        },
    )
    return result


def judge(plan: Plan, evidence: Evidence, judged: int | None = None, *, noise_limit: bool = True) -> AuditResult:
    """Bound, test and verdict for the evidence of a plan, from all of its trials if nothing else is said."""
    method = plan.planned_method
    neighbours = plan.claim.neighbours
    require_same_neighbours("the claim", neighbours, "the evidence", evidence.neighbours)
    test = method.test(evidence, plan.claim, confidence=plan.confidence)
    lower_bound = method.bound(evidence, delta=plan.delta, confidence=plan.confidence)
    require_same_neighbours("the claim", neighbours, f"the bound by {method.name}", lower_bound.neighbours)
    limit = _noise_limit(plan, evidence) if noise_limit else None
    return AuditResult(
        plan=plan,
        evidence=evidence,
        upper_bound=plan.upper_bound,
        lower_bound=lower_bound,
        test=test,
        noise_limit=limit,
        family_bound=_family_bound(plan, lower_bound, limit),
        verdict=decide(evidence, test, method),
        judged=plan.planned_trials if judged is None else judged,
        seconds=0.0,
    )


def _noise_limit(plan: Plan, evidence: Evidence) -> NoiseLimit | None:
    """How much noise the training can have had at most; none where no accountant's curve fits.

    None either for one run, or for a method that bets anew against every claim: its refutations need not be nested.
    """
    promise, method, neighbours = plan.subject.promise, plan.planned_method, plan.claim.neighbours
    reference = promise.curve(neighbours) if promise.noise_multiplier is not None and not promise.caveat else None
    if reference is None or not evidence.independent or is_sequential(method):
        return None

    if hasattr(method, "simulations"):
        fewer = min(method.simulations, math.ceil(LIMITING / (1.0 - plan.confidence)))
        method = replace(method, simulations=fewer)  # type: ignore[type-var]
    return largest_noise_multiplier(
        evidence.as_pairs(),
        functools.partial(promise.curve_with_noise, neighbours),
        confidence=plan.confidence,
        method=method,
        reference=reference,
        relative_tolerance=5e-3,
    )


def _family_bound(plan: Plan, bound: LowerBound, limit: NoiseLimit | None) -> LowerBound | None:
    """ε at the plan's δ, by PLD, of DP-SGD with the most noise that the scores allow; nothing else is assumed."""
    if bound.kind is Kind.FAMILY:
        return bound
    steps = plan.subject.promise.steps
    if limit is None or steps is None or limit.kind is not Kind.CERTIFIED or bound.group_size > 1:
        return None
    epsilon = 0.0
    if math.isfinite(limit.noise_multiplier):
        epsilon = epsilon_floor(
            replace(steps, noise_multiplier=limit.noise_multiplier), plan.delta, plan.relation
        )  # fmt: skip
    return replace(
        bound,
        epsilon=epsilon,
        method=f"DP-SGD with some noise, {limit.method}",
        kind=Kind.FAMILY,
        proof=limit,
    )
