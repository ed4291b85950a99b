"""Mechanisms release what their definitions say, promise exactly what they keep, and refuse bad input."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from epsilometer.claims import Claim, GaussianClaim, PointClaim, Relation
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms import (
    MECHANISMS,
    AboveThreshold,
    CallableMechanism,
    Exponential,
    Gaussian,
    InputPerturbation,
    Laplace,
    Mechanism,
    RandomizedResponse,
    ReportNoisyMax,
    Sensitivity,
    mechanism_named,
    one_item_profit,
)

FPRS = np.array([1e-3, 0.01, 0.05, 0.2, 0.4, 0.5, 0.7, 0.95])
RIGHT = [name for name, one in MECHANISMS.items() if not one.fault]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# ------------------------------------------------------------------------------------------------- what comes out
def test_laplace_and_gaussian_noise_have_their_laws() -> None:
    laplace = Laplace(0.5, Sensitivity(3.0, "l1")).release([1.0, -2.0], rng(), 40_000)
    assert laplace.shape == (40_000, 2)
    assert stats.kstest(laplace[:, 0] - 1.0, stats.laplace(scale=6.0).cdf).pvalue > 1e-3
    assert stats.kstest(laplace[:, 0] - 1.0, stats.laplace(scale=6.0 * 1.05).cdf).pvalue < 1e-3  # 5 % would be seen
    gaussian = Gaussian(2.0).release(5.0, rng(), 40_000)
    assert stats.kstest(gaussian, stats.norm(5.0, 2.0).cdf).pvalue > 1e-3


def test_one_release_is_one_value() -> None:
    assert np.shape(Laplace(1.0).release(0.0, rng())) == ()
    assert Laplace(1.0).release([0.0, 1.0], rng()).shape == (2,)
    assert Laplace(1.0).release(0.0, rng(3)) == Laplace(1.0).release(0.0, rng(3))


def test_the_last_bits_tell_nothing() -> None:
    """Outputs for any value are multiples of one power of two; a plain sum would have finer ones near 0."""
    for mechanism, step in ((Laplace(1.0), 2.0**-20), (Gaussian(0.3), 2.0**-22)):
        for value in (0.0, 1.0, 0.1):
            outputs = mechanism.release(value, rng(), 10_000)
            np.testing.assert_array_equal(outputs, np.rint(outputs / step) * step)
    bare = mechanism_named("laplace-float", 1.0).release(0.0, rng(), 10_000)
    assert np.mean(bare == np.rint(bare * 2.0**20) / 2.0**20) < 0.01


def test_exponential_draws_by_its_probabilities() -> None:
    scores, mechanism = [0.0, 1.0, 3.0, -5.0], Exponential(1.5, Sensitivity(2.0, "linf"))
    expected = np.exp(np.array(scores) * 1.5 / 4.0)
    expected /= expected.sum()
    np.testing.assert_allclose(mechanism.probabilities(scores), expected)
    counts = np.bincount(mechanism.release(scores, rng(), 100_000), minlength=4)
    assert stats.chisquare(counts, expected * 100_000).pvalue > 1e-3
    twice = Exponential(1.5, Sensitivity(2.0, "linf"), monotonic=True).probabilities(scores)
    assert stats.chisquare(counts, twice * 100_000).pvalue < 1e-6
    assert Exponential(1.0).probabilities([1e6, 0.0, -1e6]).tolist() == [1.0, 0.0, 0.0]


def test_randomized_response_tells_the_truth_as_often_as_it_says() -> None:
    mechanism = RandomizedResponse(1.0, answers=4)
    counts = np.bincount(mechanism.release(2, rng(), 100_000), minlength=4)
    lie = 1.0 / (math.e + 3.0)
    assert stats.chisquare(counts, np.array([lie, lie, math.e * lie, lie]) * 100_000).pvalue > 1e-3


def test_noisy_max_is_the_argmax_of_noisy_scores() -> None:
    """Two scores: the chance of the lower one is that of a difference of two Laplace variables."""
    for noise, chance in (
        ("laplace", lambda t: (2 + t) * math.exp(-t) / 4),
        ("exponential", lambda t: math.exp(-t) / 2),
    ):
        mechanism = ReportNoisyMax(1.0, noise=noise)
        found = np.mean(mechanism.release([0.0, 3.0], rng(), 200_000) == 0)
        assert found == pytest.approx(chance(1.5), abs=4 * math.sqrt(0.1 / 200_000))
        assert abs(found - chance(3.0)) > 0.02  # half of the noise would be seen


def test_above_threshold_stops_and_has_the_noise_it_says() -> None:
    mechanism = AboveThreshold(1.0, threshold=0.0, count=2)
    found = mechanism.release(np.zeros(6), rng(), 20_000)
    above = (found == 1).sum(axis=1)
    assert above.max() == 2
    ended = found[above == 2]
    last = ended.shape[1] - 1 - np.argmax(ended[:, ::-1] == 1, axis=1)
    assert all((row[: at + 1] >= 0).all() and (row[at + 1 :] == -1).all() for row, at in zip(ended, last, strict=True))
    one = AboveThreshold(1.0).release([-4.0], rng(), 100_000)
    density = stats.laplace(scale=2.0).pdf
    expected = integrate.quad(lambda x: density(x) * stats.laplace(scale=4.0).sf(x + 4.0), -60, 60, points=[0, -4])[0]
    assert np.mean(one) == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 100_000))


def test_input_perturbation_clips_adds_noise_and_then_computes() -> None:
    noise = Laplace(1.0, Sensitivity(2.0, "l1"))
    mechanism = InputPerturbation(noise, -1.0, 1.0, query=np.mean)
    found = mechanism.release([5.0, 1.0], rng(), 20_000)
    assert found.mean() == pytest.approx(1.0, abs=0.06)
    assert found.std() == pytest.approx(math.sqrt(8.0 / 2), rel=0.05)
    assert mechanism.claim.relation is Relation.REPLACE
    with pytest.raises(InvalidInput, match=r"sensitivity of the noise = 2.0: expected at least high - low = 3"):
        InputPerturbation(noise, -1.0, 2.0)


# ------------------------------------------------------------------------------------------------- what is promised
def roc(out: np.ndarray, present: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of the best test between two laws on the same outputs."""
    order = np.argsort(-present / out)
    return np.cumsum(out[order]), np.cumsum(present[order])


