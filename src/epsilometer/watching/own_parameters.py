"""What must be so of a model's own parameters before canaries on an extra one accuse a training.

A script may treat a parameter that it does not know unlike its own: noise from a list that was made once, a default for
unknown names. Then bets on the canaries' coins say nothing of the model. So the same is asked of noise that was seen on
the model's own parameters: is it too small (`NoiseProcess`), or does it hide coins too badly (the same bets, on coins
that are added to it here)? Clipping that lets canaries add more than C stands by itself.
"""

from __future__ import annotations

import math

import numpy as np

from epsilometer.bounds import NoiseProcess, StepProcess
from epsilometer.watching.recording import Step

_SURE = 4.0  # standard errors
_MORE = 1.02  # times C: what is less is rounding


class OwnParameters:
    """Follows the steps of one training beside the bets on its canaries."""

    def __init__(self, confidence: float) -> None:
        self._noise, self._bets = NoiseProcess(confidence), StepProcess(confidence)
        self._signs = np.random.default_rng(0)  # of coins and noise: recordings have sizes only
        self._steps = 0
        self._added = self._variance = 0.0  # sums over steps: what canaries add, and its error
        self._unclipped_at: int | None = None
        self.seen = False  # noise on the model's own parameters

    def add(self, step: Step, sigma: float) -> None:
        """One step that states noise `sigma`."""
        self._steps += 1
        own = step.noise
        self._noise.add(own / sigma)
        if len(own):
            self.seen = True
            coins, negative = self._signs.random((2, len(own))) < 0.5
            self._bets.add(np.where(negative, -own, own) + coins, coins, sigma)
        else:
            self._bets.add([0.5], [True], mu=math.inf)
        if self._unclipped_at is None and self._unclipped(step):
            self._unclipped_at = self._steps

    def _unclipped(self, step: Step) -> bool:
        """Do canaries add more than C, in this step or in all?"""
        members, others = step.scores[step.coins], step.scores[~step.coins]
        if min(len(members), len(others)) < 2:
            return False
        added = float(members.mean() - others.mean())
        variance = float(members.var(ddof=1) / len(members) + others.var(ddof=1) / len(others))
        self._added += added
        self._variance += variance
        means = ((added, variance), (self._added / self._steps, self._variance / self._steps**2))
        return any(mean > _MORE and mean - 1.0 > _SURE * math.sqrt(error) for mean, error in means)

    @property
    def refuted_at(self) -> int | None:
        """The first step at which this was so; none as long as it is not."""
        found = [at for at in (self._noise.refuted_at, self._bets.refuted_at, self._unclipped_at) if at is not None]
        return min(found, default=None)
