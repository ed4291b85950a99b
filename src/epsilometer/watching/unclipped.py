"""Do canaries on an extra parameter add more than C? Then bets on them tell of clipping, whatever the noise is."""

from __future__ import annotations

import math

from epsilometer.watching.recording import Step

_SURE = 4.0  # standard errors
_MORE = 1.02  # times C: what is less is rounding


class Unclipped:
    """Follows the steps of one training beside the bets on its canaries."""

    def __init__(self) -> None:
        self._steps = 0
        self._added = self._variance = 0.0  # sums over steps: what canaries add, and its error
        self.since: int | None = None  # the first step at which this was so

    def add(self, step: Step) -> None:
        self._steps += 1
        if self.since is None and self._unclipped(step):
            self.since = self._steps

    def _unclipped(self, step: Step) -> bool:
        """In this step or in all."""
        members, others = step.scores[step.coins], step.scores[~step.coins]
        if min(len(members), len(others)) < 2:
            return False
        added = float(members.mean() - others.mean())
        variance = float(members.var(ddof=1) / len(members) + others.var(ddof=1) / len(others))
        self._added += added
        self._variance += variance
        means = ((added, variance), (self._added / self._steps, self._variance / self._steps**2))
        return any(mean > _MORE and mean - 1.0 > _SURE * math.sqrt(error) for mean, error in means)
