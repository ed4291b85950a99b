"""Per-step evidence from one training (Nasr et al. 2023): a crafted gradient in every step, or not, by a coin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.adversaries.game import Adversary, Game, Prepared
from epsilometer.adversaries.gradient import absence, quietest
from epsilometer.adversaries.malicious_dataset import malicious, unlearnable
from epsilometer.arrays import Floats
from epsilometer.bounds import MOST_CANARIES
from epsilometer.claims import Relation
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Coins, PerStep
from epsilometer.subjects import (
    Capability,
    Controls,
    Insertion,
    KnowsRecipe,
    NoisySteps,
    Observer,
    Sees,
    Subject,
    ThreatModel,
)
from epsilometer.subjects.subject import Addition
from epsilometer.training import Array

FEWEST, MOST = 20, 400  # parameters with a canary, if nothing is said
QUIET = 0.1  # what natural gradients may put on them, in standard deviations of the noise


@dataclass(frozen=True)
class GradientSteps(Adversary):
    """Tosses a coin in every step for each of `coordinates` parameters: a gradient of norm C there, or none.

    They are those that natural gradients move least; if no number is given, as many (20 to 400) as they move by less
    than a tenth of the noise. With `malicious`, natural records are replaced as in `malicious-dataset`. A score is what
    the noisy sum shows at one parameter in one step, less what natural records were expected to put there. It tells how
    much noise a step has; how steps add up is left to the accountant.
    """

    coordinates: int | None = None
    malicious: bool = False
    name: ClassVar[str] = "gradient-steps"
    summary: ClassVar[str] = "crafted gradients by coins in every step of one training (Nasr et al. 2023)"
    evidence_type = PerStep
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.EVERY_MODEL, (Controls.GRADIENTS,))

    def __post_init__(self) -> None:
        if self.coordinates is not None:
            validate.whole("coordinates", self.coordinates, least=1, most=MOST_CANARIES)
        if not isinstance(self.malicious, bool):
            raise InvalidInput("malicious", self.malicious, "true or false")

    @property
    def needs(self) -> ThreatModel:
        controls = (Controls.DATA, Controls.GRADIENTS) if self.malicious else (Controls.GRADIENTS,)
        return ThreatModel(Sees.EVERY_MODEL, controls)

    @property
    def requires(self) -> tuple[type[Capability], ...]:
        return (NoisySteps, KnowsRecipe) if self.malicious else (NoisySteps,)

    def scores_a_trial(self, subject: Subject) -> int | None:
        return None if self.coordinates is None else self._steps(subject).steps * self.coordinates

    def _steps(self, subject: Subject) -> NoisySteps:
        return subject.require(NoisySteps, self.name)

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        steps = self._steps(subject)
        if not steps.by_coins:
            raise InvalidInput("sampling", steps.sampling, "poisson or full: an accountant adds up the steps")
        chosen = subject.data
        if self.malicious:
            chosen = unlearnable(subject.require(KnowsRecipe, self.name).recipe, chosen, seed)
        places = self._places(steps, chosen, seed)
        return {"places": places, "x": chosen.x, "y": chosen.y} if self.malicious else {"places": places}

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        steps, places, absent = self._steps(subject), prepared["places"], absence(relation)
        data = malicious(subject.data, prepared) if self.malicious else subject.data

        def insert(coins: Coins, _: np.random.SeedSequence) -> Insertion:
            gradients = steps.clip_norm * np.where(coins, 1.0, absent).reshape(steps.steps, -1)

            def additions(step: int) -> Addition:
                return places, gradients[step]

            return Insertion(data, additions=additions)

        scores = steps.steps * len(places)
        return Game(relation, insert, lambda: _Steps(steps, data, places), scores=scores)

    def arranged(self, subject: Subject, evidence: PerStep, trials: int) -> PerStep:
        steps = self._steps(subject)
        middle = steps.clip_norm * (1.0 + absence(evidence.relation)) / 2
        return replace(evidence, steps=trials * steps.steps, middle=middle)

    def _places(self, steps: NoisySteps, data: Any, seed: np.random.SeedSequence) -> NDArray[np.int64]:
        moved = steps.natural_movement(data, seed)
        quiet = int(np.count_nonzero(moved <= QUIET * steps.noise_multiplier * steps.clip_norm))
        count = min(max(quiet, FEWEST), MOST, len(moved)) if self.coordinates is None else self.coordinates
        return quietest(moved, count)


class _Steps(Observer):
    stepwise = True

    def __init__(self, steps: NoisySteps, data: Any, places: NDArray[np.int64]) -> None:
        self._steps, self._data, self._places = steps, data, places
        self._seen = np.zeros((steps.steps, len(places)))

    def before(self, step: int, parameters: Array) -> None:
        self._seen[step] = -self._steps.expected_sum(self._data, parameters)[self._places]

    def observe(self, step: int, noisy_sum: Array, parameters: Array) -> bool:
        self._seen[step] += noisy_sum[self._places]
        return False

    def score(self) -> Floats:
        return self._seen.ravel()
