"""Composition with expected guarantees: sound where the truth is known, and not if it is done in another way."""

import numpy as np
import pytest
from adaptive_steps import AdaptiveSteps
from scipy import special

from epsilometer.errors import InvalidInput
from epsilometer.instances import DIRECTIONS, Holder, StepMoments, at_worst, expected

# With the record, trainings seldom end where the second step costs much; the divergence is made just there.
RISING = AdaptiveSteps(first=2.0, low=0.1, high=0.8, threshold=3.0)
FALLING = AdaptiveSteps(first=1.0, low=0.8, high=0.1, threshold=-0.5)
WAYS = [Holder(order, p) for order in (2.0, 3.0, 4.5) for p in (1.5, 3.0, 10.0, 40.0)]
MANY = 100_000


def _in_another_way(step, way: Holder, direction: str, fault: str) -> float:
    """What one gets by mistake."""
    orders, weights = way.orders(2, direction), way.weights(2)
    p = 1.0 if fault == "no p" else way.p
    total = 0.0
    for i in range(2):
        at = i if fault == "first step first" else 1 - i
        order = way.order if fault == "no p" else orders[i]
        weight = {"no p": 1.0, "weights squared": weights[i] ** 2 * way.p}.get(fault, weights[i])
        seen = p * step(at, float(order))
        total += weight * float(special.logsumexp(seen, axis=0)[0] - np.log(len(seen)))
    return total


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("steps", [RISING, FALLING])
def test_expected_guarantees_are_above_the_truth(steps: AdaptiveSteps, direction: str) -> None:
    seen = steps.step(steps.trainings(MANY))
    for way in WAYS:
        assert expected(seen, 2, way, direction)[0] >= steps.truth(way.order, direction) - 1e-3


@pytest.mark.parametrize("fault", ["first step first", "no p", "weights squared"])
def test_another_order_or_other_weights_are_not(fault: str) -> None:
    """The same test, and what it refuses: steps counted from the first one; plain means; wrong weights."""
    seen, way = RISING.step(RISING.trainings(MANY)), Holder(2.0, 3.0)
    truth = RISING.truth(2.0, "with-without")
    assert _in_another_way(seen, way, "with-without", fault) < truth - 0.1
    assert expected(seen, 2, way, "with-without")[0] >= truth


def test_orders_of_one_direction_do_not_do_for_the_other() -> None:
    """Trainings with the record bound the divergence from those without it at larger orders."""
    steps = AdaptiveSteps(first=1.5, low=0.3, high=0.0, threshold=-1.0)
    seen, way = steps.step(steps.trainings(MANY)), Holder(2.0, 40.0)
    truth = steps.truth(2.0, "without-with")
    assert expected(seen, 2, way, "without-with")[0] >= truth
    assert expected(seen, 2, way, "with-without")[0] < truth - 0.02


def test_orders_and_weights_are_those_of_the_recursion() -> None:
    way = Holder(8.0, 4.0)
    order, other = 8.0, 8.0
    for i, (a, b, weight) in enumerate(
        zip(way.orders(20, "with-without"), way.orders(20, "without-with"), way.weights(20), strict=True)
    ):
        assert a == pytest.approx(order)
        assert b == pytest.approx(other)
        assert weight == pytest.approx(3.0**i / 4.0 ** (i + 1))
        order, other = 4.0 * order / 3.0 - 1.0 / 3.0, 4.0 * other / 3.0


@pytest.mark.parametrize("p", [1.0, 0.5, float("nan")])
def test_p_must_be_above_1(p: float) -> None:
    with pytest.raises(InvalidInput, match="p = "):
        Holder(8.0, p)


def test_the_gaussian_mean_of_known_data() -> None:
    """Every record has its own exact divergence there: αTs²/2σ². No bound is below it, in any record, and with a large
    p the bound comes near; the worst case is above all of them."""
    shares = np.array([0.0, 0.05, 0.3, 0.7, 1.0])
    moments = StepMoments(1.0, 5.0)
    levels = np.broadcast_to(moments.levels(shares), (3, len(shares)))
    truth = 30 * moments.log_moments(shares, 8.0)

    def step(t: int, order: float):
        return moments.of_levels(order)[levels]

    def worst(order: float) -> float:
        return float(moments.of_levels(order)[-1])

    for direction in DIRECTIONS:
        for p in (8.0, 100.0, 1e5):
            found = expected(step, 30, Holder(8.0, p), direction)
            assert (found >= truth - 1e-9).all()
        assert found[1:] == pytest.approx(truth[1:], rel=0.03)
    assert at_worst(worst, 30, 8.0) == pytest.approx(truth[-1])
