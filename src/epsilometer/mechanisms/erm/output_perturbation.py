"""Output perturbation (Chaudhuri, Monteleoni & Sarwate 2011, Algorithm 1): the optimum, and noise on it.

If the loss of a record is convex and L-Lipschitz in θ and λ > 0, replacing one of n records moves the optimum by
2L/(nλ) at most: two optima of λ-strongly convex functions are no further apart than (1/λ)·‖∇ of the difference‖ **at
one of the optima**. That last bit lets squared loss in, which is Lipschitz nowhere but where optima can be: within
√(2F(0)/λ) of 0.

A solver does not find the optimum. A model whose gradient has norm g at most is within g/λ of it, so two of them are
2L/(nλ) + 2g/λ apart at most. Or gradient descent of exactly T steps of size η = 1/smoothness from 0: a step takes two
models closer by 1 − ηλ and then adds 2Lη/n at most, so that 2Lη/n·Σ_{k<T}(1 − ηλ)^k bounds them, which is less than
2L/(nλ), and finite for λ = 0 (as in Zhang et al. 2017, who have the convex case).

δ > 0: normal noise; δ = 0: noise with density ∝ e^{−ε‖b‖/Δ}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.claims import Claim, GaussianClaim
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.mechanisms.erm.draws import Draws, long_tailed
from epsilometer.mechanisms.erm.flaws import SOUND, Flaws
from epsilometer.mechanisms.erm.mechanism import KnownLeak, PrivateErm, require_convexity, require_lipschitz
from epsilometer.mechanisms.erm.solvers import Risk, descended, optimum

if TYPE_CHECKING:
    from epsilometer.mechanisms.erm.worst_case import Neighbours

CALIBRATIONS = ("analytic", "classic")
SOLVERS = ("newton", "gradient-descent")


@dataclass(frozen=True)
class OutputPerturbation(PrivateErm):
    """`calibration` turns a sensitivity Δ into normal noise: "analytic" is the least that keeps (ε, δ) (Balle & Wang
    2018); "classic" is √(2 ln(1.25/δ))·Δ/ε, refused where it does not keep ε (it is proved for ε ≤ 1). `solver`
    "newton" goes on until the gradient is at most `tolerance`·L; "gradient-descent" makes `steps` steps.

    The course's σ = 2√(2 ln(1.25/δ))/(nλε), for ‖x‖ ≤ 1 and a 1-Lipschitz loss:

    >>> from epsilometer.mechanisms.erm import Logistic, Problem
    >>> course = OutputPerturbation(Problem(Logistic(), 0.01), epsilon=0.5, delta=1e-5, calibration="classic")
    >>> round(course.sensitivity(1000), 6), round(course.noise_std(1000), 4)
    (0.2, 1.9379)
    >>> round(2 * math.sqrt(2 * math.log(1.25 / 1e-5)) / (1000 * 0.01 * 0.5), 4)
    1.9379
    """

    delta: float = 0.0
    calibration: str = "analytic"
    solver: str = "newton"
    tolerance: float = 1e-10
    steps: int | None = None
    name: ClassVar[str] = "output perturbation"

    def __post_init__(self) -> None:
        super().__post_init__()
        for argument, valid in (("calibration", CALIBRATIONS), ("solver", SOLVERS)):
            if getattr(self, argument) not in valid:
                raise unknown_name(argument, getattr(self, argument), valid)
        if self.solver == "newton":
            remedy = "without it the optimum has no finite sensitivity; solver = 'gradient-descent' allows 0"
            require_convexity(self.problem, remedy)
            remedy = "the part of the steepest gradient at which the solver stops"
            validate.real("tolerance", self.tolerance, above=0, below=1, remedy=remedy)
        else:
            validate.whole("steps", self.steps, least=1, remedy="how long gradient descent is, whatever the data")
        _ = self._lipschitz
        if self.delta and self.calibration == "classic":
            kept = GaussianClaim(self.epsilon / self._classic).epsilon_at(self.delta)
            if kept > self.epsilon:
                remedy = f"the noise would keep only {kept:.4g}; use calibration = 'analytic'"
                raise InvalidInput("epsilon", self.epsilon, "at most 1 for the classic calibration", remedy)

    @property
    def _classic(self) -> float:
        return math.sqrt(2.0 * math.log(1.25 / self.delta))

    @property
    def _lipschitz(self) -> float:
        remedy = "state target_norm, and regularise; huber needs neither"
        return require_lipschitz(self.problem, self.problem.optimum_norm(), remedy)

    @property
    def _step_size(self) -> float:
        return 1.0 / (self.problem.smoothness + self.problem.regularisation)

    def sensitivity(self, records: int) -> float:
        """How far the solver's model can move if one of so many records has another value."""
        n = validate.whole("records", records, least=1)
        if self.solver == "newton":
            return (2.0 / n + 2.0 * self.tolerance) * self._lipschitz / self.problem.regularisation
        assert self.steps is not None
        kept = self._step_size * self.problem.regularisation  # below 1
        total = self.steps if kept == 0 else -math.expm1(self.steps * math.log1p(-kept)) / kept
        return 2.0 * self._lipschitz * self._step_size * total / n

    def noise_std(self, records: int) -> float:
        """The standard deviation of normal noise on each coefficient; or, for δ = 0, the scale Δ/ε of the other."""
        moved = self.sensitivity(records)
        if not self.delta:
            return moved / self.epsilon
        if self.calibration == "classic":
            return self._classic * moved / self.epsilon
        return moved / GaussianClaim.through(self.epsilon, self.delta).mu

    def curve(self, records: int) -> Claim:
        """All that the noise promises: the whole curve of normal noise, which says more than (ε, δ)."""
        if not self.delta:
            return self.claim
        return GaussianClaim(self.sensitivity(records) / self.noise_std(records), self.relation)

    def noise_multiplier(self, records: int) -> float | None:
        return 2.0 * self.noise_std(records) / self.sensitivity(records) if self.delta else None

    def known_leak(self, pair: Neighbours, flaws: Flaws = SOUND) -> KnownLeak:
        n = len(pair.x)
        apart = float(np.linalg.norm(self.fit(pair.x, pair.y, flaws) - self.fit(*pair.replaced(), flaws)))
        felt = apart / flaws.noise_scale if flaws.noise_scale else np.inf
        return KnownLeak(self.epsilon_of(felt, n), apart, self.sensitivity(n))

    def epsilon_of(self, separation: float, records: int) -> float:
        """The exact ε (at δ) of two worlds whose models lie so far apart."""
        ratio = validate.real("separation", separation, above=0, closed="[") / self.noise_std(records)
        return GaussianClaim(ratio).epsilon_at(self.delta) if self.delta else ratio

    def fit(self, x: ArrayLike, y: ArrayLike, flaws: Flaws = SOUND) -> Floats:
        """The solver's model, without noise: not private."""
        rows, targets = self.problem.bounded(x, y, clip=not flaws.unclipped)
        penalty = self._penalty(rows.shape[1], self.problem.regularisation, flaws)
        risk = Risk.of(self.problem.loss, rows, targets, penalty)
        if self.solver == "newton":
            model: Floats = optimum(risk, self.tolerance * self._lipschitz)[0]
        else:
            assert self.steps is not None
            model = descended(risk, self._step_size, self.steps)[0]
        return model

    def releases(self, x: ArrayLike, y: ArrayLike, draws: Draws, flaws: Flaws = SOUND) -> Floats:
        """The model is found once for all.

        >>> from epsilometer.mechanisms.erm import GeneratorDraws, Huber, Problem
        >>> private = OutputPerturbation(Problem(Huber(), 1.0), epsilon=1.0)
        >>> private.releases([[1.0, 0.0]], [0.5], GeneratorDraws(np.random.default_rng(0), 3)).shape
        (3, 2)
        """
        model = self.fit(x, y, flaws)
        noise = draws.normals(0, len(model)) if self.delta else long_tailed(draws.normals(0, len(model) + 1))
        return model + flaws.noise_scale * self.noise_std(np.shape(x)[0]) * noise

    def describe(self, records: int) -> str:
        kind = "normal noise of std" if self.delta else "noise of scale"
        moved = f"for a sensitivity of {self.sensitivity(records):.4g}"
        return f"{self.name}, {kind} {self.noise_std(records):.4g} {moved}"

    def settings(self) -> dict[str, Any]:
        names = ("epsilon", "delta", "calibration", "solver", "tolerance", "steps")
        return {name: getattr(self, name) for name in names}
