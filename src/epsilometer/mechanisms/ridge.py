"""Ridge regression with output perturbation (Jagielski et al. 2020, Appendix B), and how far a record moves it.

The objective is a *sum*, ½Σ(x·w − y)² + ½λ‖w‖², with ‖x‖ ≤ 1 and |y| ≤ 1 (without both halves it is the same). Write
A = XᵀX + λI and w = A⁻¹Xᵀy for n records. **Adding** (x, y) moves the optimum by exactly

    B⁻¹x·(y − x·w),  B = A + xxᵀ,  and  ‖B⁻¹x‖² ≤ xᵀB⁻¹x/λ ≤ 1/(λ(λ + 1)),

because B ≥ λI and xᵀB⁻¹x = a/(1 + a) with a = xᵀA⁻¹x ≤ 1/λ. The residual is at most 1 + ‖w‖, which is *not* bounded for
all data sets: ‖w‖ ≤ √n·max s/(s² + λ) over 0 ≤ s ≤ √n, which is √(n/λ)/2 where n ≥ λ. So the sensitivity is at most

    (1 + ‖w‖)/√(λ(λ + 1)) < (1 + ‖w‖)/λ.

The paper's 2/λ is the case ‖w‖ ≤ 1. It holds under **add-remove** for data sets of up to 4λ + 1 records, and is false
without a limit: the distance grows as √n, and counterexamples begin near 15λ records for large λ. Under **replace**,
where (2 + ‖w‖)/λ holds, it is false already with fewer than λ records. (tests/mechanisms has them.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.bounded_records import bounded_records
from epsilometer.claims import GaussianClaim, Relation
from epsilometer.errors import InvalidInput, unknown_name

CALIBRATIONS = ("classic", "analytic")


@dataclass(frozen=True)
class PrivateRidge:
    """Ridge regression with Gaussian noise on the optimum.

    `records` is a public limit on the size of data sets; with it the sensitivity is proved, without it, it is the
    paper's 2/λ. `calibration` turns the sensitivity Δ into noise: "classic" is √(2 ln(1.25/δ))·Δ/ε as in the paper,
    proved for ε ≤ 1 only (at δ = 1e-5 it still keeps ε = 8, but gives 10.39 for ε = 10); "analytic" is the least noise
    that keeps (ε, δ), for all ε (Balle & Wang 2018).

    >>> paper = PrivateRidge(regularisation=100, epsilon=1, delta=1e-5)
    >>> paper.sensitivity, round(paper.noise_std, 4)
    (0.02, 0.0969)
    >>> proved = PrivateRidge(regularisation=100, epsilon=1, delta=1e-5, records=200, calibration="analytic")
    >>> round(proved.sensitivity, 4), round(proved.noise_std, 4)
    (0.017, 0.0633)
    """

    regularisation: float
    epsilon: float
    delta: float
    records: int | None = None
    calibration: str = "classic"
    relation: ClassVar[Relation] = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        _require_regularisation(self.regularisation)
        validate.real("epsilon", self.epsilon, above=0)
        remedy = "Gaussian noise has no ε at δ = 0; a common choice is 1e-5"
        validate.real("delta", self.delta, above=0, below=1, remedy=remedy)
        if self.records is not None:
            validate.whole("records", self.records, least=1, remedy="a public limit on the size of data sets")
        if self.calibration not in CALIBRATIONS:
            raise unknown_name("calibration", self.calibration, CALIBRATIONS)

    @property
    def sensitivity(self) -> float:
        """How far one record more moves the optimum: proved for `records`, else as the paper has it."""
        if self.records is None:
            return paper_sensitivity(self.regularisation)
        return proved_sensitivity(self.regularisation, self.records)

    @property
    def noise_std(self) -> float:
        """The standard deviation of the noise on each coefficient."""
        if self.calibration == "analytic":
            return self.sensitivity / GaussianClaim.through(self.epsilon, self.delta).mu
        return math.sqrt(2.0 * math.log(1.25 / self.delta)) * self.sensitivity / self.epsilon

    @property
    def claim(self) -> GaussianClaim:
        """All that the noise promises where the sensitivity is right: a whole curve, which says more than (ε, δ)."""
        return GaussianClaim(self.sensitivity / self.noise_std, self.relation)

    def fit(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """The optimum, without noise.

        >>> PrivateRidge(regularisation=1, epsilon=1, delta=1e-5).fit([[1.0], [0.0]], [1.0, 1.0]).tolist()
        [0.5]
        """
        rows, labels = bounded_records(x, y)
        if self.records is not None and len(rows) > self.records:
            remedy = "`records` is the size of the larger of two neighbours"
            raise InvalidInput("x", f"{len(rows)} rows", f"at most records = {self.records}", remedy)
        hessian = rows.T @ rows + self.regularisation * np.eye(rows.shape[1])
        return np.asarray(np.linalg.solve(hessian, rows.T @ labels), np.float64)

    def release(self, x: ArrayLike, y: ArrayLike, rng: np.random.Generator) -> Floats:
        """One noisy model."""
        model: Floats = self.releases(x, y, 1, rng)[0]
        return model

    def releases(self, x: ArrayLike, y: ArrayLike, count: int, rng: np.random.Generator) -> Floats:
        """Independent noisy models, one a row; the optimum is found once.

        >>> rng = np.random.default_rng(0)
        >>> PrivateRidge(regularisation=1, epsilon=1, delta=1e-5).releases([[1.0]], [1.0], 3, rng).shape
        (3, 1)
        """
        optimum = self.fit(x, y)
        noise = rng.standard_normal((validate.whole("count", count, least=1), len(optimum)))
        return optimum + self.noise_std * noise


def paper_sensitivity(regularisation: float) -> float:
    """2/λ: right under add-remove for data sets of up to 4λ + 1 records, and not in general.

    Here 400 records and one more, with λ = 1, are twice as far apart:

    >>> ridge = PrivateRidge(regularisation=1, epsilon=1, delta=1e-5)
    >>> x, y = np.full((401, 1), 0.0274), -np.ones(401)
    >>> x[-1], y[-1] = 1.0, 1.0
    >>> moved = ridge.fit(x, y) - ridge.fit(x[:-1], y[:-1])
    >>> moved.round(2).item(), paper_sensitivity(1)
    (4.1, 2.0)
    """
    return 2.0 / _require_regularisation(regularisation)


def proved_sensitivity(regularisation: float, records: int) -> float:
    """(1 + ‖w‖)/√(λ(λ + 1)), where the larger of two neighbours has at most `records` records.

    >>> round(proved_sensitivity(100, records=401), 5), round(proved_sensitivity(1, records=401), 2)
    (0.0199, 7.78)
    """
    fewer = validate.whole("records", records, least=1) - 1
    return (1.0 + norm_limit(regularisation, fewer)) / math.sqrt(regularisation * (regularisation + 1.0))


def norm_limit(regularisation: float, records: int) -> float:
    """The largest norm of an optimum: ‖y‖·s/(s² + λ) at the worst singular value s ≤ ‖X‖ ≤ √n.

    >>> norm_limit(100, records=400), norm_limit(100, records=25)
    (1.0, 0.2)
    """
    ratio = validate.whole("records", records, least=0) / _require_regularisation(regularisation)
    return math.sqrt(ratio) / 2.0 if ratio >= 1.0 else ratio / (1.0 + ratio)


def _require_regularisation(value: object) -> float:
    # Beyond these limits floating point has no answer: noise of 0, or an optimum that cannot be found.
    remedy = "without it the optimum has no finite sensitivity"
    return validate.real("regularisation", value, above=1e-9, below=1e12, closed="[]", remedy=remedy)
