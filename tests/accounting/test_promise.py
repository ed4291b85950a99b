"""What subjects promise: one object, whatever follows from it is what accountants and curves say."""

import math

import dp_accounting as dp
import pytest

from epsilometer.accounting import ClaimPromise, DpSgd, NoPromise, PartsPromise, StepsPromise, account, compare, curve
from epsilometer.accounting.events import Composition
from epsilometer.accounting.heterogeneous import BIN, _bin_width, pld_curve
from epsilometer.claims import GaussianClaim, PointClaim, Relation
from epsilometer.errors import InvalidInput

STEPS = DpSgd(0.1, 1.2, 50)
PARTS = dp.ComposedDpEvent([
    dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(1.2)), 50), dp.LaplaceDpEvent(2.0),
])  # fmt: skip


def test_steps_promise_what_accountants_say() -> None:
    promise = StepsPromise(STEPS)
    for relation in Relation:
        assert promise.upper_bound(1e-5, relation, "rdp") == account(STEPS, 1e-5, relation, "rdp")
        assert promise.curve(relation) == curve(STEPS, relation)
    assert promise.by_accountants(1e-5) == compare(STEPS, 1e-5)
    assert (promise.steps, promise.noise_multiplier, promise.describe()) == (STEPS, 1.2, STEPS.describe())
    assert promise.with_noise(3.0).steps == DpSgd(0.1, 3.0, 50)


def test_a_caveat_stands_beside_the_bound_and_stays_with_another_noise() -> None:
    promise = StepsPromise(STEPS, caveat="shuffled")
    assert promise.upper_bound(1e-5).caveat == "shuffled"
    assert promise.with_noise(2.0).caveat == "shuffled"


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_unlike_parts_have_a_curve_that_says_what_their_accountant_does(delta: float) -> None:
    promise = PartsPromise.of(PARTS)
    exact = promise.epsilon_at(delta)
    assert exact is not None
    assert exact <= promise.curve().epsilon_at(delta) < 1.02 * exact + 0.01
    assert exact > StepsPromise(STEPS).upper_bound(delta).epsilon
    assert (promise.steps, promise.noise_multiplier, promise.with_noise(2.0)) == (None, None, None)


def test_that_curve_is_the_one_of_dp_accounting() -> None:
    """Composed by its own accountant, which is given one part at a time."""
    step, laplace = dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(1.2)), dp.LaplaceDpEvent(2.0)
    accountant = dp.pld.PLDAccountant(dp.NeighboringRelation.ADD_OR_REMOVE_ONE)
    for part in (step, step, step, laplace):
        accountant.compose(part)
    found = PartsPromise.of(dp.ComposedDpEvent([dp.SelfComposedDpEvent(step, 3), laplace])).curve()
    for epsilon in (0.5, 0.8, 1.2):
        assert found.epsilon_at(accountant.get_delta(epsilon)) == pytest.approx(epsilon, rel=5e-3)


@pytest.mark.parametrize("sigma", [0.1, 0.03])
def test_hardly_private_parts_take_wider_bins_which_round_upward(sigma: float) -> None:
    """Bins of 1e-4 took a minute there, and gigabytes; a bin that rounded down would fall below the exact curve."""
    part = Composition.of(dp.GaussianDpEvent(sigma))
    assert BIN < _bin_width(list(part.parts)) < 0.02
    found, exact = pld_curve(part, Relation.ADD_REMOVE), GaussianClaim(1.0 / sigma)
    for delta in (1e-9, 1e-5, 1e-2, 0.5):
        wanted = exact.epsilon_at(delta)
        assert wanted <= found.epsilon_at(delta) < wanted * 1.01 or wanted > found.epsilons[-1]


def test_usual_parts_keep_fine_bins_and_hopeless_ones_promise_nothing() -> None:
    steps = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(0.8)), 10_000)
    assert _bin_width(list(Composition.of(dp.ComposedDpEvent([steps, dp.LaplaceDpEvent(0.1)])).parts)) == BIN
    hopeless = Composition.of(dp.ComposedDpEvent([dp.GaussianDpEvent(1e-5), dp.LaplaceDpEvent(1.0)]))
    assert pld_curve(hopeless, Relation.ADD_REMOVE).epsilon_at(1e-5) == math.inf


def test_parts_that_are_dp_sgd_promise_the_same() -> None:
    alike = PartsPromise.of(dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(1.2)), 50)
    assert alike.curve() == curve(STEPS)
    assert alike.epsilon_at(1e-5) == StepsPromise(STEPS).epsilon_at(1e-5)


def test_pure_parts_are_pure_on_their_curve_and_others_are_not() -> None:
    laplace = PartsPromise.of(dp.LaplaceDpEvent(2.0), 3)
    assert laplace.curve().epsilon_at(0.0) == pytest.approx(1.5)
    assert math.isinf(PartsPromise.of(PARTS).curve().epsilon_at(0.0))


def test_what_is_not_private_promises_nothing_finite() -> None:
    whole = PartsPromise.of(dp.ComposedDpEvent([dp.LaplaceDpEvent(2.0), dp.NonPrivateDpEvent()]))
    assert math.isinf(whole.epsilon_at(1e-5) or 0.0)
    assert math.isinf(whole.curve().epsilon_at(1e-5))
    assert pld_curve(whole.parts, Relation.ADD_REMOVE).max_tpr(0.01) == 1.0


def test_what_an_accountant_refuses_is_refused_when_asked_beforehand() -> None:
    promise = PartsPromise.of(PARTS)
    promise.require(1e-5, Relation.ADD_REMOVE, "pld")
    with pytest.raises(InvalidInput, match="one for unlike parts"):
        promise.require(1e-5, Relation.ADD_REMOVE, "strong")
    with pytest.raises(InvalidInput, match="one that says what"):
        promise.require(1e-5, Relation.REPLACE, "pld")
    assert {one.accountant for one in promise.by_accountants(1e-5)} == {"pld", "rdp", "rdp-classic", "basic"}


def test_a_claim_is_promised_under_its_own_relation_only() -> None:
    promise = ClaimPromise(PointClaim(1.0, 1e-5, Relation.REPLACE))
    assert promise.curve(Relation.REPLACE) == promise.claim
    assert promise.curve(Relation.ADD_REMOVE) is None
    bound = promise.upper_bound(1e-5, Relation.ADD_REMOVE)
    assert (bound.epsilon, bound.relation, bound.accountant) == (1.0, Relation.REPLACE, "its own proof")


def test_nothing_may_be_promised_in_words() -> None:
    promise = NoPromise("a defence without a proof")
    assert (promise.upper_bound(1e-5), promise.curve(), promise.epsilon_at(1e-5)) == (None, None, None)
    assert promise.describe() == "a defence without a proof"
