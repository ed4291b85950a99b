"""How many records output perturbation needs (Chaudhuri et al. 2011, with the course's normal noise).

R(θ) ≤ R(θ*) + γ with probability 1 − 2β for n of the order of the largest of three terms: what learning needs anyhow,
and two that the noise adds. The theorem has no constants; here they are 1, so what counts is how n grows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from epsilometer import validate


@dataclass(frozen=True)
class SampleSize:
    """The three terms, without constants."""

    learning: float  # ‖θ*‖² ln(1/β)/γ²
    noise: float  # p ln(p/β) ‖θ*‖ √ln(1/δ)/(γε)
    noise_and_penalty: float  # p ln(p/β) ‖θ*‖² √ln(1/δ)/(γ^{3/2}ε)

    @property
    def records(self) -> float:
        """The largest."""
        return max(self.learning, self.noise, self.noise_and_penalty)


def sample_size(
    gamma: float, *, epsilon: float, delta: float, features: int, norm: float = 1.0, beta: float = 0.05
) -> SampleSize:
    """For an excess risk of γ, a best model θ* of that norm, and ε = ∞ for no privacy.

    >>> private = sample_size(0.05, epsilon=1.0, delta=1e-5, features=5)
    >>> round(private.learning), round(private.noise), round(private.noise_and_penalty)
    (1198, 1563, 6988)
    """
    validate.real("gamma", gamma, above=0)
    validate.real("epsilon", epsilon, above=0, closed="]")
    validate.real("delta", delta, above=0, below=1)
    validate.real("norm", norm, above=0)
    validate.real("beta", beta, above=0, below=0.5)
    p = validate.whole("features", features, least=1)
    noisy = p * math.log(p / beta) * math.sqrt(math.log(1.0 / delta)) / epsilon
    return SampleSize(
        learning=norm**2 * math.log(1.0 / beta) / gamma**2,
        noise=noisy * norm / gamma,
        noise_and_penalty=noisy * norm**2 / gamma**1.5,
    )


def theorem_regularisation(gamma: float, norm: float) -> float:
    """The λ of the proof: γ/‖θ*‖², so that the penalty on θ* is half of what may be lost."""
    return validate.real("gamma", gamma, above=0) / validate.real("norm", norm, above=0) ** 2
