"""Estimate of ε from one federated training with random canaries (Andrew et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.bounds.result import Kind, LowerBound
from epsilometer.errors import InvalidInput
from epsilometer.evidence import require_evidence
from epsilometer.neighbours import RECORD, AnyNeighbours, Relation, SpeaksOfNeighbours


@dataclass(frozen=True, eq=False)
class Cosines(SpeaksOfNeighbours):
    """Cosines between canaries, drawn at random from the unit sphere in `dimension` dimensions, and an update.

    `observed` canaries took part; the update is the final one, or each cosine is the largest of all rounds. The
    cosines of canaries that did not take part are about N(0, 1/dimension) for a final update; for a maximum over
    rounds they must be measured: `unobserved`.

    >>> Cosines(observed=[0.011, 0.009, 0.012], dimension=10_000)
    Cosines(3 observed, 0 unobserved, dimension 10000, add-remove)
    """

    observed: Floats
    dimension: int
    unobserved: Floats | None
    relation: Relation
    unit: str

    def __init__(
        self,
        observed: ArrayLike,
        dimension: int,
        unobserved: ArrayLike | None = None,
        relation: AnyNeighbours = Relation.ADD_REMOVE,
        unit: str = RECORD,
    ) -> None:
        object.__setattr__(self, "observed", _cosines("observed", observed))
        object.__setattr__(self, "dimension", validate.whole("dimension", dimension, least=2, most=10**15))
        object.__setattr__(self, "unobserved", None if unobserved is None else _cosines("unobserved", unobserved))
        object.__setattr__(self, "relation", relation)
        object.__setattr__(self, "unit", unit)
        self._settle_neighbours()

    def __repr__(self) -> str:
        counts = f"{len(self.observed)} observed, {0 if self.unobserved is None else len(self.unobserved)} unobserved"
        return f"Cosines({counts}, dimension {self.dimension}, {self.neighbours})"


@dataclass(frozen=True)
class GaussianFit:
    """The two normal laws that stand for the cosines without and with the canary."""

    canaries: int
    null_mean: float
    null_std: float
    mean: float
    std: float

    def __str__(self) -> str:
        null, seen = f"N({self.null_mean:.3g}, {self.null_std:.3g}²)", f"N({self.mean:.3g}, {self.std:.3g}²)"
        return f"cosines {null} without and {seen} with the canary, {self.canaries} canaries"

    def to_dict(self) -> dict[str, Any]:
        null, seen = {"mean": self.null_mean, "std": self.null_std}, {"mean": self.mean, "std": self.std}
        return {"canaries": self.canaries, "unobserved": null, "observed": seen}


def cosine_canaries(evidence: Cosines, *, delta: float, same_spread: bool = False) -> LowerBound:
    """An estimate of ε at δ: the exact ε of two normal laws that fit the cosines (Andrew et al. 2023).

    No bound: nothing makes the cosines normal or these canaries the worst case, and it is too high on average, since
    any error in the fitted spread makes the laws easier to tell apart: 1.4 with 1000 canaries where ε = 1 at
    δ = 1e-6. `same_spread` takes both spreads as that of unobserved canaries, which is true of a Gaussian mechanism
    in many dimensions, and has next to no bias. An estimate has no confidence; the result says 0.

    >>> print(cosine_canaries(Cosines([0.011, 0.009, 0.031, 0.0], dimension=10_000), delta=1e-5))
    ε ≈ 13.399 at δ = 1e-05 (add-remove): an estimate, not a bound; cosine canaries, Gaussian fit
    """
    require_evidence("cosine_canaries", evidence, Cosines, "Cosines")
    seen, others = evidence.observed, evidence.unobserved
    at, by = (0.0, evidence.dimension**-0.5) if others is None else (float(others.mean()), float(others.std(ddof=1)))
    proof = GaussianFit(len(seen), at, by, float(seen.mean()), by if same_spread else float(seen.std(ddof=1)))
    epsilon = gaussian_pair_epsilon(delta, (proof.mean - at) / by, proof.std / by).item()
    method = f"cosine canaries, Gaussian fit{', same spread' if same_spread else ''}"
    return LowerBound(epsilon, delta, 0.0, evidence.relation, method, Kind.ESTIMATE, proof, unit=evidence.unit)


def gaussian_pair_epsilon(delta: float, mean: ArrayLike, std: ArrayLike) -> Floats:
    """The least ε at which N(mean, std²) and N(0, 1) are (ε, δ)-indistinguishable, in either order.

    >>> gaussian_pair_epsilon(1e-5, 1.0, [1.0, 1.1]).round(3).tolist()
    [4.377, 6.478]
    """
    validate.real("delta", delta, above=0, below=1, remedy="two normal laws have no finite ε at δ = 0")
    m, s = np.broadcast_arrays(np.asarray(mean, np.float64), np.asarray(std, np.float64))

    def needs_more(epsilon: Floats) -> NDArray[np.bool_]:
        there, back = gaussian_pair_delta(epsilon, m, s), gaussian_pair_delta(epsilon, -m / s, 1.0 / s)
        return np.maximum(there, back) > delta

    low, high = np.zeros_like(m), np.where(needs_more(np.zeros_like(m)), 1.0, 0.0)
    while np.any(more := needs_more(high)):
        high = np.where(more, 2 * high, high)
    for _ in range(60):
        middle = (low + high) / 2
        more = needs_more(middle)
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return high


def gaussian_pair_delta(epsilon: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Floats:
    """P[S] − e^ε·Q[S] for P = N(mean, std²), Q = N(0, 1) and S where the privacy loss ln(dP/dQ) exceeds ε.

    The loss is a parabola: S lies between its roots or beyond them, or is a half-line if the variances are equal.

    >>> gaussian_pair_delta([0.0, 1.0], 1.0, 1.0).round(4).tolist()
    [0.3829, 0.1269]
    """
    e, m, s = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (epsilon, mean, std)))
    square, slope, constant = (1 - 1 / s) * (1 + 1 / s) / 2, m / s**2, -((m / s) ** 2) / 2 - np.log(s) - e
    inside = slope**2 - 4 * square * constant
    with np.errstate(divide="ignore", invalid="ignore"):
        # One root by the sum that does not cancel, the other from their product; infinite as variances agree.
        pivot = -(slope + np.copysign(np.sqrt(inside), slope)) / 2
        left, right = np.sort([pivot / square, constant / pivot], axis=0)
        p, q = (_log_mass(square < 0, (left - at) / by, (right - at) / by) for at, by in ((m, s), (0.0, 1.0)))
        delta = np.exp(p) * -np.expm1(np.minimum(e + q - p, 0.0))
    return np.where((inside > 0) & np.isfinite(p), delta, 0.0)


def _log_mass(between: NDArray[np.bool_], left: Floats, right: Floats) -> Floats:
    """ln of the standard normal mass between two points, or beyond them."""
    turn = left > 0  # there the mass below a point is near 1, and above it is not
    low: Floats = special.log_ndtr(np.where(turn, -right, left))
    high: Floats = special.log_ndtr(np.where(turn, -left, right))
    beyond = np.logaddexp(special.log_ndtr(left), special.log_ndtr(-right))
    return np.where(between, high + np.log(-np.expm1(low - high)), beyond)


def _cosines(argument: str, values: ArrayLike) -> Floats:
    try:
        cosines = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        cosines = np.empty(0)
    # Single precision rounds beyond 1; a spread cannot be fitted to values that are equal but for rounding.
    if cosines.ndim != 1 or len(cosines) < 2 or not (np.all(np.abs(cosines) < 1 + 1e-6) and np.ptp(cosines) > 1e-12):
        raise InvalidInput(argument, values, "at least 2 different cosines in [−1, 1]", "divide by both norms")
    cosines.flags.writeable = False
    return cosines
