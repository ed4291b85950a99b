"""What has been played of some work: what is missing, and whether there is enough."""

from __future__ import annotations

import math

from epsilometer.runs.scores import OF_A_STORE
from epsilometer.runs.trials import Results, Trial, Trials

LOOK_AGAIN = 1.1  # when work that may stop early is asked again whether it has enough


class Tally:
    """Results may come in any order. What is shown, and when to stop, depends on the work alone.

    Trials that may stop early is asked after so many complete pairs, first 10 (or 1) and then a tenth more each time,
    whatever the groups in which they were played; so an audit stops at the same pair on any machine.
    """

    def __init__(self, work: Trials, results: Results) -> None:
        self.work = work
        self._complete = 0
        self._look = work.first_look
        self._stopped_at: int | None = None
        self._results = work.accepted(results, remedy=OF_A_STORE)
        self._advance()

    @property
    def results(self) -> Results:
        return self._results

    @property
    def done(self) -> int:
        return len(self._results)

    @property
    def total(self) -> int:
        return self.work.planned_trials * len(self.work.worlds)

    @property
    def complete(self) -> int:
        """How many trials there are of each world, without a gap."""
        return self._complete if self._stopped_at is None else self._stopped_at

    def is_enough(self) -> bool:
        return self._stopped_at is not None or self._complete == self.work.planned_trials

    def missing(self) -> list[Trial]:
        """Trials still to be played. Worlds alternate, so that a run that is cut short is balanced."""
        everything = ((world, index) for index in range(self.work.planned_trials) for world in self.work.worlds)
        return [trial for trial in everything if trial not in self._results]

    def add(self, results: Results) -> None:
        self._results.update(results)
        self._advance()

    def _advance(self) -> None:
        worlds = self.work.worlds
        while self._complete < self.work.planned_trials and all((w, self._complete) in self._results for w in worlds):
            self._complete += 1
        while self._stopped_at is None and self._look <= self._complete:
            if self.work.is_enough(self._results, self._look):
                self._stopped_at = self._look
            self._look = max(self._look + 1, math.ceil(self._look * LOOK_AGAIN))
