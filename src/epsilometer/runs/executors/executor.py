"""What every executor does, and what is sent to other processes."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from epsilometer.errors import EpsilometerError
from epsilometer.runs.groups import Groups, Played
from epsilometer.runs.trials import Preparation, Trial, Trials, one_thread

TRIES = 3  # after which trials that end their process are given up


class Executor(Protocol):
    """Plays groups of trials, in any order. Whoever stops iterating stops the work."""

    name: ClassVar[str]

    def play(self, job: Job, groups: Groups) -> Generator[Played]: ...


class TrialsFailed(EpsilometerError):
    """Trials could not be played, again and again."""


@dataclass(frozen=True, eq=False)
class Job:
    """All that is needed to play trials, in this process or in another: the work, and what was prepared for it."""

    work: Trials
    prepared: Preparation
    fingerprint: str

    @classmethod
    def of(cls, work: Trials, prepared: Preparation | None = None) -> Job:
        fingerprint = work.fingerprint()  # first: it loads what the work needs
        return cls(work, work.prepare() if prepared is None else prepared, fingerprint)

    def opened(self) -> Job:
        """The same in another process, where it must mean the same."""
        if self.work.fingerprint() != self.fingerprint:
            raise TrialsFailed(
                "a worker process would play another game (another version of epsilometer, or no numba there?); "
                "install the same on every machine"
            )
        return self


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


def play_group(job: Job, trials: Sequence[Trial]) -> Played:
    """Play in this process."""
    with one_thread():
        started = time.perf_counter()
        scores = job.work.play(job.prepared, trials)
        return Played(trials, scores, time.perf_counter() - started)


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
