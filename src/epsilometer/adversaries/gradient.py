"""The white-box gradient adversary (Nasr et al. 2021, adversary 5): a watermark in the updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.accounting.renyi import log_mixture
from epsilometer.adversaries.game import Adversary, Game, Prepared
from epsilometer.arrays import Floats
from epsilometer.claims import Relation
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.evidence import IN
from epsilometer.subjects import (
    Capability,
    Controls,
    Insertion,
    NoisySteps,
    Observer,
    Sees,
    Subject,
    ThreatModel,
    WhiteModel,
)

DIRECTIONS = {
    "watermark": "±C/√n alternating on the n parameters that natural gradients move least",
    "dirac": "C on the one parameter that they move least",
    "random": "norm C in a random direction",
}


@dataclass(frozen=True)
class Gradient(Adversary):
    """Inserts a crafted gradient of norm C with probability q at each step, and sees every update.

    `direction` is a watermark on `coordinates` parameters, a Dirac on one, or random. The score is the exact
    log-likelihood ratio of the two worlds given the projections of all updates on it, under the *claimed* noise: no
    better test exists when natural gradients vanish there.
    """

    coordinates: int = 20
    direction: str = "watermark"
    name: ClassVar[str] = "gradient"
    summary: ClassVar[str] = "crafted gradient, sees every update (Nasr et al. 2021, adversary 5)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.EVERY_MODEL, (Controls.GRADIENTS,))
    capabilities: ClassVar[tuple[type[Capability], ...]] = (NoisySteps,)

    def __post_init__(self) -> None:
        validate.whole("coordinates", self.coordinates, least=1)
        if self.direction not in DIRECTIONS:
            raise unknown_name("direction", self.direction, DIRECTIONS)

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        return {"direction": self._direction(subject.require(NoisySteps, self.name), subject.data, seed)}

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        return self._game(subject, subject.data, relation, prepared["direction"])

    def _game(self, subject: Subject, data: Any, relation: Relation, direction: Floats) -> Game:
        steps, absent = subject.require(NoisySteps, self.name), absence(relation)

        def insert(world: int, _: np.random.SeedSequence) -> Insertion:
            times = 1.0 if world == IN else absent
            return Insertion(data, gradient=times * steps.clip_norm * direction if times else None)

        return Game(relation, insert, lambda: _Watermark(steps, direction, absent))

    def _direction(self, steps: NoisySteps, data: Any, seed: np.random.SeedSequence) -> Floats:
        """A unit vector of parameters."""
        if steps.noise_multiplier == 0:
            raise InvalidInput(
                "noise_multiplier", 0, "noise > 0 for a likelihood ratio", "use the clipbkd adversary instead"
            )
        if self.direction == "random":
            drawn = np.random.default_rng(seed).normal(size=steps.width)
            return drawn / np.linalg.norm(drawn)
        count = 1 if self.direction == "dirac" else self.coordinates
        direction = np.zeros(steps.width)
        signs = np.where(np.arange(count) % 2 == 0, 1, -1)
        direction[quietest(steps.natural_movement(data, seed), count)] = signs / np.sqrt(count)
        return direction


def absence(relation: Relation) -> float:
    """What stands in world 0 for a crafted gradient, as a multiple of it: nothing, or its opposite under replace."""
    return -1.0 if relation is Relation.REPLACE else 0.0


def quietest(moved: Floats, count: int) -> NDArray[np.int64]:
    """The parameters that natural gradients move least."""
    if count > len(moved):
        raise InvalidInput("coordinates", count, f"at most the model's {len(moved)} parameters")
    return np.argsort(moved, kind="stable")[:count]


class _Watermark(Observer):
    def __init__(self, steps: NoisySteps, direction: Floats, absent: float) -> None:
        self._steps, self._absent = steps, absent
        self.probe = direction

    def finish(self, model: WhiteModel) -> None:
        self._projections = model.projections

    def score(self) -> float:
        q, sigma = self._steps.sample_rate, self._steps.noise_multiplier
        seen = self._projections / self._steps.clip_norm
        present = log_mixture(seen, 1.0, q, sigma)
        absent = log_mixture(seen, self._absent, q, sigma)
        return float(np.sum(present - absent))
