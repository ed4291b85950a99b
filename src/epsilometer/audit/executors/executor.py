"""What every executor does, and what is sent to other processes."""

from __future__ import annotations

import os
import time
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

    @classmethod
    def of(cls, plan: Plan) -> Job:
        return cls(plan, factories_of(plan.recipe))

    def open(self) -> Plan:
        """The plan, ready to be played in this process."""
        add_factories(self.factories)
        return self.plan


def play_group(plan: Plan, trials: Sequence[Trial]) -> Played:
    """Play in this process."""
    with one_thread(plan):
        started = time.perf_counter()
        scores = run_trials(plan, trials)
        return Played(trials, scores, time.perf_counter() - started)


def failed(trials: Sequence[Trial], why: str) -> TrialsFailed:
    named = ", ".join(f"{index} of world {world}" for world, index in trials[:4])
    more = f" and {len(trials) - 4} more" if len(trials) > 4 else ""
    return TrialsFailed(f"trial {named}{more} failed {TRIES} times ({why}); results of other trials are kept")


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
