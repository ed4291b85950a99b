"""Trials in this process."""

from __future__ import annotations

from collections.abc import Generator
from typing import ClassVar

from epsilometer.runs.executors.executor import Job, play_group
from epsilometer.runs.groups import Groups, Played


class Inline:
    """One group after the other."""

    name: ClassVar[str] = "inline"

    def play(self, job: Job, groups: Groups) -> Generator[Played]:
        for trials in groups:
            yield play_group(job, trials)
