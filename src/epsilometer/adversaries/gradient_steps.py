"""Per-step evidence from one training (Nasr et al. 2023): a crafted gradient in every step, or not, by a coin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.adversaries.canaries import expected_gradient
from epsilometer.adversaries.game import Adversary, Game, Prepared
from epsilometer.adversaries.gradient import absence, natural_movement, quietest
from epsilometer.adversaries.malicious_dataset import malicious, unlearnable
from epsilometer.bounds import MOST_CANARIES
from epsilometer.claims import Floats, Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Coins, PerStep
from epsilometer.subjects import Controls, Insertion, Observer, Sees, Subject, ThreatModel, own_training
from epsilometer.subjects.subject import Addition
from epsilometer.training import Array, Recipe, network_for

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

    def scores_a_trial(self, subject: Subject) -> int | None:
        return None if self.coordinates is None else own_training(subject).recipe.steps * self.coordinates

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        recipe = own_training(subject).recipe
        if not recipe.is_accounted:
            raise InvalidInput("sampling", recipe.sampling, "poisson or full: an accountant adds up the steps")
        chosen = unlearnable(recipe, subject.data, seed) if self.malicious else subject.data
        places = self._places(recipe, chosen, seed)
        return {"places": places, "x": chosen.x, "y": chosen.y} if self.malicious else {"places": places}

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        recipe, places, absent = own_training(subject).recipe, prepared["places"], absence(relation)
        data = malicious(subject.data, prepared) if self.malicious else subject.data

        def insert(coins: Coins, _: np.random.SeedSequence) -> Insertion:
            gradients = recipe.clip_norm * np.where(coins, 1.0, absent).reshape(recipe.steps, -1)

            def additions(step: int) -> Addition:
                return places, gradients[step]

            return Insertion(data, additions=additions)

        scores = recipe.steps * len(places)
        return Game(relation, insert, lambda: _Steps(recipe, data, places), scores=scores)

    def arranged(self, subject: Subject, evidence: PerStep, trials: int) -> PerStep:
        recipe = own_training(subject).recipe
        middle = recipe.clip_norm * (1.0 + absence(evidence.relation)) / 2
        return replace(evidence, steps=trials * recipe.steps, middle=middle)

    def _places(self, recipe: Recipe, data: Dataset, seed: np.random.SeedSequence) -> NDArray[np.int64]:
        moved = natural_movement(recipe, data, seed)
        quiet = int(np.count_nonzero(moved <= QUIET * recipe.noise_multiplier * recipe.clip_norm))
        count = min(max(quiet, FEWEST), MOST, len(moved)) if self.coordinates is None else self.coordinates
        return quietest(moved, count)


class _Steps(Observer):
    stepwise = True

    def __init__(self, recipe: Recipe, data: Dataset, places: NDArray[np.int64]) -> None:
        self._network, self._recipe, self._data = network_for(recipe, data), recipe, data
        self._places = places
        self._seen = np.zeros((recipe.steps, len(places)))

    def before(self, step: int, parameters: Array) -> None:
        natural = expected_gradient(self._network, self._recipe, self._data, parameters)
        self._seen[step] = -natural[self._places]

    def observe(self, step: int, noisy_sum: Array, parameters: Array) -> bool:
        self._seen[step] += noisy_sum[self._places]
        return False

    def score(self) -> Floats:
        return self._seen.ravel()
