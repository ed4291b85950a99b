"""DP-SGD for Lipschitz losses (Bassily, Smith & Thakurta 2014): one uniform record a step, normal noise, a projection.

θ ← Π(θ − γ_t(∇L(θ; x_i, y_i) + λθ + N(0, σ²))), i uniform, Π on the ball of radius R; the last θ is released.

The course's σ = 16L√(T ln(2/δ) ln(2.5T/(δn)))/(nε) comes from three steps: with δ₀ = δn/(2T) a step on a known record
is (ε₀, δ₀)-DP, ε₀ = 2L√(2 ln(1.25/δ₀))/σ; as one of n records it is (2ε₀/n, δ₀/n)-DP; T of those compose. **The first
two need ε₀ ≤ 1**, which the course does not say and which holds for T ≥ (nε)²/(32 ln(2/δ)) only (Bassily et al. have T
= n²): one step on 1000 records with ε = 1 would have σ = 0.13·L, and show each thousandth time whose gradient it was.
So the noise here is at least the σ for which ε₀ = 1; more noise than the formula's promises no less.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.mechanisms.erm.draws import Draws
from epsilometer.mechanisms.erm.flaws import SOUND, Flaws
from epsilometer.mechanisms.erm.mechanism import PrivateErm, require_lipschitz

CALIBRATIONS = ("bassily", "rdp")
PRECISION = 1e-3  # of the noise that RDP needs
ORDERS = (*range(2, 25), 28, 32, 40, 48, 64, 96, 128, 257, 320, 400, 512)  # any choice gives a proof; more take long


@dataclass(frozen=True)
class LipschitzSgd(PrivateErm):
    """`calibration` "bassily" is the formula above, for ε ≤ 1; "rdp" is the least noise with which Rényi accounting of
    sampling without replacement (Wang, Balle & Kasiviswanathan 2019) promises (ε, δ), for all ε.

    >>> from epsilometer.mechanisms.erm import Logistic, Problem
    >>> private = LipschitzSgd(Problem(Logistic(), 0.0), epsilon=1.0, delta=1e-5, steps=10_000)
    >>> round(private.noise_std(100), 2), round(private.formula(100), 2)
    (230.71, 230.71)
    """

    steps: int = 1000
    radius: float = 1.0
    calibration: str = "bassily"
    name: ClassVar[str] = "DP-SGD for Lipschitz losses"

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.real("delta", self.delta, above=0, below=1, remedy="normal noise has no ε at δ = 0; try 1e-5")
        validate.whole("steps", self.steps, least=1, most=10**9)
        validate.real("radius", self.radius, above=0, below=1e100, remedy="models are projected on a ball around 0")
        if self.calibration not in CALIBRATIONS:
            raise unknown_name("calibration", self.calibration, CALIBRATIONS)
        if self.calibration == "bassily" and self.epsilon > 1:
            remedy = "use calibration = 'rdp' for more"
            raise InvalidInput("epsilon", self.epsilon, "at most 1, for which this noise is proved", remedy)
        _ = self._lipschitz

    @property
    def _lipschitz(self) -> float:
        return require_lipschitz(self.problem, self.radius, "state target_norm; huber needs none")

    def formula(self, records: int) -> float:
        """σ as the course has it, whether or not its proof holds for so few steps."""
        n, T = validate.whole("records", records, least=1), self.steps
        logarithms = math.log(2.0 / self.delta) * self._inner_logarithm(n)
        return 16.0 * self._lipschitz * math.sqrt(T * logarithms) / (n * self.epsilon)

    def _inner_logarithm(self, records: int) -> float:
        ratio = 2.5 * self.steps / (self.delta * records)
        if ratio <= math.e:
            least = math.ceil(math.e * self.delta * records / 2.5)
            raise InvalidInput("steps", self.steps, f"at least {least} for {records} records and this delta")
        return math.log(ratio)

    def noise_std(self, records: int) -> float:
        """σ: of the noise on each coordinate of a step's gradient."""
        if self.calibration == "rdp":
            return 2.0 * self._lipschitz * _least_noise(records, self.steps, self.epsilon, self.delta)
        known = 2.0 * self._lipschitz * math.sqrt(2.0 * self._inner_logarithm(records))  # ε₀ = 1
        return max(self.formula(records), known)

    def accounted(self, records: int) -> float:
        """ε at δ of this noise by Rényi accounting: what is really promised."""
        return accounted_epsilon(records, self.noise_std(records) / (2.0 * self._lipschitz), self.steps, self.delta)

    def releases(self, x: ArrayLike, y: ArrayLike, draws: Draws, flaws: Flaws = SOUND) -> Floats:
        """All releases make their steps together.

        >>> from epsilometer.mechanisms.erm import GeneratorDraws, Huber, Problem
        >>> private = LipschitzSgd(Problem(Huber(), 0.0), epsilon=1.0, delta=1e-5, steps=10)
        >>> private.releases([[1.0, 0.0]], [0.5], GeneratorDraws(np.random.default_rng(0), 3)).shape
        (3, 2)
        """
        rows, targets = self.problem.bounded(x, y, clip=not flaws.unclipped)
        n, features = rows.shape
        sigma = self.noise_std(n)
        penalty = self._penalty(features, self.problem.regularisation, flaws)
        models = np.zeros((draws.count, features))
        # Bassily et al. 2014: the radius over the root of the expected squared norm of what is followed.
        pace = 2.0 * self.radius / math.sqrt(self._lipschitz**2 + features * sigma**2)
        for step in range(self.steps):
            normals = draws.normals(step, features + 1)
            chosen = np.minimum((n * special.ndtr(normals[:, -1])).astype(np.int64), n - 1)
            picked = rows[chosen]
            slopes = self.problem.loss.slope((models * picked).sum(axis=1), targets[chosen])
            gradients = slopes[:, None] * picked + penalty * models + flaws.noise_scale * sigma * normals[:, :-1]
            models = models - pace / math.sqrt(step + 1.0) * gradients
            norms = np.linalg.norm(models, axis=1, keepdims=True)
            models *= self.radius / np.maximum(norms, self.radius)
        return models

    def describe(self, records: int) -> str:
        return f"{self.name}, {self.steps} steps, noise {self.noise_std(records):.4g} on gradients"

    def settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("epsilon", "delta", "steps", "radius", "calibration")}


def accounted_epsilon(records: int, noise_multiplier: float, steps: int, delta: float) -> float:
    """ε of `steps` normal releases of one record in `records`, drawn anew each time, where one record is replaced;
    noise in units of how far that moves a gradient."""
    import dp_accounting
    from dp_accounting import rdp

    step = dp_accounting.GaussianDpEvent(noise_multiplier)
    if records > 1:
        step = dp_accounting.SampledWithoutReplacementDpEvent(records, 1, step)
    accountant = rdp.RdpAccountant(ORDERS, dp_accounting.NeighboringRelation.REPLACE_ONE)
    return float(accountant.compose(step, steps).get_epsilon(delta))


@functools.lru_cache(maxsize=256)
def _least_noise(records: int, steps: int, epsilon: float, delta: float) -> float:
    """In units of how far one record moves a gradient; from above, so that the promise holds."""
    low, high = 0.0, 1.0
    while accounted_epsilon(records, high, steps, delta) > epsilon:
        low, high = high, 2.0 * high
        if high > 1e12:
            raise InvalidInput("epsilon", epsilon, "one that some noise keeps", "use fewer steps")
    while high - low > PRECISION * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if accounted_epsilon(records, middle, steps, delta) <= epsilon else (middle, high)
    return high
