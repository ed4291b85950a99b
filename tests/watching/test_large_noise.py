"""Noise of 5 to 20 clip norms: canaries of a clip norm say little of it, and the noise itself all that is needed."""

from typing import Any

import numpy as np
import pytest
from trainings import train

from epsilometer.bounds import StepProcess, share_refuted_in_steps
from epsilometer.claims import GaussianClaim, StepClaim
from epsilometer.verdict import ENOUGH_POWER, FAULT
from epsilometer.watching.enough import what_is_enough
from epsilometer.watching.privatizer import Privatizer, Stated
from epsilometer.watching.watch import Watch

pytestmark = pytest.mark.filterwarnings("ignore")


def half(optimizer: Any) -> None:
    """Of the noise that it states."""
    right = optimizer.add_noise

    def add_noise() -> None:
        optimizer.noise_multiplier /= 2
        right()
        optimizer.noise_multiplier *= 2

    optimizer.add_noise = add_noise


@pytest.mark.parametrize("sigma", [5.0, 20.0])
def test_a_few_steps_decide(sigma: float) -> None:
    right = train({}, steps=3, noise_multiplier=sigma).watch
    assert right is not None
    assert str(right.verdict).startswith("consistent: held: clipping, noise, sampling, accounting"), right.verdict
    assert right.trainings[0].quote().startswith("no statement is broken; noise: noise × ")
    wrong = train({}, steps=3, noise_multiplier=sigma, alter=half).watch
    assert wrong is not None
    assert str(wrong.verdict).startswith("violated: noise is broken at step 1 (by noise-law")


class Unseen(Privatizer):
    """Noise that nobody can look at."""

    def stated(self) -> Stated:
        return Stated("unseen", 10.0, 1.0)

    def insert(self, coins: Any, draw: np.random.Generator) -> Any:
        return coins + draw.normal(0.0, 10.0, len(coins))


def test_where_canaries_are_needed_it_is_said_how_many() -> None:
    watch = Watch(seed=1, quiet=True)
    training = watch.begin(Unseen())
    for _ in range(50):
        training.play()
    (noise,) = (row for row in watch.trainings[0].statements if row.statement == "noise")
    assert (noise.standing, noise.next) == ("untested", "train for about 500 steps, or --number 6000")


@pytest.mark.full
@pytest.mark.parametrize(("sigma", "canaries", "steps"), [(2.0, 200, 20), (5.0, 200, 125), (10.0, 6700, 45)])
def test_so_many_are_enough(sigma: float, canaries: int, steps: int) -> None:
    """In most right trainings; and with fewer steps others are named."""
    assert what_is_enough(sigma, canaries, steps - 1) != what_is_enough(sigma, canaries, 10 * steps)
    found = []
    for seed in range(5):
        rng, process = np.random.default_rng(seed), StepProcess(0.9525)
        for _ in range(steps):
            coins = rng.random(canaries) < 0.5
            process.add(coins + rng.normal(0.0, sigma, canaries), coins, noise_multiplier=sigma)
        truth = GaussianClaim(FAULT / (sigma * max(process.noise_factor(), 1.0)))
        found.append(share_refuted_in_steps(StepClaim.of_noise(sigma), truth, steps, canaries, 0.9525, repetitions=20))
    assert np.median(found) >= ENOUGH_POWER, found
