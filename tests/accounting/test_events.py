"""Accountants on dp-accounting's events: counts, unlike parts, refusals, and a running budget."""

import math

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant

from epsilometer.accounting import (
    ACCOUNTANTS,
    Budget,
    BudgetExceeded,
    Composition,
    DpSgd,
    ExponentialEvent,
    account,
)
from epsilometer.claims import Relation
from epsilometer.errors import InvalidInput

DELTA = 1e-5
GAUSSIAN, LAPLACE, EXPONENTIAL = dp.GaussianDpEvent(5.0), dp.LaplaceDpEvent(8.0), ExponentialEvent(0.2)
STEP, RESPONSE = dp.PoissonSampledDpEvent(0.05, dp.GaussianDpEvent(1.2)), dp.RandomizedResponseDpEvent(0.6, 4)
ALL = [GAUSSIAN, LAPLACE, EXPONENTIAL, STEP, RESPONSE, dp.PoissonSampledDpEvent(0.1, LAPLACE), dp.ZCDpEvent(0.01)]


def relation_of(event: object) -> Relation:
    return Relation.REPLACE if isinstance(event, dp.RandomizedResponseDpEvent) else Relation.ADD_REMOVE


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("event", ALL, ids=str)
def test_composing_n_times_is_a_count_of_n(event: object, accountant: str) -> None:
    """With every accountant that takes the event; the others refuse all four forms alike."""
    forms = [
        dp.SelfComposedDpEvent(event, 6),
        dp.ComposedDpEvent([event] * 6),
        dp.ComposedDpEvent(
            [dp.SelfComposedDpEvent(event, 2), dp.SelfComposedDpEvent(dp.ComposedDpEvent([event] * 2), 2)]
        ),
        Composition.of(event, 6),
    ]
    found = []
    for form in forms:
        try:
            found.append(account(form, DELTA, relation_of(event), accountant).epsilon)
        except InvalidInput as refusal:
            found.append(str(refusal))
    assert len(set(found)) == 1
    if isinstance(found[0], float):
        assert found[0] > account(event, DELTA, relation_of(event), accountant).epsilon > 0


def test_what_dp_accounting_gets_wrong_with_counts() -> None:
    """Its PLD accountant (0.6.0) takes 50 randomized responses for one. If this fails, it was repaired."""
    theirs = PLDAccountant(dp.NeighboringRelation.REPLACE_ONE)
    theirs.compose(RESPONSE, 50)
    once = account(RESPONSE, DELTA, "replace").epsilon
    assert theirs.get_epsilon(DELTA) == pytest.approx(once, abs=1e-3)
    many = account(dp.SelfComposedDpEvent(RESPONSE, 50), DELTA, "replace").epsilon
    one_by_one = PLDAccountant(dp.NeighboringRelation.REPLACE_ONE)
    for _ in range(50):
        one_by_one.compose(RESPONSE)
    assert many == pytest.approx(one_by_one.get_epsilon(DELTA), rel=1e-3)
    assert many > 5 * once


def test_events_that_are_dp_sgd_are_accounted_as_that() -> None:
    steps = dp.SelfComposedDpEvent(STEP, 200)
    for accountant in ACCOUNTANTS:
        expected = account(DpSgd(0.05, 1.2, 200), DELTA, "add-remove", accountant).epsilon
        assert account(steps, DELTA, "add-remove", accountant).epsilon == expected
    # Unlike Gaussians without sampling are one: 1/σ² adds up.
    both = account(dp.ComposedDpEvent([dp.GaussianDpEvent(3.0), dp.GaussianDpEvent(4.0)]), DELTA).epsilon
    assert both == pytest.approx(account(DpSgd(1.0, 12 / 5, 1), DELTA).epsilon)


@pytest.mark.parametrize(("epochs", "moments", "strong"), [(100, 1.2586, 9.353), (400, 2.576, 24.245)])
def test_golden_abadi(epochs: int, moments: float, strong: float) -> None:
    """Abadi et al. (2016): q = .01, σ = 4, δ = 1e-5; their figure has 1.26 / 2.55 and 9.34 / 24.22."""
    event = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(4.0)), 100 * epochs)
    assert account(event, 1e-5, accountant="moments").epsilon == pytest.approx(moments, abs=6e-4)
    assert account(event, 1e-5, accountant="strong").epsilon == pytest.approx(strong, abs=6e-4)


def test_pca_then_sgd() -> None:
    """Unlike parts cost more than each, and less than both by themselves; tighter proofs give less."""
    pca, sgd = (
        dp.GaussianDpEvent(16.0),
        dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(8.0)), 1000),
    )
    whole = dp.ComposedDpEvent([pca, sgd])
    found = {name: account(whole, DELTA, "add-remove", name).epsilon for name in ACCOUNTANTS if name != "strong"}
    assert found["pld"] <= found["rdp"] <= found["rdp-classic"] <= found["moments"] + 1e-9 <= found["basic"]
    for name, epsilon in found.items():
        alone = [account(part, DELTA, "add-remove", name).epsilon for part in (pca, sgd)]
        assert max(alone) < epsilon
    theirs = PLDAccountant()
    theirs.compose(whole)
    assert found["pld"] == pytest.approx(theirs.get_epsilon(DELTA), rel=1e-3)
    their_rdp = dp.rdp.RdpAccountant()
    their_rdp.compose(whole)
    assert found["rdp"] == pytest.approx(their_rdp.get_epsilon(DELTA), rel=2e-3)


