"""Noise that can be seen: too little is refuted soon, enough or more with probability α at most."""

import numpy as np
import pytest

from epsilometer.bounds import NoiseProcess
from epsilometer.bounds.noise_process import SMALLER, SMALLER_SHARES
from epsilometer.errors import InvalidInput


def share_refuted(
    scale: float, *, trainings: int, steps: int, coordinates: int, seed: int, unpaid: bool = False
) -> float:
    """The share of simulated trainings that reach 20 at any step; the mixture may be unpaid, as a control."""
    squares = scale**2 * np.random.default_rng(seed).chisquare(coordinates, (trainings, steps))
    gains = -coordinates * np.log(SMALLER) - 0.5 * (SMALLER**-2 - 1.0) * squares[..., None]
    shares = np.log(np.ones(len(SMALLER)) if unpaid else SMALLER_SHARES)
    wealth = np.logaddexp.reduce(np.cumsum(gains, axis=1) + shares, axis=2)
    return float((wealth.max(axis=1) >= np.log(20)).mean())


@pytest.mark.parametrize("coordinates", [1, 20, 200])
@pytest.mark.parametrize("scale", [1.0, 1.1])
def test_enough_noise_is_refuted_with_probability_alpha_at_most(coordinates: int, scale: float) -> None:
    """10,000 trainings of 100 steps; the best of all scales, not paid for, fails the same test."""
    found = share_refuted(scale, trainings=10_000, steps=100, coordinates=coordinates, seed=1)
    assert found <= 0.05
    if scale == 1.0:
        naive = share_refuted(1.0, trainings=10_000, steps=100, coordinates=coordinates, seed=1, unpaid=True)
        assert naive > 0.05


@pytest.mark.parametrize(("scale", "most"), [(0.5, 1), (0.8, 1), (0.9, 2), (0.95, 8), (0.98, 44)])
def test_median_step_of_refutation(scale: float, most: int) -> None:
    """What the prototype had with 200 coordinates."""
    at = []
    for seed in range(41):
        rng, process = np.random.default_rng(seed), NoiseProcess()
        while process.refuted_at is None and process.steps < 200:
            process.add(rng.normal(0, scale, 200))
        at.append(process.refuted_at or 1000)
    assert np.median(at) <= most


def test_extremes_give_numbers_or_clear_errors() -> None:
    assert SMALLER_SHARES.sum() == pytest.approx(1.0, abs=1e-12)
    process = NoiseProcess(0.99)
    process.add(np.zeros(5))
    assert process.refuted_at == 1
    process = NoiseProcess()
    process.add([])
    assert (process.refuted_at, process.steps) == (None, 1)
    with pytest.raises(InvalidInput, match="infinity"):
        process.add([0.0, np.inf])
    with pytest.raises(InvalidInput, match="noise"):
        process.add([np.nan])