def test_laplaces_curve_is_exact_and_holds_for_vectors() -> None:
    for epsilon in (0.1, 1.0, 4.0):
        x = np.linspace(-20, 20, 4001)
        fpr, tpr = stats.laplace.sf(x), stats.laplace.sf(x - epsilon)
        allowed = Laplace(epsilon).claim.max_tpr(fpr)
        assert np.all(tpr <= allowed + 1e-12)
        np.testing.assert_allclose(tpr, allowed, atol=2e-5)
    # Two entries that move by half each: below the curve of one.
    steps = stats.laplace.cdf(np.arange(-8, 8.01, 0.25))
    one, other = np.diff(steps, prepend=0), np.diff(stats.laplace.cdf(np.arange(-8, 8.01, 0.25) - 0.5), prepend=0)
    fpr, tpr = roc(np.outer(one, one).ravel(), np.outer(other, other).ravel())
    assert np.all(tpr <= Laplace(1.0).claim.max_tpr(np.minimum(fpr, 1.0)) + 1e-9)


def test_the_exponential_mechanisms_curve_is_kept_and_reached() -> None:
    draw, mechanism = rng(1), Exponential(2.0)
    for _ in range(300):
        scores = draw.normal(0, 3, 6)
        moved = scores + draw.choice([-1.0, 1.0], 6)
        fpr, tpr = roc(mechanism.probabilities(scores), mechanism.probabilities(moved))
        assert np.all(tpr <= mechanism.claim.max_tpr(np.minimum(fpr, 1.0)) + 1e-9)
    reached = []
    for lead in np.linspace(0, 10, 101):  # two outputs, one of which gains what the other loses
        fpr, tpr = (mechanism.probabilities(pair)[0] for pair in ([-lead, 0.0], [1.0 - lead, -1.0]))
        reached.append(mechanism.claim.max_tpr(fpr) - tpr)
    assert min(reached) < 1e-4
    assert np.mean(Exponential(1.9).claim.max_tpr(FPRS) < mechanism.claim.max_tpr(FPRS)) == 1.0


def test_randomized_responses_curve_is_exact() -> None:
    for answers in (2, 5):
        mechanism = RandomizedResponse(1.0, answers)
        lie = (1.0 - mechanism.truth) / (answers - 1)
        out, present = np.full(answers, lie), np.full(answers, lie)
        out[0] = present[1] = mechanism.truth
        fpr, tpr = roc(out, present)
        np.testing.assert_allclose(mechanism.claim.max_tpr(np.minimum(fpr, 1.0)), np.minimum(tpr, 1.0), atol=1e-12)
    two = RandomizedResponse(1.0).claim.max_tpr(FPRS)
    np.testing.assert_allclose(two, PointClaim(1.0).max_tpr(FPRS))


