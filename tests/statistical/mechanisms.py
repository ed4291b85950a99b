"""Pairs of worlds whose ε is known exactly. Each draws (out, in) scores; higher means member."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Sampler = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Mechanism:
    name: str
    epsilon: float  # true at `delta`
    delta: float
    draw: Sampler
    group_size: int = 1


def _inverse_roc(w: np.ndarray, epsilon: float, delta: float) -> np.ndarray:
    """The false-positive rate u with g(u) = w, for g(u) = min(e^ε·u + δ, 1 − e^{−ε}(1 − u − δ))."""
    direct = (w - delta) * math.exp(-epsilon)
    complement = 1.0 - delta - (1.0 - w) * math.exp(epsilon)
    return np.maximum(np.maximum(direct, complement), 0.0)


def least_favourable(epsilon: float, delta: float, group_size: int = 1, levels: int | None = None) -> Mechanism:
    """Out-scores uniform, in-scores with a ROC that is exactly what (ε, δ) allows; optionally rounded to few levels."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        out, member = rng.random(n), rng.random(n)
        for _ in range(group_size):
            member = _inverse_roc(member, epsilon, delta)
        scores = -out, -member  # a small false-positive rate is a high score
        return scores if levels is None else tuple(np.floor(s * levels) for s in scores)

    name = f"least favourable ε={epsilon:g} δ={delta:g} k={group_size}" + (f" {levels} levels" if levels else "")
    return Mechanism(name, epsilon, delta, draw, group_size)


def laplace(epsilon: float, delta: float = 0.0) -> Mechanism:
    """Sensitivity 1, scale 1/ε: δ(ε') = 1 − e^{(ε'−ε)/2}."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        return rng.laplace(0, 1 / epsilon, n), rng.laplace(1, 1 / epsilon, n)

    return Mechanism(f"Laplace ε={epsilon:g} δ={delta:g}", max(0.0, epsilon + 2 * math.log1p(-delta)), delta, draw)


def randomized_response(epsilon: float) -> Mechanism:
    truth = 1 / (1 + math.exp(-epsilon))

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        return (rng.random(n) > truth).astype(float), (rng.random(n) < truth).astype(float)

    return Mechanism(f"randomized response ε={epsilon:g}", epsilon, 0.0, draw)


def constant() -> Mechanism:
    return Mechanism("constant scores", 0.0, 0.0, lambda _, n: (np.ones(n), np.ones(n)))


MECHANISMS = [
    *(least_favourable(epsilon, delta) for epsilon in (0.0, 1.0, 2.0, 4.0) for delta in (0.0, 1e-5, 0.01)),
    least_favourable(1.0, 0.0, group_size=2),
    least_favourable(0.5, 1e-3, group_size=4),
    least_favourable(1.0, 0.0, levels=5),
    least_favourable(2.0, 0.01, levels=20),
    laplace(1.0),
    laplace(3.0, 1e-3),
    randomized_response(0.5),
    randomized_response(3.0),
    constant(),
]
