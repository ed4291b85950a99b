"""The limits of Guo et al. on mechanisms where the truth is known in closed form."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from epsilometer.errors import InvalidInput
from epsilometer.reconstruction import fisher_limit, gaussian_renyi, renyi_limit


@pytest.mark.parametrize("distance", [0.1, 0.7, 1.5])
def test_chapman_and_robbins_holds_and_is_attained(distance: float) -> None:
    """x is released with normal noise of 1. The estimate distance·(dQ/dP − 1)/χ² is unbiased at 0 and at `distance`;
    its variance at 0, by quadrature, is distance²/(e^{ε₂} − 1): the step of the derivation, with ε₂ in it."""
    epsilon = gaussian_renyi(distance, 1.0)
    p, q = stats.norm(0, 1).pdf, stats.norm(distance, 1).pdf
    chi = integrate.quad(lambda y: q(y) ** 2 / p(y) - p(y), -12, 12)[0]
    assert chi == pytest.approx(math.expm1(epsilon), rel=1e-6)
    variance = integrate.quad(lambda y: p(y) * (distance * (q(y) / p(y) - 1) / chi) ** 2, -12, 12)[0]
    mean = integrate.quad(lambda y: q(y) * distance * (q(y) / p(y) - 1) / chi, -12, 12)[0]
    assert mean == pytest.approx(distance, rel=1e-6)
    assert variance == pytest.approx(4 * renyi_limit([distance], epsilon), rel=1e-6)  # which only half of it is used in


@pytest.mark.parametrize("diameter", [1e-3, 0.5, 1.0, 2.0, 4.0])
def test_the_limit_is_below_the_best_unbiased_estimate(diameter: float) -> None:
    """x in [0, D] released with normal noise of s: what was released is the best unbiased estimate, with error s²."""
    noise_std = 0.8
    found = renyi_limit([diameter], gaussian_renyi(diameter, noise_std))
    assert found <= noise_std**2 / 4 * (1 + 1e-9)  # half of the diameter, squared, is what the theorem gives away
    assert found == pytest.approx(diameter**2 / 4 / math.expm1(diameter**2 / noise_std**2), rel=1e-12)
    if diameter < 0.01:
        assert found == pytest.approx(noise_std**2 / 4, rel=1e-4)
    assert fisher_limit(lambda x: x, [0.3], noise_std) == pytest.approx(noise_std**2, rel=1e-6)  # sharp here


def test_an_estimate_that_is_drawn_to_a_guess_is_below_unless_its_slope_and_bias_are_counted() -> None:
    slope, noise_std, x, diameter = 0.05, 2.0, 0.5, 1.0
    guess = 0.5
    bias = (1 - slope) * (guess - x)
    error = slope**2 * noise_std**2 + bias**2  # of guess + slope·(y − guess)
    epsilon = gaussian_renyi(diameter, noise_std)
    assert renyi_limit([diameter], epsilon) > error
    assert renyi_limit([diameter], epsilon, slopes=slope, biases=bias) < error
    assert renyi_limit([diameter], epsilon, slopes=0.0, biases=[0.3]) == pytest.approx(0.09)


def test_coordinates_are_averaged() -> None:
    one = renyi_limit([1.0], 0.7)
    assert renyi_limit([1.0, 3.0, 0.0], 0.7) == pytest.approx(one * 10 / 3)


def test_fisher_information_of_a_matrix_is_its_size() -> None:
    matrix = np.random.default_rng(0).normal(size=(7, 4))
    found = fisher_limit(lambda x: matrix @ x, np.zeros(4), 0.5)
    assert found == pytest.approx(4 * 0.25 / np.sum(matrix**2), rel=1e-6)
    cramer_rao = 0.25 * np.trace(np.linalg.inv(matrix.T @ matrix)) / 4
    assert found < cramer_rao
    assert fisher_limit(lambda _: np.zeros(3), [1.0], 1.0) == math.inf  # nothing is released
    assert fisher_limit(lambda x: x, [1.0], 0.0) == 0.0


def test_extremes_are_numbers() -> None:
    assert renyi_limit([1.0], 0.0) == math.inf
    assert renyi_limit([1.0], math.inf) == renyi_limit([1.0], 1e5) == 0.0
    assert renyi_limit([0.0], 0.0) == 0.0
    assert gaussian_renyi(1.0, 0.0) == math.inf
    assert gaussian_renyi(0.0, 0.0) == 0.0
    assert gaussian_renyi(1.0, math.inf) == 0.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: renyi_limit([], 1.0), r"diameters = '\[\]': expected a length ≥ 0 for each coordinate"),
        (lambda: renyi_limit([-1.0], 1.0), "diameters"),
        (lambda: renyi_limit([math.nan], 1.0), "diameters"),
        (lambda: renyi_limit([1.0], -1.0), "renyi_epsilon = -1.0"),
        (lambda: renyi_limit([1.0, 1.0], 1.0, slopes=[1.0]), "slopes = .* a finite number, or 2 of them"),
        (lambda: gaussian_renyi(-1.0, 1.0), "sensitivity"),
        (lambda: fisher_limit(lambda x: x, [[1.0]], 1.0), "x = "),
        (lambda: fisher_limit(lambda x: x, [1.0], -1.0), "noise_std"),
    ],
)
def test_what_is_no_limit_is_refused(call, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        call()
