"""Differencing and gradient inversion: exact without noise, and as wrong as theory says with it."""

import math

import numpy as np
import pytest

from epsilometer.data import digits
from epsilometer.errors import InvalidInput
from epsilometer.figures import Pictures
from epsilometer.reconstruction import (
    Reconstruction,
    difference,
    fisher_limit,
    invert_gradient,
    invert_layer,
    noisy_sum,
    released_gradient,
)
from epsilometer.training import Network


def test_exact_sums_give_the_record_away() -> None:
    records = np.random.default_rng(0).random((50, 9))
    rng = np.random.default_rng(1)
    np.testing.assert_allclose(
        difference(noisy_sum(records, 0.0, rng), noisy_sum(records[:-1], 0.0, rng)), records[-1], atol=1e-12
    )


@pytest.mark.parametrize("repeats", [1, 8])
def test_noise_of_both_sums_is_in_the_difference(repeats: int) -> None:
    """2s²/m for each coordinate, and no bias: 4,000 coordinates, within four standard errors."""
    rng, noise_std = np.random.default_rng(2), 0.7
    records = rng.random((3, 4000))
    sums = [[noisy_sum(part, noise_std, rng) for _ in range(repeats)] for part in (records, records[:2])]
    errors = difference(*sums) - records[2]
    expected = 2 * noise_std**2 / repeats
    assert np.mean(errors**2) == pytest.approx(expected, rel=4 * math.sqrt(2 / 4000))
    assert abs(np.mean(errors)) < 4 * math.sqrt(expected / 4000)


@pytest.mark.parametrize("widths", [(64, 10), (64, 12, 10), (64, 20, 8, 10)])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("clip_norm", [math.inf, 1.0, 1e-3])
def test_a_gradient_is_the_record_whatever_the_network_and_the_clipping(
    widths: tuple[int, ...], activation: str, clip_norm: float
) -> None:
    data, network = digits(), Network(widths, activation)
    parameters = network.initial(np.random.default_rng(3), 1.0)
    for row in (0, 700):
        seen = released_gradient(network, parameters, data.x[row], int(data.y[row]), clip_norm=clip_norm)
        assert np.linalg.norm(seen) <= clip_norm * (1 + 1e-9)
        np.testing.assert_allclose(invert_gradient(network, seen), data.x[row], atol=1e-9)


def test_a_batch_of_two_is_no_record() -> None:
    data, network = digits(), Network((64, 12, 10), "tanh")
    parameters = network.initial(np.random.default_rng(3), 1.0)
    both = sum(released_gradient(network, parameters, data.x[row], int(data.y[row])) for row in (0, 1))
    found = invert_gradient(network, both)
    assert min(np.mean((found - data.x[row]) ** 2) for row in (0, 1)) > 0.005


def test_little_noise_leaves_the_error_that_theory_says() -> None:
    """(s/‖δ‖)²(1 + x²) a pixel to the first order in s: noise of the weights, and x times that of the biases."""
    data, network, rng = digits(), Network((64, 32, 10), "tanh"), np.random.default_rng(4)
    parameters, x, y, sigma = network.initial(rng, 1.0), data.x[5].astype(float), int(data.y[5]), 1e-4
    errors = [
        invert_gradient(
            network,
            released_gradient(network, parameters, x, y, clip_norm=1.0, noise_multiplier=sigma, rng=rng),
        )
        - x
        for _ in range(300)
    ]
    _, shares = network.layers(released_gradient(network, parameters, x, y, clip_norm=1.0))[0]
    expected = sigma**2 / (shares @ shares) * (1 + np.mean(x**2))
    measured = np.mean(np.square(errors))
    assert measured == pytest.approx(expected, rel=0.1)
    limit = fisher_limit(lambda one: released_gradient(network, parameters, one, y, clip_norm=1.0), x, sigma)
    assert limit < measured < 5 * limit  # nothing unbiased is below it, and this attack is not far above


def test_a_reconstruction_says_how_good_it_is() -> None:
    candidates = digits().x
    near = Reconstruction(candidates[3], candidates[3] + 0.01, (8, 8))
    assert near.mse == pytest.approx(1e-4, rel=1e-3)
    assert near.finds(candidates, 3)
    assert not near.finds(candidates, 4)
    assert not near.finds(candidates[[3, 3]], 0)  # two that are the same are not told apart
    assert Reconstruction(np.zeros(2), np.array([2.0, -1.0])).within(0.0, 1.0).estimate.tolist() == [1.0, 0.0]
    assert isinstance(near.figure(), Pictures)
    assert "mean squared error 0.0001" in repr(near)
    with pytest.raises(InvalidInput, match="shape"):
        Reconstruction(np.zeros(2), np.zeros(2)).figure()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: invert_layer([[1.0]], [0.0]), r"biases = 'norm 0'.*the record moved no unit: take another"),
        (lambda: invert_layer([1.0], [1.0]), "weights, biases"),
        (lambda: invert_gradient(Network((2, 2)), [1.0]), "gradient = .* the 6 numbers of this network"),
        (lambda: difference([1.0, 2.0], [1.0]), "larger, smaller"),
        (lambda: noisy_sum([1.0], 0.0, np.random.default_rng(0)), "records = .* a matrix with a row a record"),
        (lambda: noisy_sum([[1.0]], -1.0, np.random.default_rng(0)), "noise_std = -1.0"),
        (lambda: released_gradient(Network((1, 2)), np.zeros(4), [1.0], 0, noise_multiplier=1.0), "clip_norm"),
        (
            lambda: released_gradient(Network((1, 2)), np.zeros(4), [1.0], 0, clip_norm=1.0, noise_multiplier=1.0),
            "rng is missing",
        ),
        (lambda: released_gradient(Network((1, 2)), np.zeros(4), [1.0], 0, clip_norm=0.0), "clip_norm = 0.0"),
        (lambda: Reconstruction(np.zeros(2), np.zeros(3)), "original, estimate"),
    ],
)
def test_what_cannot_be_inverted_is_refused(call, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        call()
