"""Certified bounds: they hold as often as they say, in both directions, and many trainings prove something."""

import numpy as np
import pytest
from adaptive_steps import AdaptiveSteps

from epsilometer.accounting import converted
from epsilometer.instances import certified_epsilons, trainings_wanted
from epsilometer.instances.budgets import ORDERS, budgets_of, epsilons_within, exceeded, stopped_at_most

RARE = AdaptiveSteps(first=0.3, low=0.1, high=4.0, threshold=2.5)  # 1.4 % of trainings with the record cost much
DELTA = 0.02


def _worst(steps: AdaptiveSteps, delta: float) -> float:
    moments = np.array([steps.moment(steps.first, a) + steps.moment(steps.high, a) for a in ORDERS])
    return float(converted(np.array(ORDERS), (moments / (np.array(ORDERS) - 1))[:, None], delta)[0])


def test_the_truth_of_the_toy_is_that_of_gaussians() -> None:
    """Where the second step does not depend on the first, both are one Gaussian of √(μ₁² + μ₂²)."""
    from epsilometer.claims import GaussianClaim

    same = AdaptiveSteps(first=0.6, low=0.8, high=0.8, threshold=0.0)
    assert same.epsilon(1e-3) == pytest.approx(GaussianClaim(1.0).epsilon_at(1e-3), rel=1e-3)


def test_bounds_hold_as_often_as_they_say_and_without_rare_trainings_do_not() -> None:
    rng, delta = np.random.default_rng(5), 0.003
    truth = RARE.epsilon(delta)
    bounds, naive = [], []
    for _ in range(200):
        pilot, rest = RARE.paths(RARE.trainings(10, rng)), RARE.paths(RARE.trainings(1000, rng))
        bounds.append(certified_epsilons(pilot, rest, 1000, delta, 0.9)[0])
        naive.append(epsilons_within(budgets_of(pilot), np.zeros(1), delta)[0])
    assert np.mean(np.array(bounds) < truth) <= 0.1
    assert np.mean(np.array(naive) < truth) > 0.5


def test_many_trainings_prove_less_than_the_worst_case_and_no_less_than_the_truth() -> None:
    rng = np.random.default_rng(6)
    rare = AdaptiveSteps(first=0.3, low=0.1, high=4.0, threshold=4.5)  # some 1 in 70,000
    pilot, rest = rare.paths(rare.trainings(500, rng)), rare.paths(rare.trainings(1500, rng))
    found = certified_epsilons(pilot, rest, 1500, DELTA, 0.95)[0]
    assert rare.epsilon(DELTA) <= found < 0.1 * _worst(rare, DELTA)
    few = certified_epsilons(pilot, rare.paths(rare.trainings(6, rng)), 6, DELTA, 0.95)[0]
    assert few == np.inf  # δ is less than what 6 trainings leave open
    wanted = trainings_wanted(pilot, DELTA, 0.95, _worst(rare, DELTA))
    assert wanted is not None
    assert 2 / DELTA < wanted < 2000
    assert trainings_wanted(pilot, 1e-5, 0.95, _worst(rare, 1e-5)) >= 1000 * wanted


def test_trainings_without_the_record_may_be_stopped_more_often() -> None:
    """The costly step is seldom reached with the record (0.13 %), and often without it (16 %). Who adds how often
    trainings *with* it are stopped to δ is below the truth."""
    steps = AdaptiveSteps(first=-2.0, low=0.1, high=4.0, threshold=1.0)
    stopped, delta = np.array([0.00135]), 0.05
    budgets = np.array([steps.moment(steps.first, a) + steps.moment(steps.low, a) for a in ORDERS])[:, None]
    truth = steps.epsilon(delta)
    one_direction = converted(np.array(ORDERS), budgets / (np.array(ORDERS) - 1)[:, None], delta - stopped)[0]
    assert one_direction < truth - 0.5
    assert epsilons_within(budgets, stopped, delta)[0] >= truth


def test_limits_on_how_often() -> None:
    assert float(stopped_at_most(0, 100, 0.95)) == pytest.approx(1 - 0.05**0.01)
    assert stopped_at_most(np.array([3, 100]), 100, 0.95) == pytest.approx([0.07572, 1.0], abs=1e-4)
    budgets = np.ones((len(ORDERS), 2))
    assert exceeded(lambda a: np.array([[0.5, 2.0], [1.0, 0.5], [1.0, a]]), budgets).tolist() == [0, 2]
