"""One optimizer whose steps are taken by a loop of which nothing else is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.watching.facts import Accounted, Facts, Steps
from epsilometer.watching.frameworks.torch.accountants import TOLD, Entry
from epsilometer.watching.privatizer import Coins, Ledger, Privatizer, Stated
from epsilometer.watching.settings import Declared

_SEVERAL = "of which of several optimizers an accountant was told is not known"
_BY_NAME = {
    "RDPAccountant": "rdp", "PRVAccountant": "prv", "GaussianAccountant": "gdp", "RdpAccountant": "rdp",
    "PLDAccountant": "pld", "anaRDPacct": "rdp", "compute_dp_sgd_privacy": "rdp",
}  # fmt: skip


class TorchLoop(Privatizer):
    """States what whoever watches declares, and counts steps; what is known of noise and clipping comes by replay."""

    plays = False

    def __init__(self, name: str, declared: Declared, alone: Callable[[], bool] = lambda: True) -> None:
        """`alone`: is it the only training of its process?"""
        self._name, self._declared, self._alone = name, declared, alone
        self.steps = 0

    def stated(self) -> Stated:
        one = self._declared
        said = {"by_hand": True, **({} if one.sample_rate is None else {"sample_rate": one.sample_rate})}
        return Stated(f"{self._name}, by hand", one.noise_multiplier, one.clip_norm or 1.0, said)

    def insert(self, coins: Coins, draw: np.random.Generator) -> Floats:
        raise NotImplementedError("nobody knows how this loop clips")

    def facts(self, *, end: bool) -> Facts:
        steps, told = Steps(self.steps, self.steps), self._told()
        if told is None:
            why = "no accountant that is known was told of this noise multiplier" if self._alone() else _SEVERAL
            return Facts(steps=steps, troubles={"accounted": why})
        name, history = told
        accounted = [[sigma, rate, float(many)] for sigma, rate, many in history]
        total = sum(many for *_, many in history)
        return Facts(steps=steps, accounted=Accounted(accounted, total, name, _BY_NAME.get(name), None, adaptive=False))

    def accounted(self) -> Ledger | None:
        told = self._told()
        return None if told is None else Ledger(self, [[sigma, rate, float(many)] for sigma, rate, many in told[1]])

    def _told(self) -> tuple[str, list[Entry]] | None:
        return TOLD.of(self._declared.noise_multiplier, self.steps) if self._alone() else None
