"""Student-t noise: what releases of Poisson samples promise, in any number of dimensions.

Spherical Student-t noise with ν degrees of freedom and scale s is normal noise whose variance was drawn first: s²·W
with W = ν/χ²_ν, once for all entries. W has nothing to do with the data. Whoever is told W as well sees no less, and
for them every release is Gaussian with noise multiplier σ√W. So δ(ε) is at most the mean over W of δ(ε) of Gaussian
noise, for a change of length C or less in any direction. The more entries there are, the better W is seen in the noise
itself, and the less this gives away. It is not what Gaussian noise of the same variance promises: W may be small.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.claims import CurveClaim
from epsilometer.errors import InvalidInput
from epsilometer.neighbours import AnyNeighbours, Neighbours, Relation

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

BIN = 1e-3  # of a privacy loss
NEAR, APART = 3.0, 1.005  # losses beyond which bins are wider, each by so much farther out
TAIL = 1e-15  # of W, and of losses: counted as if everything were told there
EVEN, FINE = 200, 200  # bins of W: of equal probability, and then smaller and smaller towards little noise
LARGEST = 200.0  # ε that is looked at


@dataclass(frozen=True)
class StudentDpSgd:
    """DP-SGD with Student-t noise: `steps` releases of Poisson samples, with noise of scale σ·C on sums of gradients
    that were clipped to norm C; `freedom` is ν. Many degrees of freedom are Gaussian noise.

    >>> [round(StudentDpSgd(1.0, 2.0, 1, freedom).epsilon(1e-5), 2) for freedom in (5.0, 1e6)]
    [3.1, 1.99]
    """

    sample_rate: float
    noise_multiplier: float
    steps: int
    freedom: float

    def __post_init__(self) -> None:
        validate.real("sample_rate", self.sample_rate, above=1e-6, below=1, closed="[]", remedy="batch size / records")
        validate.real("noise_multiplier", self.noise_multiplier, above=0.1, below=1e4, closed="[]")
        validate.whole("steps", self.steps, least=1, most=10**6)
        validate.real("freedom", self.freedom, above=1, below=1e9, closed="[]", remedy="ν, such as 5")

    def delta(self, epsilon: float) -> float:
        """δ at ε of one step, in the worse order of the worlds."""
        step = np.array([validate.epsilon(epsilon)])
        return float(max(_deltas(self, step, adds)[0] for adds in (False, True)))

    def epsilon(self, delta: float) -> float:
        """ε at δ of all steps, add-remove or zero-out, by privacy loss distributions."""
        allowed = validate.delta(delta) - self._round_off
        return max(0.0, float(_distribution(self).get_epsilon_for_delta(allowed))) if allowed > 0 else math.inf

    def pure_epsilon(self, entries: int) -> float:
        """ε at δ = 0 of all steps, for vectors of d entries: no loss is over (ν + d)·arsinh(1/(2σ√ν)) in a release.

        The ratio of densities is ((1 + ‖z − μ‖²/ν)/(1 + ‖z‖²/ν))^{(ν + d)/2} in units of the scale. It is largest where
        z is on the line of μ, with ‖z‖·(‖z‖ + ‖μ‖) = ν, and grows with ‖μ‖, which is 1/σ at most.
        """
        validate.whole("entries", entries, least=1)
        single = (self.freedom + entries) * math.asinh(0.5 / (self.noise_multiplier * math.sqrt(self.freedom)))
        sampled = single if single > LARGEST else math.log1p(self.sample_rate * math.expm1(single))
        return self.steps * sampled

    def claim(self, relation: AnyNeighbours = Relation.ADD_REMOVE, points: int = 300) -> CurveClaim:
        """The whole curve of all steps."""
        largest = min(max(1e-2, self.epsilon(max(1e-10, 10 * self._round_off))), LARGEST)
        few = points // 4  # most points evenly, some towards 0
        epsilons = np.unique(np.concatenate([np.linspace(0.0, largest, points), np.geomspace(1e-3, largest, few)]))
        deltas = np.asarray(_distribution(self).get_delta_for_epsilon(epsilons)) + self._round_off
        said = Neighbours.of(relation)
        if said.relation is Relation.REPLACE:
            raise InvalidInput("relation", said.relation.value, "add-remove or zero-out, for which the proof is")
        found = tuple(epsilons.tolist()), tuple(np.clip(deltas, 0.0, 1.0).tolist())
        return CurveClaim(*found, said.relation, self.describe(), said.unit)

    @property
    def _round_off(self) -> float:
        """More than what the transforms of a composition can lose of δ."""
        return max(1e-12, 2e-15 * self.steps)

    def describe(self) -> str:
        q, sigma = f"{self.sample_rate:.4g}", f"{self.noise_multiplier:.4g}"
        return f"DP-SGD with Student-t noise(q = {q}, σ = {sigma}, ν = {self.freedom:g}, T = {self.steps})"

    def to_dict(self) -> dict[str, Any]:
        return {
            "sample_rate": self.sample_rate,
            "noise_multiplier": self.noise_multiplier,
            "steps": self.steps,
            "freedom": self.freedom,
        }


@functools.lru_cache(maxsize=64)
def _scales(freedom: float) -> tuple[Floats, Floats]:
    """√W in bins, as the least of each, and their probabilities; what is missing to 1 has less noise than any."""
    above = np.concatenate([np.linspace(1.0, 1.0 / EVEN, EVEN), np.geomspace(1.0 / EVEN, TAIL, FINE)[1:]])
    largest = special.chdtri(freedom, above[1:]) / freedom  # of 1/W
    return 1.0 / np.sqrt(largest), -np.diff(above)


def _deltas(mechanism: StudentDpSgd, epsilons: Floats, adds: bool) -> Floats:
    """δ of one step at each ε, which may be negative: of the world with the record against that without, or (`adds`)
    the other way round."""
    total = np.full(len(epsilons), TAIL)
    for scale, share in zip(*_scales(mechanism.freedom), strict=True):
        total += share * _gaussian_deltas(mechanism.noise_multiplier * scale, mechanism.sample_rate, epsilons, adds)
    found: Floats = np.clip(total, 0.0, 1.0)
    return found


def _gaussian_deltas(sigma: float, rate: float, epsilons: Floats, adds: bool) -> Floats:
    """The same for a Poisson sample with normal noise. The loss rises along the direction of the record's gradient, so
    the worst event is a half-space, x beyond the place where the loss is ε."""
    worst = np.exp(epsilons)
    ratio = np.exp(-epsilons if adds else epsilons)
    with np.errstate(divide="ignore", invalid="ignore"):
        place = 0.5 + sigma**2 * np.log((ratio - (1.0 - rate)) / rate)
    place = np.where(ratio <= 1.0 - rate, -np.inf, place)  # the loss is nowhere as small
    side = 1.0 if adds else -1.0
    without = special.ndtr(side * place / sigma)
    record = special.ndtr(side * (place - 1.0) / sigma)
    with_record = (1.0 - rate) * without + rate * record
    found: Floats = without - worst * with_record if adds else with_record - worst * without
    return np.maximum(found, 0.0)


@functools.lru_cache(maxsize=32)
def _distribution(mechanism: StudentDpSgd) -> PrivacyLossDistribution:
    from dp_accounting.pld import pld_pmf  # half a second: only when it is needed
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    largest = 1.0
    while largest < LARGEST and _deltas(mechanism, np.array([largest]), False)[0] > 2.0 * TAIL:
        largest *= 1.25
    near = np.arange(1, math.ceil(NEAR / BIN))
    far = NEAR / BIN * APART ** np.arange(1, math.ceil(math.log(max(largest / NEAR, APART)) / math.log(APART)) + 1)
    beyond = np.unique(np.concatenate([near, np.ceil(far).astype(np.int64)]))
    places = np.concatenate([-beyond[::-1], [0], beyond])
    parts = []
    for adds in (False, True):
        deltas = np.minimum.accumulate(
            _deltas(mechanism, np.asarray(places * BIN, np.float64), adds)
        )  # as it must be, but for rounding
        parts.append(pld_pmf.create_pmf_pessimistic_connect_dots(BIN, places, deltas).to_dense_pmf())
    return PrivacyLossDistribution(*parts).self_compose(mechanism.steps)
