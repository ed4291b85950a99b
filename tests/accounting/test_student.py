"""Student-t noise: its promise against Gaussian noise, against losses that are drawn, and at δ = 0."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epsilometer.accounting import DpSgd, StudentDpSgd, account
from epsilometer.claims import GaussianClaim, Relation
from epsilometer.errors import InvalidInput


def drawn_losses(freedom: float, sigma: float, entries: int, count: int, seed: int = 0) -> np.ndarray:
    """ln(density with the record / without it) of releases with it, by the densities of spherical Student-t noise.

    Only the release along the record's gradient and the length of the rest matter.
    """
    rng = np.random.default_rng(seed)
    spread = np.sqrt(freedom / rng.chisquare(freedom, count))
    shift = 1.0 / sigma
    along = shift + spread * rng.standard_normal(count)
    rest = spread**2 * rng.chisquare(entries - 1, count) if entries > 1 else 0.0
    ratio = np.log(freedom + along**2 + rest) - np.log(freedom + (along - shift) ** 2 + rest)
    return np.asarray((freedom + entries) / 2 * ratio)


def share_above(losses: np.ndarray, epsilon: float) -> float:
    """δ at ε: E[(1 − e^{ε − loss})⁺]."""
    return float(np.maximum(0.0, -np.expm1(epsilon - losses)).mean())


@pytest.mark.parametrize("entries", [1, 20, 1000])
def test_the_promise_holds_in_any_number_of_dimensions(entries: int) -> None:
    losses = drawn_losses(5.0, 2.0, entries, 400_000)
    step = StudentDpSgd(1.0, 2.0, 1, freedom=5.0)
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        slack = 4 * math.sqrt(step.delta(epsilon) / len(losses))
        assert share_above(losses, epsilon) <= step.delta(epsilon) + slack
    assert losses.max() <= step.pure_epsilon(entries) * (1 + 1e-12)


def test_the_promise_is_nearly_exact_in_many_dimensions() -> None:
    losses, step = drawn_losses(5.0, 2.0, 2000, 400_000), StudentDpSgd(1.0, 2.0, 1, freedom=5.0)
    for epsilon in (0.0, 0.5, 1.0):
        assert share_above(losses, epsilon) > 0.95 * step.delta(epsilon)


def test_gaussian_noise_of_the_same_variance_promises_too_much() -> None:
    """Who accounts for Student-t noise as if it were Gaussian is refuted by the losses themselves."""
    freedom, sigma = 5.0, 2.0
    losses = drawn_losses(freedom, sigma, 2000, 400_000)
    alike = GaussianClaim(1.0 / (sigma * math.sqrt(freedom / (freedom - 2.0))))
    assert share_above(losses, 1.5) > 3 * alike.delta_at(1.5)
    assert share_above(losses, 1.5) > 1.5 * GaussianClaim(1.0 / sigma).delta_at(1.5)  # even of the same scale


def test_the_bound_on_losses_is_attained() -> None:
    freedom, entries, shift = 5.0, 3, 0.5
    z = np.linspace(-20, 20, 200_001)
    losses = (freedom + entries) / 2 * (np.log(freedom + z**2) - np.log(freedom + (z - shift) ** 2))
    assert StudentDpSgd(1.0, 2.0, 1, freedom).pure_epsilon(entries) == pytest.approx(losses.max(), rel=1e-8)
    sampled = StudentDpSgd(0.1, 2.0, 7, freedom).pure_epsilon(entries)
    assert sampled == pytest.approx(7 * math.log1p(0.1 * math.expm1(losses.max())), rel=1e-7)


@pytest.mark.parametrize(("rate", "steps"), [(1.0, 1), (1.0, 20), (0.05, 100)])
def test_many_degrees_of_freedom_are_gaussian_noise(rate: float, steps: int) -> None:
    gaussian = account(DpSgd(rate, 2.0, steps), 1e-5).epsilon
    found = StudentDpSgd(rate, 2.0, steps, freedom=1e7).epsilon(1e-5)
    assert gaussian * (1 - 1e-3) <= found <= gaussian * 1.01
    assert StudentDpSgd(rate, 2.0, steps, freedom=5.0).epsilon(1e-5) > 1.02 * gaussian


def test_samples_in_both_orders_of_the_worlds() -> None:
    """Against losses of a mixture, drawn in either world, where the scale of the noise is told."""
    rate, sigma, freedom, rng = 0.3, 1.0, 4.0, np.random.default_rng(0)
    spread = sigma * np.sqrt(freedom / rng.chisquare(freedom, 400_000))
    z = spread * rng.standard_normal(len(spread))
    inside = z + (rng.random(len(z)) < rate)
    mechanism = StudentDpSgd(rate, sigma, 1, freedom)

    def loss(x: np.ndarray) -> np.ndarray:
        return np.log(1 - rate + rate * np.exp((x - 0.5) / spread**2))

    for epsilon in (0.0, 0.3, 1.0):
        worse = max(share_above(loss(inside), epsilon), share_above(-loss(z), epsilon))
        assert mechanism.delta(epsilon) == pytest.approx(worse, rel=0.05)
        assert mechanism.delta(epsilon) > worse - 3e-3


def test_the_curve_and_the_point_agree() -> None:
    mechanism = StudentDpSgd(0.1, 1.5, 10, 5.0)
    curve = mechanism.claim("zero-out")
    assert curve.relation is Relation.ZERO_OUT
    assert curve.epsilon_at(1e-5) == pytest.approx(mechanism.epsilon(1e-5), rel=1e-2)
    assert mechanism.epsilon(0.0) == math.inf
    with pytest.raises(InvalidInput, match="relation = 'replace': expected add-remove or zero-out"):
        mechanism.claim("replace")
    with pytest.raises(InvalidInput, match=r"freedom = 0.5: expected .*ν, such as 5"):
        StudentDpSgd(0.1, 1.5, 10, 0.5)