def test_gaussians_keep_their_point() -> None:
    for epsilon, delta in ((0.3, 1e-6), (1.0, 1e-5), (4.0, 1e-5)):
        analytic = Gaussian.analytic(epsilon, delta, 2.0)
        assert analytic.claim.epsilon_at(delta) == pytest.approx(epsilon, rel=1e-6)
        assert isinstance(analytic.claim, GaussianClaim)
    classic = Gaussian.classic(1.0, 1e-5)
    assert classic.noise_std == pytest.approx(math.sqrt(2 * math.log(1.25e5)))
    assert classic.claim.epsilon_at(1e-5) < 1.0
    with pytest.raises(InvalidInput, match=r"proved for ε ≤ 1 only; Gaussian\.analytic takes any"):
        Gaussian.classic(1.5, 1e-5)


@pytest.mark.parametrize("name", RIGHT)
def test_all_promise_the_epsilon_that_they_were_made_for(name: str) -> None:
    delta = 1e-5 if "gaussian" in name else 0.0
    claim: Claim = mechanism_named(name, 0.7, delta).claim
    assert claim.epsilon_at(delta) <= 0.7 + 1e-6
    if name != "gaussian-classic":
        assert claim.epsilon_at(delta) == pytest.approx(0.7, rel=1e-6)


# ------------------------------------------------------------------------------------------------- the course (Bellet)
def test_hair_colours() -> None:
    """500 dark, 399 brown at most, ε = .1: β = 4e^-5, so 'dark' with probability .973 at least."""
    mechanism = Exponential(0.1)
    assert mechanism.failure(gap=100, outputs=4) == pytest.approx(4 * math.exp(-5))
    assert round(1 - mechanism.failure(gap=100, outputs=4), 3) == 0.973
    assert mechanism.probabilities([500, 399, 399, 399])[0] >= 0.973
    assert mechanism.utility_gap(4 * math.exp(-5), 4) == pytest.approx(100)
    draws = mechanism.release([500, 399, 300, 100], rng(), 20_000)
    assert np.mean(draws == 0) >= 0.973
    assert mechanism.failure(100, 4, best=2) == pytest.approx(2 * math.exp(-5))


def test_the_utility_bound_holds() -> None:
    draw, mechanism = rng(2), Exponential(1.0)
    for _ in range(100):
        scores = np.r_[draw.normal(0, 5, 9), 6.0, 6.0]
        for gap in (1.0, 5.0, 12.0):
            low = mechanism.probabilities(scores)[scores <= scores.max() - gap].sum()
            best = int((scores == scores.max()).sum())
            assert low <= mechanism.failure(gap, len(scores), best) + 1e-12


def test_the_price_example() -> None:
    """Alice offers 3, Bob 4: profits 3, 3.01, 4 and 0 at 3, 3.01, 4 and 4.01."""
    prices = [3, 3.01, 4, 4.01]
    profits = one_item_profit([3, 4], prices)
    assert profits.tolist() == [3.0, 3.01, 4.0, 0.0]
    assert one_item_profit([], prices).tolist() == [0.0] * 4
    chances = Exponential(8.0, Sensitivity(4.01, "linf")).probabilities(profits)
    assert np.argmax(chances) == 2
    assert chances[3] == min(chances)


# ------------------------------------------------------------------------------------------------- bad input
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "1", None, True])
def test_sensitivities_and_epsilons_are_positive_numbers(value: object) -> None:
    for make in (Laplace, Exponential, ReportNoisyMax, AboveThreshold, RandomizedResponse):
        with pytest.raises(InvalidInput, match=r"epsilon (= .*|is missing): expected a number"):
            make(value)
    with pytest.raises(InvalidInput, match=r"sensitivity (= .*|is missing): expected a number"):
        Sensitivity(value)  # type: ignore[arg-type]
    for make in (Laplace, Exponential, ReportNoisyMax, AboveThreshold):
        with pytest.raises(InvalidInput, match=r"sensitivity (=|is missing)"):
            make(1.0, value)
    for calibrate in (Gaussian.classic, Gaussian.analytic):
        with pytest.raises(InvalidInput, match=r"epsilon (=|is missing)"):
            calibrate(value, 1e-5)
        with pytest.raises(InvalidInput, match="delta = "):
            calibrate(0.5, 0.0)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("value", [math.nan, [0.0, math.inf], "text", [[1.0], [2.0, 3.0]], 1j])
