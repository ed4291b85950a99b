"""Moments of steps, limits on means, and what follows for one training: against slow, obvious oracles."""

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp

from epsilometer.accounting import Composition, DpSgd, account, converted
from epsilometer.accounting.renyi import log_moment
from epsilometer.claims import Relation
from epsilometer.errors import InvalidInput
from epsilometer.instances import StepMoments, individual_epsilons, log_mean_limit
from epsilometer.instances.individual import ORDERS
from epsilometer.instances.moments import LEVELS, MOST_ORDER


@pytest.mark.parametrize("sample_rate", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("share", [0.05, 0.4, 1.0])
def test_moments_are_those_of_an_integral(sample_rate: float, share: float) -> None:
    step = StepMoments(sample_rate, 1.2)
    for order in (1.5, 2.0, 2.3, 8.0, 13.7):
        exact = log_moment(order, sample_rate, 1.2 / share, Relation.ADD_REMOVE)  # the larger of both directions
        found = float(step.log_moments(share, order))
        assert found >= exact - 1e-12
        assert found == pytest.approx(exact, rel=1e-6 if order == int(order) else 2.0, abs=1e-12)


def test_tiny_moments_are_not_lost() -> None:
    """q²α(α−1)/2·s²/σ², where 1 + that would be 1."""
    found = float(StepMoments(1e-6, 10.0).log_moments(1e-3, 8.0))
    assert found == pytest.approx(1e-12 * 28 * 1e-8, rel=1e-3)


def test_levels_are_above_what_they_stand_for_and_near() -> None:
    step = StepMoments(0.1, 1.0)
    shares = np.concatenate([np.random.default_rng(0).random(1000), LEVELS])
    kept = LEVELS[step.levels(shares)]
    assert (kept >= shares).all()
    assert (kept <= np.maximum(shares * 1.02, 1e-4)).all()
    assert (step.of_levels(7.5)[step.levels(shares)] >= step.log_moments(shares, 7.5)).all()


def test_moments_refuse_what_is_no_clipped_gradient() -> None:
    with pytest.raises(InvalidInput, match="shares"):
        StepMoments(0.1, 1.0).log_moments([0.5, 1.5], 8.0)
    with pytest.raises(InvalidInput, match="noise_multiplier"):
        StepMoments(0.1, 0.0)
    assert np.isinf(StepMoments(0.1, 1.0).log_moments(0.5, MOST_ORDER + 1.0))


def test_conversion_is_that_of_dp_accounting() -> None:
    orders = np.arange(2.0, 60.0)
    divergences = np.array([[0.3], [0.01]]) * orders
    for row, epsilon in zip(divergences, converted(orders, divergences.T, 1e-5), strict=True):
        assert epsilon == pytest.approx(rdp.compute_epsilon(orders, row, 1e-5)[0], rel=1e-9)
    assert np.isinf(converted(orders, divergences.T, 0.0)).all()


def test_a_limit_on_a_mean_holds_as_often_as_it_says() -> None:
    """Least favourable: values are 0 or the cap. The plain mean lies below the truth in half of all cases."""
    rng, truth, draws = np.random.default_rng(3), 0.03, 60
    with np.errstate(divide="ignore"):
        seen = np.log((rng.random((draws, 4000)) < truth) * np.exp(5.0))
    limits = np.exp(log_mean_limit(seen, 5.0, 0.9) - 5.0)
    assert np.mean(limits < truth) <= 0.1
    assert np.mean(np.exp(seen - 5.0).mean(axis=0) < truth) > 0.4  # and fails the same test
    assert limits.min() < 0.04  # of 60 draws none: it says something


def test_a_record_with_full_gradients_has_the_worst_case() -> None:
    mechanism = DpSgd(0.05, 1.1, 40)
    found = individual_epsilons(np.ones((40, 1)), mechanism, 1e-5)[0]
    moments = StepMoments(0.05, 1.1)
    exact = converted(ORDERS, np.array([[40 * moments.log_moments(1.0, a) / (a - 1)] for a in ORDERS]), 1e-5)[0]
    assert found == pytest.approx(exact, rel=1e-9)
    assert found == pytest.approx(account(mechanism, 1e-5, accountant="rdp").epsilon, rel=0.02)


@pytest.mark.parametrize("accountant", ["rdp", "pld"])
def test_individual_accounting_adds_up_the_steps_that_were(accountant: str) -> None:
    """An obvious oracle: every step an event of its own. Rounding is up, and small."""
    shares = np.random.default_rng(1).random((5, 3)) * [1.0, 0.3, 0.0]
    mechanism = DpSgd(0.5, 1.5, 5)
    found = individual_epsilons(shares, mechanism, 1e-5, accountant=accountant)
    for record, epsilon in enumerate(found[:2]):
        whole = Composition(())
        for share in shares[:, record]:
            noise = dp_accounting.GaussianDpEvent(1.5 / share)
            whole = whole.plus(dp_accounting.PoissonSampledDpEvent(0.5, noise))
        exact = account(whole, 1e-5, accountant=accountant).epsilon
        assert exact * (1 - 1e-6) <= epsilon <= exact * 1.25
    assert found[2] < 0.05  # a conversion from Rényi divergences may leave something of nothing
    assert found[0] < account(mechanism, 1e-5, accountant=accountant).epsilon


def test_individual_accounting_wants_every_step() -> None:
    with pytest.raises(InvalidInput, match="shares"):
        individual_epsilons(np.ones((3, 2)), DpSgd(0.5, 1.5, 12), 1e-5)
    with pytest.raises(InvalidInput, match="shares"):  # what comes after the last step would be taken off
        individual_epsilons(np.ones((4, 2)), DpSgd(0.5, 1.5, 2), 1e-5)
    few = individual_epsilons(np.ones((3, 2)), DpSgd(0.5, 1.5, 12), 1e-5, steps_between=4)
    assert few.tolist() == individual_epsilons(np.ones((12, 2)), DpSgd(0.5, 1.5, 12), 1e-5).tolist()
