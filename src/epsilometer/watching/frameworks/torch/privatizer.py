"""One optimizer whose steps are taken by a loop of which nothing else is known."""

from __future__ import annotations

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.watching.facts import Facts, Steps
from epsilometer.watching.privatizer import Coins, Privatizer, Stated
from epsilometer.watching.settings import Declared


class TorchLoop(Privatizer):
    """States what whoever watches declares, and counts steps; what is known of noise and clipping comes by replay."""

    plays = False

    def __init__(self, name: str, declared: Declared) -> None:
        self._name, self._declared = name, declared
        self.steps = 0

    def stated(self) -> Stated:
        one = self._declared
        said = {"by_hand": True, **({} if one.sample_rate is None else {"sample_rate": one.sample_rate})}
        return Stated(f"{self._name}, by hand", one.noise_multiplier, one.clip_norm or 1.0, said)

    def insert(self, coins: Coins, draw: np.random.Generator) -> Floats:
        raise NotImplementedError("nobody knows how this loop clips")

    def facts(self, *, end: bool) -> Facts:
        return Facts(steps=Steps(self.steps, self.steps))
