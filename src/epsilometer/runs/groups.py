"""The unit of work: a group of trials. How large groups are changes speed, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from epsilometer.arrays import Floats
from epsilometer.runs.trials import Results, Trial

SECONDS = 0.5  # of work in a group: much more than handing it out costs, little enough to lose
_GROWTH = 4  # the first trials of a process are slow, so estimates improve


@dataclass(frozen=True, eq=False)
class Played:
    """A group with its results, and how long it took whoever played it."""

    trials: Sequence[Trial]
    scores: Sequence[Floats]
    seconds: float

    @property
    def results(self) -> Results:
        return dict(zip(self.trials, self.scores, strict=True))


class Groups:
    """Trials to be played, handed out in groups that take about half a second each."""

    def __init__(self, trials: Sequence[Trial], first: int = 2, alone: bool = False) -> None:
        self._trials, self._next = trials, 0
        self._size, self._alone = (1, True) if alone else (first, False)
        self._seconds_a_trial = 0.0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Sequence[Trial]:
        if self._next >= len(self._trials):
            raise StopIteration
        group = self._trials[self._next : self._next + self._size]
        self._next += len(group)
        return group

    def learn(self, played: Played) -> None:
        """Choose the size of later groups by how long this one took."""
        now = max(played.seconds, 1e-6) / len(played.trials)
        self._seconds_a_trial = min(now, (now + self._seconds_a_trial) / 2) if self._seconds_a_trial else now
        self._size = 1 if self._alone else max(1, min(int(SECONDS / self._seconds_a_trial), _GROWTH * self._size))

    @property
    def seconds_left(self) -> float:
        """What the trials that have not been handed out would take one process, about."""
        return self._seconds_a_trial * (len(self._trials) - self._next)
