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
        self.complete = 0  # how many trials there are of each world, without a gap; no more than were enough
        self.done = 0  # trials in all
        self._worlds, self._planned = work.worlds, work.planned_trials
        self.total = self._planned * len(self._worlds)
        self._played, self._look = 0, work.first_look
        self._stopped = False
        self._results = work.accepted(results, remedy=OF_A_STORE)
        self._advance()

    @property
    def results(self) -> Results:
        return self._results

    def is_enough(self) -> bool:
        return self._stopped or self._played == self._planned

    def missing(self) -> list[Trial]:
        """Trials still to be played. Worlds alternate, so that a run that is cut short is balanced."""
        everything = ((world, index) for index in range(self._planned) for world in self._worlds)
        return [trial for trial in everything if trial not in self._results]

    def add(self, results: Results) -> None:
        self._results.update(results)
        self._advance()

    def _advance(self) -> None:
        self.done = len(self._results)
        while self._played < self._planned and all((w, self._played) in self._results for w in self._worlds):
            self._played += 1
        if self._stopped:
            return
        self.complete = self._played
        while self._look <= self._played and not self._stopped:
            if self.work.is_enough(self._results, self._look):
                self._stopped, self.complete = True, self._look
            self._look = max(self._look + 1, math.ceil(self._look * LOOK_AGAIN))
