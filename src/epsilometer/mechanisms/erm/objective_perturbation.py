"""Objective perturbation (Chaudhuri, Monteleoni & Sarwate 2011, Algorithm 2): a random linear term in the objective.

The optimum of F(θ) + b·θ/n + ½Δ‖θ‖² is released, b with density ∝ e^{−ε'‖b‖/(2L)}. With c·B² =: S the largest
curvature of a record's loss, ε' = ε − 2 ln(1 + S/(nλ)), which pays for how b and θ stretch each other; if nothing is
left, ε' = ε/2 and as much regularisation Δ is added as makes the logarithm's part the other half: Δ = S/(n(e^{ε/4} −
1)) − λ. δ = 0.

Their theorem has a loss with two derivatives. The smoothed hinge and Huber's loss have a second derivative but at two
points: b is then a Lipschitz function of θ with a Lipschitz inverse, for which densities change by the same
determinant almost everywhere (they use it for the smoothed hinge too). The proof is about the optimum itself; the
solver goes on until the gradient is 1e-12 of the steepest one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms.erm.draws import Draws, long_tailed
from epsilometer.mechanisms.erm.flaws import SOUND, Flaws
from epsilometer.mechanisms.erm.mechanism import PrivateErm, require_convexity, require_lipschitz
from epsilometer.mechanisms.erm.solvers import Risk, optimum

TOLERANCE = 1e-12


@dataclass(frozen=True)
class ObjectivePerturbation(PrivateErm):
    """Where the condition on λ holds (first line) and where not (second): ε for b, and the Δ that is added.

    >>> from epsilometer.mechanisms.erm import Logistic, Problem
    >>> private = ObjectivePerturbation(Problem(Logistic(), 0.01), epsilon=1.0)
    >>> [round(number, 4) for number in private.split(1000)]
    [0.9506, 0.0]
    >>> [round(number, 4) for number in private.split(10)]
    [0.5, 0.078]
    """

    delta: float = 0.0
    name: ClassVar[str] = "objective perturbation"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta:
            raise InvalidInput("delta", self.delta, "0: this mechanism needs no more", "its promise holds for every δ")
        require_convexity(self.problem, "its condition is 2 ln(1 + c/(nλ)) < ε")
        _ = self._lipschitz

    @property
    def _lipschitz(self) -> float:
        return require_lipschitz(self.problem, math.inf, "squared loss is steep somewhere; use huber")

    def split(self, records: int) -> tuple[float, float]:
        """ε' for the noise, and the regularisation Δ that is added."""
        n = validate.whole("records", records, least=1)
        curved, penalty = self.problem.smoothness / n, self.problem.regularisation
        left = self.epsilon - 2.0 * math.log1p(curved / penalty)
        if left > 0:
            return left, 0.0
        return self.epsilon / 2.0, curved / math.expm1(self.epsilon / 4.0) - penalty

    def noise_scale(self, records: int) -> float:
        """2L/ε': b is this times a vector of density ∝ e^{−‖b‖}."""
        return 2.0 * self._lipschitz / self.split(records)[0]

    def releases(self, x: ArrayLike, y: ArrayLike, draws: Draws, flaws: Flaws = SOUND) -> Floats:
        """One objective a release.

        >>> from epsilometer.mechanisms.erm import GeneratorDraws, Huber, Problem
        >>> private = ObjectivePerturbation(Problem(Huber(), 1.0), epsilon=1.0)
        >>> import numpy as np
        >>> private.releases([[1.0, 0.0]], [0.5], GeneratorDraws(np.random.default_rng(0), 3)).shape
        (3, 2)
        """
        rows, targets = self.problem.bounded(x, y, clip=not flaws.unclipped)
        n, features = rows.shape
        penalty = self._penalty(features, self.problem.regularisation + self.split(n)[1], flaws)
        b = flaws.noise_scale * self.noise_scale(n) * long_tailed(draws.normals(0, features + 1))
        return optimum(Risk.of(self.problem.loss, rows, targets, penalty, linear=b / n), TOLERANCE * self._lipschitz)

    def describe(self, records: int) -> str:
        left, more = self.split(records)
        added = f", regularisation {more:.4g} added" if more else ""
        return f"{self.name}, ε' = {left:.4g} for a linear term of scale {self.noise_scale(records):.4g}{added}"

    def settings(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon}
