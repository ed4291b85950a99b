"""Trials in this process, until it is clear that worker processes are worth their start."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import ClassVar

from epsilometer.errors import InvalidInput
from epsilometer.runs.executors.executor import Job, play_group
from epsilometer.runs.executors.local import Local, packed
from epsilometer.runs.groups import Groups, Played

LOOK, WORTH = 1.0, 20.0  # seconds before deciding; seconds of work left for which processes are started


class Auto:
    """Inline, then local."""

    name: ClassVar[str] = "auto"

    def __init__(self, workers: int | None = None) -> None:
        self._local = Local(workers)

    @property
    def workers(self) -> int:
        return self._local.workers

    def play(self, job: Job, groups: Groups) -> Generator[Played]:
        started = time.perf_counter()
        travels = _can_travel(job)
        if job.work.safeguards.foreign and travels:  # it might end the process that plays it
            yield from self._local.play(job, groups)
            return
        may_leave = self._local.workers > 1 and travels
        for trials in groups:
            yield play_group(job, trials)
            if may_leave and time.perf_counter() - started > LOOK and groups.seconds_left > WORTH:
                break
        yield from self._local.play(job, groups)


def _can_travel(job: Job) -> bool:
    """Whether other processes surely know all parts of the work; what a script defines, they may not."""
    if not job.work.safeguards.travels:
        return False
    try:
        packed(job)
    except InvalidInput:
        return False
    return all(getattr(part, "__module__", "") != "__main__" for part in job.work.code())
