"""What every executor does, and what is sent to other processes."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from epsilometer.audit.groups import Groups, Played
from epsilometer.audit.plan import Plan
from epsilometer.audit.trial import Trial, one_thread, run_trials
from epsilometer.errors import EpsilometerError
from epsilometer.training import add_factories, factories_of

TRIES = 3  # after which trials that end their process are given up


class Executor(Protocol):
    """Plays groups of a plan's trials, in any order. Whoever stops iterating stops the work."""

    name: ClassVar[str]

    def play(self, plan: Plan, groups: Groups) -> Generator[Played]: ...


class TrialsFailed(EpsilometerError):
    """Trials could not be played, again and again."""


@dataclass(frozen=True, eq=False)
class Job:
    """All that another process needs to play trials: the plan, and the torch modules that it names."""

    plan: Plan
    factories: dict[str, Any]
    fingerprint: str

    @classmethod
    def of(cls, plan: Plan) -> Job:
        return cls(plan, factories_of(plan.recipe), plan.fingerprint())

    def open(self) -> Plan:
        """The plan, ready to be played in this process, where it must mean the same."""
        add_factories(self.factories)
        if self.plan.fingerprint() != self.fingerprint:
            raise TrialsFailed(
                "a worker process would play another game (another version of epsilometer, or no numba there?); "
                "install the same on every machine"
            )
        return self.plan


@dataclass(frozen=True)
class Task:
    """A group to be played, and how often it failed before."""

    trials: Sequence[Trial]
    failures: int = 0

    def again(self, why: str) -> list[Task]:
        """What to try next, trial by trial: whichever it was that failed, the others get through."""
        if self.failures + 1 < TRIES:
            return [Task([trial], self.failures + 1) for trial in self.trials]
        named = ", ".join(f"{index} of world {world}" for world, index in self.trials)
        raise TrialsFailed(f"trial {named} failed {TRIES} times ({why}); results of other trials are kept")


def next_task(retries: deque[Task], groups: Groups) -> Task | None:
    """What to do next: retries go before new groups."""
    if retries:
        return retries.popleft()
    trials = next(groups, None)
    return None if trials is None else Task(trials)


def play_group(plan: Plan, trials: Sequence[Trial]) -> Played:
    """Play in this process."""
    with one_thread(plan):
        started = time.perf_counter()
        scores = run_trials(plan, trials)
        return Played(trials, scores, time.perf_counter() - started)


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