def test_values_are_finite_numbers(name: str, value: object) -> None:
    mechanism = mechanism_named(name, 0.5, 1e-5 if "gaussian" in name else 0.0)
    with pytest.raises(InvalidInput):
        mechanism.release(value, rng())


def test_norms_do_not_mix() -> None:
    Gaussian(1.0, Sensitivity(1.0, "l1"))  # what is at most 1 in l1 is so in l2
    with pytest.raises(InvalidInput, match=r"sensitivity = '1 in l2': expected one in l1"):
        Laplace(1.0, Sensitivity(1.0, "l2"))
    with pytest.raises(InvalidInput, match="norm = 'l3': expected one of l1, l2, linf, records"):
        Sensitivity(1.0, "l3")


def test_neighbours_must_be_neighbours() -> None:
    stated = Sensitivity(1.0, "l1")
    stated.require_neighbours([0.0, 0.0], [0.5, -0.5])
    with pytest.raises(InvalidInput, match=r"distance of neighbours = 2.0: expected at most the sensitivity, 1 in l1"):
        stated.require_neighbours([0.0, 0.0], [1.0, -1.0])
    with pytest.raises(InvalidInput, match="two equal values"):
        stated.require_neighbours(1.0, 1.0)
    with pytest.raises(InvalidInput, match="values of one shape"):
        stated.require_neighbours([1.0], [1.0, 2.0])


def test_anything_that_can_be_called_is_a_mechanism() -> None:
    class Measurement:  # as OpenDP's: a value, and randomness of its own
        def __call__(self, arg: float) -> float:
            return arg + float(np.random.laplace())  # noqa: NPY002

    claim = PointClaim(1.0)
    found = CallableMechanism(Measurement(), claim).release(1.0, rng(), 50)
    assert found.shape == (50, 1)
    assert len(np.unique(found)) == 50
    np.testing.assert_array_equal(found, CallableMechanism(Measurement(), claim).release(1.0, rng(), 50))
    words = CallableMechanism(lambda _, generator: ["dark", "red"][generator.integers(2)], claim)
    assert len(np.unique(words.release(0, rng(), 50))) == 2
    ragged = CallableMechanism(lambda _, generator: [1.0] * generator.integers(1, 3), claim).release(0, rng(), 50)
    assert np.isnan(ragged[:, 1]).any()
    with pytest.raises(InvalidInput, match="3 releases, one a row"):
        CallableMechanism(lambda _value, _rng, _size: np.zeros(2), claim).release(0, rng(), 3)
    with pytest.raises(InvalidInput, match="something that can be called"):
        CallableMechanism("laplace", claim)  # type: ignore[arg-type]


def test_releases_are_independent_of_what_a_function_does_to_its_value() -> None:
    """Each call alone is private; a shared value would add up all noise so far, and all rows would be one array."""

    def in_place(value: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        value += generator.laplace(size=value.shape)
        return value

    def out_of_place(value: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        return value + generator.laplace(size=value.shape)

    value, buffer = np.zeros(2), np.zeros(2)
    claim = PointClaim(1.0)
    expected = CallableMechanism(out_of_place, claim).release(value, rng(), 50)
    np.testing.assert_array_equal(CallableMechanism(in_place, claim).release(value, rng(), 50), expected)
    np.testing.assert_array_equal(value, 0.0)

    def from_a_buffer(value: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        np.copyto(buffer, out_of_place(value, generator))
        return buffer

    np.testing.assert_array_equal(CallableMechanism(from_a_buffer, claim).release(value, rng(), 50), expected)


def test_broken_mechanisms_claim_what_the_right_ones_keep() -> None:
    for name, one in MECHANISMS.items():
        mechanism: Mechanism = mechanism_named(name, 1.0, 1e-5 if "gaussian" in name else 0.0)
        assert mechanism.claim.epsilon_at(1e-5) <= 1.0 + 1e-6
        assert bool(one.fault) != bool(one.summary)
        value = np.zeros(one.entries) if one.entries > 1 else 0.0
        assert len(mechanism.release(value, rng(), 3)) == 3
    assert sum(name.startswith("sparse-vector") for name in MECHANISMS) == 5


def test_a_data_set_has_no_price_that_nobody_bids() -> None:
    found = mechanism_named("exponential-data-outputs", 1.0).release([3.0, 4.0], rng(), 100)
    assert set(found) == {3.0, 4.0}
