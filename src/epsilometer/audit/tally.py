"""What has been played of a plan: what is missing, what it shows so far, and whether that is enough."""

from __future__ import annotations

import math

from epsilometer.audit.plan import Plan
from epsilometer.audit.scores import OF_A_STORE
from epsilometer.audit.trial import Results, Trial, accepted, evidence_of, worlds_of
from epsilometer.bounds import Sequential
from epsilometer.evidence import CoinFlips, PairedRuns

FIRST_LOOK, LOOK_AGAIN = 10, 1.1  # when a method that may stop early is asked whether it has enough


class Tally:
    """Results may come in any order. What is shown, and when to stop, depends on the plan alone.

    A method that may stop early is asked after so many complete pairs, first 10 and then a tenth more each time,
    whatever the groups in which they were played; so an audit stops at the same pair on any machine.
    """

    def __init__(self, plan: Plan, results: Results) -> None:
        self.plan = plan
        self._worlds = worlds_of(plan)
        self._complete = 0
        self._look = FIRST_LOOK
        self._stopped_at: int | None = None
        self._results = accepted(plan, results, remedy=OF_A_STORE)
        self._advance()

    @property
    def done(self) -> int:
        return len(self._results)

    @property
    def total(self) -> int:
        return self.plan.trials * len(self._worlds)

    @property
    def complete(self) -> int:
        """How many trials there are of each world, without a gap."""
        return self._complete if self._stopped_at is None else self._stopped_at

    def is_enough(self) -> bool:
        return self._stopped_at is not None or self._complete == self.plan.trials

    def missing(self) -> list[Trial]:
        """Trials still to be played. Worlds alternate, so that a run that is cut short is balanced."""
        everything = ((world, index) for index in range(self.plan.trials) for world in self._worlds)
        return [trial for trial in everything if trial not in self._results]

    def add(self, results: Results) -> None:
        self._results.update(results)
        self._advance()

    def evidence(self) -> PairedRuns | CoinFlips:
        """What has been shown by as many trials of each world as are complete."""
        return evidence_of(self.plan, self._results, self.complete)

    def _advance(self) -> None:
        while self._complete < self.plan.trials and all((w, self._complete) in self._results for w in self._worlds):
            self._complete += 1
        method = self.plan.method
        while isinstance(method, Sequential) and self._stopped_at is None and self._look <= self._complete:
            so_far = evidence_of(self.plan, self._results, self._look)
            assert isinstance(so_far, PairedRuns)
            if method.enough(so_far, self.plan.claim, self.plan.delta, self.plan.confidence):
                self._stopped_at = self._look
            self._look = max(self._look + 1, math.ceil(self._look * LOOK_AGAIN))
