import math

import numpy as np
import pytest
from scipy import integrate, stats

from epsilometer import DpSgd, account
from epsilometer.accounting import ACCOUNTANTS, calibrate, compare, curve, epsilon_floor, pld, pld_lower
from epsilometer.accounting.calibration import _calibrated
from epsilometer.accounting.renyi import log_moment
from epsilometer.claims import GaussianClaim, Relation
from epsilometer.errors import InvalidInput

SETTINGS = [DpSgd(0.05, 1.0, 200), DpSgd(0.01, 4.0, 5000), DpSgd(0.3, 3.0, 50), DpSgd(1.0, 5.0, 10)]


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("mechanism", SETTINGS, ids=DpSgd.describe)
def test_tighter_proofs_give_smaller_epsilons(mechanism: DpSgd, relation: Relation) -> None:
    found = {b.accountant: b.epsilon for b in compare(mechanism, 1e-5, relation)}
    assert found.keys() == ACCOUNTANTS.keys()
    assert found["pld"] <= found["rdp"] <= found["rdp-classic"] <= found["moments"] + 1e-9
    assert found["moments"] <= found["basic"]


def test_moments_match_dp_accounting_at_whole_orders() -> None:
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, rdp

    orders = [2, 3, 8, 32]
    accountant = rdp.RdpAccountant(orders)
    accountant.compose(PoissonSampledDpEvent(0.04, GaussianDpEvent(1.1)))
    ours = [log_moment(float(a), 0.04, 1.1, Relation.ADD_REMOVE) / (a - 1) for a in orders]
    np.testing.assert_allclose(ours, accountant.rdp, rtol=1e-9)


def test_one_full_batch_step_is_the_gaussian_mechanism() -> None:
    assert account(DpSgd(1.0, 1.0, 1), 1e-5).epsilon == pytest.approx(4.377, abs=1e-3)
    assert account(DpSgd(1.0, 2.0, 1), 1e-5, "replace").epsilon == pytest.approx(4.377, abs=1e-3)
    assert account(DpSgd(1.0, 2.0, 4), 1e-5).epsilon == pytest.approx(4.377, abs=1e-3)


def test_zero_out_is_accounted_like_add_remove() -> None:
    mechanism = DpSgd(0.1, 1.2, 30)
    assert account(mechanism, 1e-5, "zero-out").epsilon == account(mechanism, 1e-5).epsilon


@pytest.mark.parametrize("accountant", [a for a in ACCOUNTANTS if a != "basic"])
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
def test_calibration_inverts_accounting(accountant: str, relation: Relation) -> None:
    settings = {"sample_rate": 0.05, "steps": 100, "relation": relation, "accountant": accountant}
    sigma = calibrate(epsilon=2.0, delta=1e-5, **settings)
    reached = account(DpSgd(0.05, sigma, 100), 1e-5, relation, accountant).epsilon
    assert reached <= 2.0
    assert reached == pytest.approx(2.0, rel=2e-3)


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
def test_the_curve_is_the_accountants(relation: Relation) -> None:
    mechanism = DpSgd(0.1, 1.4, 100)
    claim = curve(mechanism, relation)
    for delta in (1e-3, 1e-5, 1e-7):
        assert claim.epsilon_at(delta) == pytest.approx(account(mechanism, delta, relation).epsilon, rel=0.05)
    # Without subsampling it is a Gaussian curve, and never below it (rounding is upward).
    fprs = np.array([1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9])
    gaussian = GaussianClaim(2.0 if relation is Relation.REPLACE else 1.0)
    found = curve(DpSgd(1.0, 2.0, 4), relation).max_tpr(fprs)
    np.testing.assert_allclose(found, gaussian.max_tpr(fprs), rtol=2e-3)
    assert np.all(found >= gaussian.max_tpr(fprs) - 1e-12)


