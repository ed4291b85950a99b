"""Per-step evidence from one training (Nasr et al. 2023): a crafted gradient in every step, or not, by a coin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer import checks
from epsilometer.adversaries.canaries import expected_gradient
from epsilometer.adversaries.game import Adversary, CanaryGame, CanaryWatcher
from epsilometer.adversaries.gradient import absence, natural_movement, quietest
from epsilometer.adversaries.malicious_dataset import unlearnable
from epsilometer.adversaries.powers import Controls, Sees, ThreatModel
from epsilometer.claims import Floats, Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.evidence import PerStep
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
    gives: ClassVar[type] = PerStep
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.EVERY_MODEL, (Controls.GRADIENTS,))

    def __post_init__(self) -> None:
        if self.coordinates is not None:
            checks.whole("coordinates", self.coordinates, least=1)
        if not isinstance(self.malicious, bool):
            raise InvalidInput("malicious", self.malicious, "true or false")

    @property
    def needs(self) -> ThreatModel:
        controls = (Controls.DATA, Controls.GRADIENTS) if self.malicious else (Controls.GRADIENTS,)
        return ThreatModel(Sees.EVERY_MODEL, controls)

    def craft(self, recipe: Recipe, data: Dataset, relation: Relation, seed: np.random.SeedSequence) -> CanaryGame:
        if not recipe.is_accounted:
            raise InvalidInput("sampling", recipe.sampling, "poisson or full: an accountant adds up the steps")
        chosen = unlearnable(recipe, data, seed) if self.malicious else data
        places = self._places(recipe, chosen, seed)
        absent = absence(relation)

        def watch(coins: NDArray[np.bool_], _: np.random.SeedSequence) -> CanaryWatcher:
            return _Steps(recipe, chosen, places, np.where(coins, 1.0, absent).reshape(recipe.steps, -1))

        return CanaryGame(recipe.steps * len(places), relation, lambda _: chosen, watch)

    def _places(self, recipe: Recipe, data: Dataset, seed: np.random.SeedSequence) -> NDArray[np.int64]:
        moved = natural_movement(recipe, data, seed)
        quiet = int(np.count_nonzero(moved <= QUIET * recipe.noise_multiplier * recipe.clip_norm))
        count = min(max(quiet, FEWEST), MOST, len(moved)) if self.coordinates is None else self.coordinates
        return quietest(moved, count)


class _Steps(CanaryWatcher):
    stepwise = True

    def __init__(self, recipe: Recipe, data: Dataset, places: NDArray[np.int64], inserted: Floats) -> None:
        self._network, self._recipe, self._data = network_for(recipe, data), recipe, data
        self._places, self._inserted = places, recipe.clip_norm * inserted
        self._seen = np.zeros(inserted.shape)

    def before(self, step: int, parameters: Array) -> None:
        natural = expected_gradient(self._network, self._recipe, self._data, parameters)
        self._seen[step] = -natural[self._places]

    def contribute(self, step: int, gradient_sum: Array) -> None:
        gradient_sum[self._places] += self._inserted[step].astype(gradient_sum.dtype)

    def observe(self, step: int, noisy_sum: Array, parameters: Array) -> bool:
        self._seen[step] += noisy_sum[self._places]
        return False

    def scores(self) -> Floats:
        return self._seen.ravel()