def test_pure_parts_at_delta_0() -> None:
    whole = dp.ComposedDpEvent([dp.SelfComposedDpEvent(LAPLACE, 3), EXPONENTIAL])
    assert account(whole, 0.0, accountant="basic").epsilon == pytest.approx(3 / 8 + 0.2)
    assert account(whole, 0.0).epsilon == pytest.approx(3 / 8 + 0.2, rel=1e-2)
    assert account(whole, 0.0, accountant="rdp").epsilon == math.inf
    response = account(RESPONSE, 0.0, "replace", "basic").epsilon
    assert response == pytest.approx(math.log((1 - 0.6 + 0.15) / 0.15))
    assert account(RESPONSE, 0.0, "replace").epsilon == pytest.approx(response, abs=1e-3)


def test_the_exponential_mechanisms_divergence_is_kept() -> None:
    """ε²/8 times the order, or ε: no two laws whose log-ratio has a range of ε diverge more."""
    epsilon, rng = 1.5, np.random.default_rng(0)
    for order in (1.5, 2.0, 8.0, 64.0):
        for t in rng.uniform(0, epsilon, 200):
            q = (1 - math.exp(t - epsilon)) / (math.exp(t) - math.exp(t - epsilon))
            p = np.array([q * math.exp(t), (1 - q) * math.exp(t - epsilon)])
            divergence = math.log(np.sum(p**order * np.array([q, 1 - q]) ** (1 - order))) / (order - 1)
            assert divergence <= min(epsilon, order * epsilon**2 / 8) + 1e-12


@pytest.mark.parametrize(
    ("event", "accountant", "relation", "message"),
    [
        (LAPLACE, "moments", "add-remove", "for moments: Gaussian noise"),
        (LAPLACE, "strong", "add-remove", "accountant = 'strong': expected one for unlike parts"),
        (dp.ZCDpEvent(0.1), "pld", "add-remove", "for pld: a part that it knows under add-remove"),
        (dp.PoissonSampledDpEvent(0.1, LAPLACE), "rdp", "add-remove", "for rdp: a part that it knows"),
        (RESPONSE, "pld", "add-remove", "replace or zero-out for randomized response"),
        (RESPONSE, "basic", "add-remove", "replace or zero-out for randomized response"),
        (LAPLACE, "pld", "replace", "relation = 'replace'"),
        (dp.UnsupportedDpEvent(), "pld", "add-remove", "for pld"),
        (dp.GaussianDpEvent(-1.0), "pld", "add-remove", "noise_multiplier = -1.0"),
        (dp.SelfComposedDpEvent(LAPLACE, -1), "pld", "add-remove", "count = -1"),
        ("gaussian", "pld", "add-remove", "event = 'gaussian': expected a DpSgd, or an event"),
        (None, "pld", "add-remove", "event is missing: expected a DpSgd, or an event"),
    ],
)
def test_what_an_accountant_cannot_do_it_refuses(event: object, accountant: str, relation: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        account(event, DELTA, relation, accountant)


def test_no_privacy_and_nothing_at_all() -> None:
    for name in ("pld", "rdp", "rdp-classic", "moments", "basic"):
        assert (
            account(dp.ComposedDpEvent([GAUSSIAN, dp.NonPrivateDpEvent()]), DELTA, accountant=name).epsilon == math.inf
        )
        assert account(dp.NoOpDpEvent(), DELTA, accountant=name).epsilon == 0.0
    assert account(dp.SelfComposedDpEvent(LAPLACE, 0), DELTA, accountant="basic").epsilon == 0.0


def test_a_budget_is_never_exceeded() -> None:
    budget = Budget(1.0, DELTA)
    assert budget.spent.epsilon == 0.0
    budget.spend(LAPLACE)
    before = budget.spent.epsilon
    most = budget.most(STEP, limit=2000)
    assert 0 < most < 2000
    assert budget.spent.epsilon == before  # asking costs nothing
    with pytest.raises(BudgetExceeded, match=r"would make ε = 1\.0.* and the budget is 1 \(0\.12.* is spent\)"):
        budget.spend(STEP, most + 1)
    assert budget.spent.epsilon == before
    assert budget.spend(STEP, most).epsilon <= 1.0
    assert not budget.affords(STEP)
    assert (
        budget.spent.epsilon
        == account(dp.ComposedDpEvent([LAPLACE, dp.SelfComposedDpEvent(STEP, most)]), DELTA).epsilon
    )


def test_a_budget_takes_dp_sgd_and_refuses_bad_input() -> None:
    budget = Budget(3.0, DELTA, accountant="rdp")
    budget.spend(DpSgd(0.05, 1.2, 50))
    assert budget.booked.parts == ((STEP, 50),)
    assert budget.spent.epsilon == account(DpSgd(0.05, 1.2, 50), DELTA, accountant="rdp").epsilon
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InvalidInput, match="epsilon"):
            Budget(wrong, DELTA)
    with pytest.raises(InvalidInput, match="count = 0"):
        budget.spend(LAPLACE, 0)
    with pytest.raises(InvalidInput, match="accountant = 'pdl'"):
        Budget(1.0, DELTA, accountant="pdl")
