"""Private principal components: noise on the covariance of normalised records (Dwork et al. 2014, "Analyze Gauss"), as
Abadi et al. (2016) put before a training."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from epsilometer import validate
from epsilometer.accounting import DpSgd, curve
from epsilometer.arrays import Floats
from epsilometer.claims import Claim, GaussianClaim
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms.gaussian import Gaussian
from epsilometer.mechanisms.mechanism import Mechanism
from epsilometer.mechanisms.sensitivity import UNIT, Sensitivity, numbers

_ROWS = 8192  # whose products are summed at once: all of them in double precision would take much memory


@dataclass(frozen=True)
class DpPca(Mechanism):
    """The first `components` eigenvectors (rows) of AᵀA + E, where A has every record scaled to norm 1.

    A record x adds xxᵀ, whose upper triangle is what is released with noise: Σᵢ xᵢ⁴ + Σᵢ<ⱼ xᵢ²xⱼ² ≤ (Σᵢ xᵢ²)² = 1, with
    equality for a unit vector. So the sensitivity is 1 in l2 when a record is added or removed, and E has normal noise
    of deviation `noise_multiplier` in that triangle, mirrored into the other; eigenvectors are post-processing. With a
    `sample_rate` below 1 every record is in A by a coin of its own. A value is a matrix of records, or the upper
    triangle (row by row) of a covariance itself.

    >>> pca = DpPca(components=1, noise_multiplier=2.0)
    >>> found = pca.release(np.tile([3.0, 4.0], (10_000, 1)), np.random.default_rng(0))
    >>> found.round(1).tolist()
    [[0.6, 0.8]]
    >>> pca.event
    GaussianDpEvent(noise_multiplier=2.0)
    """

    components: int
    noise_multiplier: float
    sample_rate: float = 1.0
    name: ClassVar[str] = "gaussian-pca"
    sensitivity: ClassVar[Sensitivity] = UNIT["l2"]  # type: ignore[misc]

    def __post_init__(self) -> None:
        validate.whole("components", self.components, least=1)
        validate.real("noise_multiplier", self.noise_multiplier, above=0)
        self._step  # noqa: B018  checks the sample rate

    @property
    def noise_std(self) -> float:
        return self.noise_multiplier * self.sensitivity.amount

    @property
    def _step(self) -> DpSgd:
        """As accountants see it: one noisy sum, of a sample or of all records."""
        return DpSgd(self.sample_rate, self.noise_multiplier, 1)

    @property
    def event(self) -> Any:
        """For accountants, who compose it with whatever is done with the components."""
        return self._step.event

    @property
    def claim(self) -> Claim:
        return GaussianClaim(1.0 / self.noise_multiplier) if self.sample_rate == 1 else curve(self._step)

    def describe(self) -> str:
        sampled = "" if self.sample_rate == 1 else f", q = {self.sample_rate:g}"
        many = "s" if self.components > 1 else ""
        return f"private PCA ({self.components} component{many}, σ = {self.noise_multiplier:.4g}{sampled})"

    def accept(self, value: ArrayLike) -> Floats:
        """The upper triangle of the covariance, row by row."""
        found = numbers("records", value)
        features = found.shape[1] if found.ndim == 2 else _side(found)
        if self.components > features:
            raise InvalidInput("components", self.components, f"at most the {features} features of the records")
        return self._triangle(found) if found.ndim == 2 else found

    def release(self, value: Any, rng: np.random.Generator, size: int | None = None) -> Any:
        """Components, one a row; or `size` times that along a first axis, of a sample each."""
        if self.sample_rate == 1:
            return super().release(value, rng, size)
        records = numbers("records", value)
        if records.ndim != 2:
            raise InvalidInput("records", f"shape {records.shape}", "a matrix of records, of which a sample is drawn")
        count = 1 if size is None else validate.whole("size", size, least=1)
        coins = (rng.random(len(records)) < self.sample_rate for _ in range(count))
        found = np.concatenate([self._releases(self.accept(records[chosen]), rng, 1) for chosen in coins])
        return found[0] if size is None else found

    def noisy_covariances(self, triangle: Floats, rng: np.random.Generator, size: int) -> Floats:
        """What components are taken from, and as private as they are: so many symmetric matrices."""
        noisy = Gaussian(self.noise_std).release(triangle, rng, size)
        features = _side(triangle)
        above = np.triu_indices(features)
        whole = np.empty((size, features, features))
        whole[:, above[0], above[1]] = noisy
        whole[:, above[1], above[0]] = noisy
        return whole

    def _triangle(self, records: Floats) -> Floats:
        features = records.shape[1]
        covariance = np.zeros((features, features))
        for begin in range(0, len(records), _ROWS):
            rows = normalised(records[begin : begin + _ROWS])
            covariance += rows.T @ rows
        return covariance[np.triu_indices(features)]

    def _releases(self, value: Floats, rng: np.random.Generator, size: int) -> Floats:
        _, vectors = np.linalg.eigh(self.noisy_covariances(value, rng, size))  # columns, by rising eigenvalues
        rows = vectors[..., ::-1][..., : self.components].swapaxes(-1, -2)
        largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=-1, keepdims=True), -1)
        found: Floats = rows * np.where(largest < 0, -1.0, 1.0)  # an eigenvector has no sign of its own
        return found


def normalised(records: Floats) -> Floats:
    """Rows of norm 1; rows of zeros stay what they are."""
    norms = np.linalg.norm(records, axis=1, keepdims=True)
    scaled: Floats = records / np.where(norms > 0, norms, 1.0)
    return scaled


def _side(triangle: Floats) -> int:
    """The side of a matrix with this upper triangle."""
    side = (math.isqrt(8 * triangle.size + 1) - 1) // 2
    if triangle.ndim != 1 or not triangle.size or side * (side + 1) // 2 != triangle.size:
        expected = "a matrix of records, or an upper triangle of 1, 3, 6, 10, … entries"
        raise InvalidInput("records", f"shape {triangle.shape}", expected)
    return side
