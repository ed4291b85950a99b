"""What one watched training asks of its framework, whichever that is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Floats
from epsilometer.noise_sample import NoiseSample
from epsilometer.watching.facts import Facts
from epsilometer.watching.settings import EXTRA

Coins = NDArray[np.bool_]


@dataclass(frozen=True)
class Stated:
    """The noise multiplier that is accounted for a step, and the norm that records are clipped to; the `name` of what
    makes gradients private, and whatever else is said of it."""

    name: str
    noise_multiplier: float
    clip_norm: float
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ledger:
    """An accountant's history of (noise multiplier, sample rate, steps), and how many steps it had before the training
    began. Trainings may share an accountant."""

    accountant: object
    history: list[list[float]]
    before: int = 0

    @property
    def steps(self) -> int:
        """Since the training began."""
        return sum(int(many) for *_, many in self.history) - self.before


class Privatizer(ABC):
    """What makes the gradients of one training private: clips them, adds noise, has it accounted.

    Two methods are needed, `stated` and `insert`; the others have answers for whoever does not know. Whatever raises
    ends the audit of this training, with the reason, and nothing else.
    """

    shows_noise: ClassVar[bool] = False  # does `noise` look at the model's own parameters?
    plays: ClassVar[bool] = True  # may there be canaries at all?
    place: str = EXTRA  # where they are

    @abstractmethod
    def stated(self) -> Stated:
        """Of the step that was just taken; before the first one, of those to come."""

    @abstractmethod
    def insert(self, coins: Coins, draw: np.random.Generator) -> Floats:
        """Canaries through the script's own clipping and noise, beside the step that was just taken and leaving no
        trace in the training. Those whose coin says so are in, each on a coordinate of its own; the noisy sum at each
        one's coordinate, in units of the clip norm. Random numbers of ours come from `draw`."""

    def noise(self, noise_multiplier: float) -> NoiseSample | None:
        """What the step that was just taken has beside the sum of clipped gradients, in all parameters of the model, in
        units of noise that this multiplier makes; none if it cannot be told, or if another law may be right."""
        return None

    def why_not(self) -> str:
        """Why steps, as they are now, cannot be audited by canaries; empty if they can."""
        return ""

    def accounted(self) -> Ledger | None:
        """What the script's accountant was told, if there is one."""
        return None

    def facts(self, *, end: bool) -> Facts:
        """What checks may know by now; after the `end` nothing more is seen."""
        return Facts()

    def wait(self) -> None:
        """For steps that are under way elsewhere. Called from outside of steps only."""