@pytest.mark.parametrize(("q", "sigma"), [(0.3, 0.8), (0.3, 0.5), (0.05, 0.5), (0.9, 2.0)])
def test_the_curve_bounds_the_optimal_attack_in_either_order_and_in_groups(q: float, sigma: float) -> None:
    """Likelihood-ratio attacks on one subsampled step: record added, removed, two added, one of each."""
    claim = curve(DpSgd(q, sigma, 1))
    x = np.linspace(-4, 5, 400)
    absent = stats.norm.sf(x / sigma)
    present = (1 - q) * absent + q * stats.norm.sf((x - 1) / sigma)
    assert np.all(present <= claim.max_tpr(absent) + 1e-9)
    small = absent < 0.1
    np.testing.assert_allclose(present[small], claim.max_tpr(absent)[small], atol=3e-3)
    assert np.all(1 - absent <= claim.max_tpr(1 - present) + 1e-9)  # the worlds swapped
    opposite = (1 - q) * absent + q * stats.norm.sf((x + 1) / sigma)
    assert np.all(present <= claim.max_tpr(opposite, group_size=2) + 1e-9)  # one removed and one added
    two = (
        (1 - q) ** 2 * absent + 2 * q * (1 - q) * stats.norm.sf((x - 1) / sigma) + q**2 * stats.norm.sf((x - 2) / sigma)
    )
    assert np.all(two <= claim.max_tpr(absent, group_size=2) + 1e-9)


def test_relations_may_be_given_by_name() -> None:
    mechanism = DpSgd(1.0, 1.0, 1)
    assert curve(mechanism, "replace") == curve(mechanism, Relation.REPLACE)
    assert curve(mechanism, "replace").max_tpr(0.05).item() == pytest.approx(0.639, abs=1e-3)
    with pytest.raises(InvalidInput, match="relation = 'bogus'"):
        curve(mechanism, "bogus")


@pytest.mark.parametrize(("sigma", "steps"), [(30.0, 1000), (300.0, 100_000)])
@pytest.mark.parametrize("delta", [1e-5, 1e-8, 1e-10, 1e-12])
def test_rounding_never_proves_too_much(sigma: float, steps: int, delta: float) -> None:
    """Sampling at a rate of almost 1 goes through the numerical composition, whose truth is then known."""
    truth = GaussianClaim(2 * math.sqrt(steps) / sigma).epsilon_at(delta)
    assert account(DpSgd(1 - 1e-13, sigma, steps), delta, "replace").epsilon >= truth - 1e-6


