"""As many trials as a time allows, chosen before any score is looked at: choosing by scores would be another test.

A few trainings are timed that have seeds of their own and are not judged: if run times tell scores, judged ones would
choose their own number. What fits into a part of the time is the plan. If trainings then take longer than those that
were timed, the audit ends without a verdict. That can only prevent accusations, so a claim that holds is still refuted
with probability 1 − confidence at most.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

from epsilometer import validate
from epsilometer.auditing.decision import FEWEST_TRIALS
from epsilometer.auditing.foreign import PAIRS
from epsilometer.auditing.plan import Plan
from epsilometer.errors import EpsilometerError
from epsilometer.evidence import PairedRuns
from epsilometer.runs.executors import Executor
from epsilometer.runs.executors.child import isolated
from epsilometer.runs.executors.executor import Job, play_group
from epsilometer.runs.progress import Progress, Snapshot
from epsilometer.runs.store import Store
from epsilometer.seeds import Stream, seed_of

SHARE = 0.7  # of the time that is planned; the rest is for judging, and for trainings that take longer
MOST = 2000  # trials of a world, where nobody says how many at most
LOOK, MOST_TIMED = 0.3, 64  # seconds and trials after which the cost of one is known
LOOKED_AT = 6  # trainings, with which foreign code is looked at beside its control
_ROUND = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)


class OutOfBudget(EpsilometerError):
    """The time is over, or too short for any verdict. What was played says nothing by then."""


@dataclass(frozen=True)
class Deadline:
    """So many seconds, counted from `started`."""

    seconds: float
    started: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        validate.real("budget_seconds", self.seconds, above=0)

    @property
    def left(self) -> float:
        return self.started + self.seconds - time.perf_counter()

    def watching(self, progress: Progress | None) -> Progress:
        """The same progress, which ends the audit when time is out."""

        def tell(now: Snapshot) -> None:
            if self.left < 0:
                raise OutOfBudget(
                    f"budget_seconds = {self.seconds:g}: trainings took longer than the first ones, and only "
                    f"{now.done} of {now.total} were finished; raise it, or say fewer `trials`"
                )
            if progress is not None:
                progress(now)

        return tell


def within(plan: Plan, deadline: Deadline, store: Store, executor: Executor) -> Plan:
    """The plan with as many trials as fit; what was prepared for it is kept in the store."""
    prepared = isolated(plan.safeguards, "preparing the attack", plan.prepare)
    timed = replace(plan, seed=int(seed_of(plan.seed, Stream.TIMING).generate_state(1)[0]))
    begun = time.perf_counter()
    cost, spent = isolated(plan.safeguards, "the training", _timed, Job.of(timed, prepared), deadline.seconds)
    start = max(0.0, time.perf_counter() - begun - spent) if plan.safeguards.travels else 0.0
    workers = _workers(plan, executor)
    before = start  # until the first scored trial
    if plan.safeguards.foreign and plan.adversary.evidence_type.independent:
        before = 3 * start + cost * (2 * PAIRS / workers + LOOKED_AT)  # of control, of the look, of the trials
    gone = deadline.seconds - deadline.left
    trials = trials_that_fit(plan, deadline.seconds, gone + before, cost, cost * len(plan.worlds) / workers)
    chosen = replace(plan, trials=trials)
    store.keep(store.begin(chosen).fingerprint, prepared)
    return chosen


def trials_that_fit(plan: Plan, seconds: float, before: float, cost: float, each: float) -> int:
    """How many trials of each world are played in so many seconds, if all that comes before them takes `before` and
    `each` of them (of all worlds) adds as much; `cost` is for whoever has too little time, and wants to know why."""
    fewest, most = _reasonable(plan)
    fitting = int((SHARE * seconds - before) / each)
    if fitting < fewest:
        raise OutOfBudget(
            f"budget_seconds = {seconds:g}: one training takes about {cost:.2g} s, and the fewest that say anything "
            f"{math.ceil((before + fewest * each) / SHARE)} s with all that comes before them; raise it, or audit a "
            "smaller version of the training"
        )
    return most if fitting >= most else coarse(fitting)


def coarse(count: int) -> int:
    """A round number that is no larger: small differences in time must not make another audit of it.

    >>> [coarse(n) for n in (1, 29, 30, 499, 1999, 2000)]
    [1, 20, 30, 300, 1500, 2000]
    """
    size = 10 ** (len(str(count)) - 1)
    return max(int(step * size) for step in _ROUND if step * size <= count)


def _reasonable(plan: Plan) -> tuple[int, int]:
    """How many trials of a world to play, at least and at most."""
    if not issubclass(
        plan.adversary.evidence_type, PairedRuns
    ):  # trainings with canaries: their number is part of the attack
        return plan.planned_trials, plan.planned_trials
    most = MOST if plan.trials is None else plan.trials
    return min(FEWEST_TRIALS, most), most


def _timed(job: Job, seconds: float) -> tuple[float, float]:
    """What a trial costs once everything is compiled, and how long it took to find out."""
    trials = [(world, index) for index in range(MOST_TIMED) for world in job.work.worlds]
    spent = cost = play_group(job, trials[:1]).seconds
    size = 1
    while spent + size * cost < seconds / 2:  # the first one may have compiled something, and tell little
        group = trials[:size]
        took = max(play_group(job, group).seconds, 1e-6)
        cost, spent = took / len(group), spent + took
        if took > min(LOOK, seconds / 20) or size >= MOST_TIMED:
            break
        size *= 4
    return cost, spent


def _workers(plan: Plan, executor: Executor) -> int:
    """How many trials are surely played at a time."""
    surely = plan.safeguards.foreign and plan.safeguards.travels  # others start here, and may never leave
    return int(getattr(executor, "workers", 1)) if surely else 1
