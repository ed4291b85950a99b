"""ClipBKD for ridge regression (Jagielski et al. 2020, Appendix B): a record whose effect is known in closed form.

The poison is x_p = v_d, the right singular vector of the smallest singular value s_d, with the sign for which
v_d·w0 ≤ 0, and y_p = 1. Since v_d is an eigenvector of XᵀX, adding it moves the optimum along v_d only, by

    w1 − w0 = v_d·(1 − v_d·w0)/(λ + s_d² + 1)

(s_d² where a version of the paper has σ_d). So the projection on v_d is all that tells the worlds apart. Saying
"member" iff it is above the middle is a test whose error rates are both Φ(−c/σ), c half of the separation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.bounded_records import bounded_records
from epsilometer.claims import GaussianClaim
from epsilometer.mechanisms.ridge import PrivateRidge

LABEL = 1.0


@dataclass(frozen=True, eq=False)
class RidgePoison:
    """The poison, and what it does to the optimum."""

    mechanism: PrivateRidge
    point: Floats
    singular_value: float
    alignment: float  # v_d·w0, at most 0

    @property
    def label(self) -> float:
        return LABEL

    @property
    def separation(self) -> float:
        """How far the poison moves the optimum: along `point`, and nowhere else."""
        return (LABEL - self.alignment) / self._stiffness

    @property
    def midpoint(self) -> float:
        """Where between the worlds the test says "member": known before any trial."""
        return self.alignment + self.separation / 2.0

    def epsilon(self, delta: float = 0.0) -> float:
        """The midpoint test's ε at δ; the paper's is at δ = 0."""
        return midpoint_epsilon(self.separation / 2.0, self.mechanism.noise_std, delta)

    @property
    def paper_epsilon(self) -> float:
        """The same at δ = 0 with c = ½/(λ + s_d² + 1), as the paper has it: never more, since v_d·w0 ≤ 0."""
        return midpoint_epsilon(0.5 / self._stiffness, self.mechanism.noise_std)

    @property
    def paper_floor(self) -> float:
        """The paper's last step, 4c/(σ√(2π))·exp(−c²/2σ²), by ln((½ + p)/(½ − p)) ≥ 4p and the density at c.

        With the paper's σ it is ε·λ/(λ + s_d² + 1)·exp(−c²/2σ²)/(2√(π ln(1.25/δ))): a share of ε that does not depend
        on the number of records unless s_d does.
        """
        ratio = 0.5 / self._stiffness / self.mechanism.noise_std
        return 4.0 * ratio * math.exp(-(ratio**2) / 2.0) / math.sqrt(2.0 * math.pi)

    @property
    def truth(self) -> GaussianClaim:
        """All that any test can tell about these two worlds: N(0, σ²) and N(separation, σ²)."""
        return GaussianClaim(self.separation / self.mechanism.noise_std, self.mechanism.relation)

    @property
    def _stiffness(self) -> float:
        return self.mechanism.regularisation + self.singular_value**2 + 1.0

    def added_to(self, x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
        """The in-world: the data and the poison."""
        return np.vstack([x, self.point]), np.append(y, LABEL)


def craft_poison(mechanism: PrivateRidge, x: ArrayLike, y: ArrayLike) -> RidgePoison:
    """The poison for these data.

    >>> ridge = PrivateRidge(regularisation=2, epsilon=1, delta=1e-5)
    >>> poison = craft_poison(ridge, [[1.0, 0.0], [0.0, 0.5]], [1.0, 1.0])
    >>> abs(poison.point).tolist(), poison.singular_value, round(poison.separation, 3)
    ([0.0, 1.0], 0.5, 0.376)
    """
    rows, labels = bounded_records(x, y)
    squares, vectors = np.linalg.eigh(rows.T @ rows)
    alignment = float(vectors[:, 0] @ mechanism.fit(rows, labels))
    return RidgePoison(
        mechanism=mechanism,
        point=-vectors[:, 0] if alignment > 0 else vectors[:, 0],
        singular_value=math.sqrt(max(float(squares[0]), 0.0)),
        alignment=-abs(alignment),
    )


def midpoint_epsilon(distance: float, noise_std: float, delta: float = 0.0) -> float:
    """ε at δ of a test between two normal worlds that lie `distance` on either side of its threshold.

    ln[(½ + P − δ)/(½ − P)] with P = Pr[0 < N(0, σ²) < distance].

    >>> round(midpoint_epsilon(1.0, 1.0), 4), round(midpoint_epsilon(1.0, 1.0, delta=0.1), 4)
    (1.6683, 1.5417)
    """
    ratio = validate.real("distance", distance, above=0, closed="[") / validate.real("noise_std", noise_std, above=0)
    right = float(special.ndtr(ratio)) - validate.delta(delta)
    return max(0.0, math.log(right) - float(special.log_ndtr(-ratio))) if right > 0 else 0.0