@pytest.mark.parametrize("name", list(ACCOUNTANTS))
@pytest.mark.parametrize(
    "mechanism", [DpSgd(0.1, 0.0, 10), DpSgd(0.1, 0.02, 10), DpSgd(0.1, 1e-6, 10), DpSgd(1e-4, 1e6, 10)]
)
def test_extremes_are_numbers(name: str, mechanism: DpSgd) -> None:
    for delta in (0.0, 1e-5, 0.5):
        epsilon = account(mechanism, delta, accountant=name).epsilon
        assert epsilon >= 0
        if mechanism.noise_multiplier == 0:
            assert epsilon == math.inf


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: DpSgd(0.0, 1.0, 1), "sample_rate = 0"),
        (lambda: DpSgd(0.1, -1.0, 1), "noise_multiplier = -1"),
        (lambda: DpSgd(0.1, math.inf, 1), "noise_multiplier = inf"),
        (lambda: DpSgd(0.1, 1.0, 0), "steps = 0"),
        (lambda: DpSgd(0.1, 1e-170, 1), "noise_multiplier = 1e-170"),
        (lambda: DpSgd(0.1, 1e200, 1), "noise_multiplier = 1e.200"),
        (lambda: DpSgd(0.1, 1.0, 10**30), "steps = 1000"),
        (lambda: calibrate(epsilon=math.inf, delta=1e-5, sample_rate=0.1, steps=1), "epsilon = inf"),
        (lambda: account(DpSgd(0.1, 1.0, 1), 2.0), "delta = 2"),
        (lambda: account(DpSgd(0.1, 1.0, 1), 1e-5, accountant="pdl"), "did you mean 'pld'"),
        (lambda: calibrate(epsilon=0.0, delta=1e-5, sample_rate=0.1, steps=1), "epsilon = 0"),
        (lambda: calibrate(epsilon=1.0, delta=0.0, sample_rate=0.1, steps=1), "delta = 0"),
    ],
)
def test_misuse_is_refused_in_words(call, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        call()


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.ZERO_OUT, Relation.REPLACE])
@pytest.mark.parametrize(
    "mechanism",
    [
        DpSgd(0.1, 1.386, 100), DpSgd(0.001, 0.5, 20), DpSgd(0.5, 10.0, 10), DpSgd(0.1, 0.3, 50),
        DpSgd(1e-4, 2.0, 10_000), DpSgd(3e-4, 4.0, 10_000),  # a thousandth below `epsilon` was 8 and 1 % too much
    ],
)  # fmt: skip
def test_the_floor_is_below_what_finer_bins_give(
    mechanism: DpSgd, relation: Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    floor, usual = epsilon_floor(mechanism, 1e-5, relation), pld.epsilon(mechanism, 1e-5, relation)
    width = pld._bin_width(mechanism) / 8
    monkeypatch.setattr(pld, "_bin_width", lambda _: width)
    pld._distribution.cache_clear()
    finer = pld.epsilon(mechanism, 1e-5, relation)
    pld._distribution.cache_clear()
    assert 0.995 * finer < floor < finer <= usual


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize(("rate", "sigma", "width"), [(0.1, 1.386, 1e-3), (1e-4, 2.0, 5e-6), (0.3, 0.3, 0.005)])
def test_intervals_are_a_post_processing_of_a_step(rate: float, sigma: float, width: float, replaced: bool) -> None:
    """Each has its true mass, and no more loss than seeing it tells; together they are everything."""
    step = pld_lower._Step(rate, 1.0 / sigma, replaced)
    told = list(pld_lower._intervals(step, width))
    assert sum(mass for _, mass in told) == pytest.approx(1.0, abs=1e-13)
    # e^-loss times its mass is the mass in the other world, or more: rounded down, never up.
    other = math.fsum(mass * math.exp(-multiple * width) for multiple, mass in told)
    assert 1.0 - 1e-12 <= other <= 1.0 + 1e-4 * width
    shown = math.fsum(mass * max(0.0, -math.expm1(1e-3 - multiple * width)) for multiple, mass in told)
    mu = 1.0 / sigma
    x = np.linspace(-12.0, 12.0 + mu, 2_000_001)
    density = (1 - rate) * stats.norm.pdf(x) + rate * stats.norm.pdf(x - mu)
    other_density = stats.norm.pdf(x)
    if replaced:
        other_density = (1 - rate) * other_density + rate * stats.norm.pdf(x + mu)
    exact = float(integrate.trapezoid(np.maximum(0.0, density - math.exp(1e-3) * other_density), x))
    assert 0.99 * exact <= shown <= exact + 1e-12


def test_the_floor_is_finite_where_rounding_hides_the_delta() -> None:
    """`epsilon` says ∞ there, which as a lower bound would be false: an unsampled Gaussian has 27.7 at δ = 1e-13."""
    mechanism = DpSgd(0.5, 1.0, 10)
    assert account(mechanism, 1e-13).epsilon == math.inf
    assert 0 < epsilon_floor(mechanism, 1e-13, Relation.ADD_REMOVE) < 27.7
    assert epsilon_floor(DpSgd(0.1, 1e-4, 100), 1e-5, Relation.ADD_REMOVE) == 0.0  # bins would not fit


def plainly_calibrated(epsilon: float, sample_rate: float, steps: int) -> float:
    """Doubling and bisection, with a look at every noise multiplier."""

    def reached(sigma: float) -> bool:
        return account(DpSgd(sample_rate, sigma, steps), 1e-5).epsilon <= epsilon

    high = 1.0
    while not reached(high):
        high *= 2
    low = high / 2
    while reached(low):
        low, high = low / 2, low
    while high / low > 1.0001:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


@pytest.mark.parametrize(("epsilon", "sample_rate", "steps"), [(4.0, 0.1, 100), (0.05, 0.01, 100), (100.0, 0.2, 20)])
def test_calibration_looks_at_few_noise_multipliers(
    epsilon: float, sample_rate: float, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may take seconds; the answer is what it was, bit for bit: stored plans have it."""
    looked = []

    def counting(mechanism: DpSgd, *rest: object) -> object:
        looked.append(mechanism)
        return account(mechanism, *rest)

    _calibrated.cache_clear()  # other tests of this process may have asked for the same
    monkeypatch.setattr("epsilometer.accounting.calibration.account", counting)
    found = calibrate(epsilon=epsilon, delta=1e-5, sample_rate=sample_rate, steps=steps, relative_tolerance=1e-4)
    assert found == plainly_calibrated(epsilon, sample_rate, steps)
    assert 0 < len(looked) <= 10


def test_many_steps_are_composed_without_numbers_of_millions_of_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    from dp_accounting.pld.pld_pmf import SparsePLDPmf

    plain = pld.epsilon(DpSgd(0.1, 11.0, 1001), 1e-5, Relation.ADD_REMOVE)
    pld._distribution.cache_clear()
    monkeypatch.setattr(pld, "MANY", math.inf)
    assert pld.epsilon(DpSgd(0.1, 11.0, 1001), 1e-5, Relation.ADD_REMOVE) == plain
    pld._distribution.cache_clear()
    monkeypatch.undo()
    monkeypatch.delattr(SparsePLDPmf, "self_compose")  # which would ask whether size ** steps is more than 1000
    assert pld.epsilon(DpSgd(0.1, 11.0, 1001), 1e-5, Relation.ADD_REMOVE) == plain


def test_too_many_steps_are_refused() -> None:
    for call in (account, lambda mechanism, _: curve(mechanism)):
        with pytest.raises(InvalidInput, match="steps = 100000000: expected a whole number from 1 to 2,000,000"):
            call(DpSgd(0.1, 110.0, 10**8), 1e-5)
    assert account(DpSgd(1.0, 1e4, 10**8), 1e-5).epsilon == pytest.approx(account(DpSgd(1.0, 1.0, 1), 1e-5).epsilon)


@pytest.mark.parametrize("mechanism", [DpSgd(0.1, 0.1516, 100), DpSgd(0.02, 0.12, 2000)], ids=DpSgd.describe)
def test_bins_are_no_finer_than_a_large_loss_needs(mechanism: DpSgd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Millions of them, for one ε of hundreds, took half a minute; it is right to 1e-4 of itself all the same."""
    losses = pld._distribution(mechanism, Relation.ADD_REMOVE)._pmf_remove
    assert losses.size < 400_000
    coarse = pld.epsilon(mechanism, 1e-5, Relation.ADD_REMOVE)
    width = pld._bin_width(mechanism)
    pld._distribution.cache_clear()
    monkeypatch.setattr(pld, "_bin_width", lambda _: width / 3)
    fine = pld.epsilon(mechanism, 1e-5, Relation.ADD_REMOVE)
    pld._distribution.cache_clear()
    assert fine * (1 - 1e-6) <= coarse <= fine * (1 + 1e-4)


@pytest.mark.parametrize("mechanism", [DpSgd(0.1, 1.4, 100), DpSgd(0.01, 1.0, 10_000), DpSgd(0.3, 0.8, 50)])
def test_bins_of_usual_trainings_stay_as_they_were(mechanism: DpSgd) -> None:
    """Their curves are part of plans: other bins would be other plans, and no run directory would go on."""
    q, sigma = mechanism.sample_rate, mechanism.noise_multiplier
    assert pld._bin_width(mechanism) == min(q / (40 * sigma), 1e-3)


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
def test_sums_over_many_bins_are_those_of_dp_accounting(relation: Relation, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, epsilons = pld._distribution(DpSgd(0.1, 1.386, 100), relation), np.linspace(0.0, 6.0, 100)
    deltas = (1e-10, 1e-5, 1e-2, 0.3, 0.9)
    theirs = [whole.get_epsilon_for_delta(delta) for delta in deltas], whole.get_delta_for_epsilon(epsilons)
    assert not pld._large_parts(whole)
    monkeypatch.setattr(pld, "MANY_BINS", 0)
    assert pld._large_parts(whole)
    ours = [pld.epsilon_at(whole, delta) for delta in deltas], pld._deltas_at(whole, epsilons)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-9, atol=1e-15)


MECHANISMS = [DpSgd(0.1, 1.386, 20), DpSgd(0.3, 5.0, 1), DpSgd(1e-6, 0.6, 3), DpSgd(0.999, 50.0, 2), DpSgd(0.5, 0.4, 2)]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=DpSgd.describe)
def test_what_is_computed_here_is_dp_accountings_to_the_last_bit(mechanism: DpSgd) -> None:
    """Curves are part of plans: were a bit of them another, no run directory would go on."""
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    found = pld._distribution(mechanism, Relation.ADD_REMOVE)
    theirs = from_gaussian_mechanism(
        mechanism.noise_multiplier,
        value_discretization_interval=pld._bin_width(mechanism),
        sampling_prob=mechanism.sample_rate,
    ).self_compose(mechanism.steps)
    for ours, other in ((found._pmf_remove, theirs._pmf_remove), (found._pmf_add, theirs._pmf_add)):
        assert ours._infinity_mass == other._infinity_mass
        assert ours.to_dense_pmf()._lower_loss == other.to_dense_pmf()._lower_loss
        assert ours.to_dense_pmf()._probs.tobytes() == other.to_dense_pmf()._probs.tobytes()
    epsilons = np.r_[np.linspace(0.0, 3.0, 40), 50.0]
    for whole in (found, pld._distribution(mechanism, Relation.REPLACE)):
        assert pld._deltas_at(whole, epsilons).tobytes() == np.asarray(whole.get_delta_for_epsilon(epsilons)).tobytes()
