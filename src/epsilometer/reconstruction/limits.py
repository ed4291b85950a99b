r"""Limits for unbiased reconstructions (Guo, Karrer, Chaudhuri & van der Maaten 2022).

Theorem 1, derived: let P and Q be the laws of what is released for records x and x′ that differ in coordinate i only.
Chapman and Robbins (1951): an estimate x̂ᵢ with means ψ(x), ψ(x′) has Var_P(x̂ᵢ) ≥ (ψ(x′) − ψ(x))² / χ²(Q‖P), by
Cauchy–Schwarz for x̂ᵢ − ψ(x) and dQ/dP − 1. And χ²(Q‖P) = E_P(dQ/dP)² − 1 = exp(D₂(Q‖P)) − 1, which Rényi-DP of order
2 limits by e^{ε₂} − 1. If coordinate i may be anything in an interval of length diamᵢ whatever the others are, some x′
is at least diamᵢ/2 away. An unbiased estimate (ψ = xᵢ) thus has a variance of diamᵢ²/(4(e^{ε₂} − 1)) at least; if its
mean moves γᵢ times as fast as the record (γᵢ = inf |∂ψᵢ/∂xᵢ|), γᵢ² of that, plus the square of its bias.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput

_STEP = 1e-5  # of central differences, for features of about 1


def gaussian_renyi(sensitivity: float, noise_std: float) -> float:
    """ε₂ of the Gaussian mechanism: D₂(N(μ, s²) ‖ N(μ′, s²)) = ‖μ − μ′‖²/s².

    `sensitivity` is how far a release moves if one record is *replaced*: of DP-SGD's clipped gradients 2C, not C.

    >>> gaussian_renyi(2.0, 1.0)
    4.0
    """
    validate.real("sensitivity", sensitivity, above=0, below=math.inf, closed="[")
    validate.real("noise_std", noise_std, above=0, closed="[]")
    if sensitivity == 0:
        return 0.0
    ratio = sensitivity / noise_std if noise_std else math.inf
    return ratio * ratio


def renyi_limit(
    diameters: ArrayLike, renyi_epsilon: float, *, slopes: ArrayLike = 1.0, biases: ArrayLike = 0.0
) -> float:
    """The least mean squared error, per coordinate, of unbiased estimates of a record: Σ diamᵢ²/(4d(e^{ε₂} − 1)).

    It assumes that the release is Rényi-DP of order 2 with `renyi_epsilon` if any one record is replaced, and that
    coordinate i may take any value in an interval of length `diameters[i]`, whatever the others are (a box). Nothing
    is assumed of what else the attacker knows. A biased estimate may do better: knowing what records usually look like
    is enough. For one whose mean moves γᵢ times as fast as the record (`slopes`; at least) and that is off by `biases`,
    γᵢ²·diamᵢ²/(4(e^{ε₂} − 1)) + biasᵢ² holds.

    >>> round(renyi_limit(np.ones(64), renyi_epsilon=1.0), 4)
    0.1455
    """
    widths = np.asarray(diameters, np.float64)
    if widths.ndim != 1 or not widths.size or not (np.isfinite(widths) & (widths >= 0)).all():
        raise InvalidInput("diameters", _brief(widths), "a length ≥ 0 for each coordinate")
    epsilon = validate.real("renyi_epsilon", renyi_epsilon, above=0, closed="[]")
    moves, off = (_per_coordinate(name, values, widths) for name, values in (("slopes", slopes), ("biases", biases)))
    spread = (moves * widths) ** 2 / 4.0
    with np.errstate(over="ignore", divide="ignore"):
        factor = 1.0 / np.expm1(epsilon)
    variances = np.zeros_like(spread)  # of a coordinate that is known, nothing is left
    variances[spread > 0] = spread[spread > 0] * factor
    return float(np.mean(variances + off**2))


def fisher_limit(release: Callable[[Floats], Floats], x: ArrayLike, noise_std: float) -> float:
    """The least mean squared error, per coordinate, of unbiased estimates of this record: d / Tr I (Theorem 2).

    `release` is what is released of a record before normal noise of `noise_std` is added to every coordinate, and I =
    JᵀJ/s² with its Jacobian J: Cramér and Rao's Tr I⁻¹/d is no smaller. It is about one record and a release that is
    known exactly, where `renyi_limit` is about the worst of all. J is by central differences, two calls a coordinate.

    >>> round(fisher_limit(lambda x: 2 * x, [0.3, 0.7], noise_std=1.0), 6)
    0.25
    """
    record = np.asarray(x, np.float64)
    if record.ndim != 1 or not record.size or not np.isfinite(record).all():
        raise InvalidInput("x", _brief(record), "a record of finite numbers")
    validate.real("noise_std", noise_std, above=0, below=math.inf, closed="[")
    power = 0.0
    for i in range(len(record)):
        moved = np.zeros_like(record)
        moved[i] = _STEP
        slope = (np.asarray(release(record + moved)) - np.asarray(release(record - moved))) / (2.0 * _STEP)
        power += float(np.sum(slope * slope))
    return len(record) * noise_std**2 / power if power else math.inf


def _per_coordinate(name: str, values: ArrayLike, widths: Floats) -> Floats:
    given = np.asarray(values, np.float64)
    if given.shape not in ((), widths.shape) or not np.isfinite(given).all():
        raise InvalidInput(name, _brief(given), f"a finite number, or {len(widths)} of them")
    spread: Floats = np.broadcast_to(given, widths.shape)
    return spread


def _brief(values: Floats) -> str:
    return str(values.tolist()) if values.size <= 4 else f"shape {values.shape}"
