import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from epsilometer import PairedRuns
from epsilometer.bounds import Kind
from epsilometer.bounds.cosine import Cosines, cosine_canaries, gaussian_pair_delta, gaussian_pair_epsilon
from epsilometer.claims import GaussianClaim, Relation
from epsilometer.errors import EvidenceMismatch, InvalidInput
from epsilometer.json_values import json_values

DELTA = 1e-6
SIGMAS = [4.22, 1.54, 0.541]  # ε = 1, 3, 10 at δ = 1e-6


def oracle(epsilon: float, mean: float, std: float) -> float:
    """∫ max(0, p − e^ε·q) on a fine grid: slow and obvious."""
    reach = 12 * max(1.0, std)
    y = np.linspace(min(0.0, mean) - reach, max(0.0, mean) + reach, 50_001)
    gap = stats.norm.pdf(y, mean, std) - math.exp(epsilon) * stats.norm.pdf(y)
    return float(integrate.trapezoid(np.maximum(gap, 0.0), y))


@pytest.mark.parametrize("std", [0.2, 0.9, 1 - 1e-9, 1.0, 1 + 1e-9, 1.1, 3.0])
@pytest.mark.parametrize("mean", [-2.0, 0.0, 0.3, 4.0])
def test_delta_of_two_gaussians(mean: float, std: float) -> None:
    for epsilon in (0.0, 0.5, 3.0):
        found = gaussian_pair_delta(epsilon, mean, std).item()
        assert found == pytest.approx(oracle(epsilon, mean, std), abs=1e-6)


@given(st.floats(-50, 50), st.floats(1e-3, 1e3), st.floats(0, 100))
def test_delta_is_a_probability_that_falls_with_epsilon(mean: float, std: float, epsilon: float) -> None:
    first, second = gaussian_pair_delta([epsilon, epsilon + 1.0], mean, std)
    assert 0 <= second <= first + 1e-12
    assert first <= 1


@settings(max_examples=30)
@given(st.floats(0.01, 30), st.sampled_from([0.5, 1e-3, 1e-6, 1e-12]))
def test_equal_variances_are_gaussian_dp(mu: float, delta: float) -> None:
    found = gaussian_pair_epsilon(delta, mu, [1 - 1e-13, 1.0, 1 + 1e-13])
    assert found == pytest.approx([GaussianClaim(mu).epsilon_at(delta)] * 3, rel=1e-6, abs=1e-6)


@settings(max_examples=30)
@given(st.floats(-20, 20), st.floats(0.05, 20), st.sampled_from([0.9, 1e-2, 1e-6]))
def test_epsilon_is_where_the_worse_order_meets_delta(mean: float, std: float, delta: float) -> None:
    epsilon = gaussian_pair_epsilon(delta, mean, std).item()
    turned = gaussian_pair_epsilon(delta, -mean / std, 1 / std).item()
    assert epsilon == pytest.approx(turned, rel=1e-9)
    worst = max(gaussian_pair_delta(epsilon, mean, std), gaussian_pair_delta(epsilon, -mean / std, 1 / std))
    assert worst == pytest.approx(delta, rel=1e-6) if epsilon > 0 else worst <= delta


def test_arrays_are_treated_element_by_element() -> None:
    means, stds = np.array([[0.5], [2.0]]), np.array([0.8, 1.0, 1.3])
    found = gaussian_pair_epsilon(1e-5, means, stds)
    assert found.shape == (2, 3)
    for i, j in np.ndindex(2, 3):
        assert found[i, j] == pytest.approx(gaussian_pair_epsilon(1e-5, means[i, 0], stds[j]).item(), rel=1e-9)


@pytest.mark.parametrize(("mean", "std"), [(0, 1), (1e6, 1), (0, 1e-9), (0, 1e9), (1e5, 1e-5), (1e-12, 1 + 1e-12)])
def test_extremes_give_numbers(mean: float, std: float) -> None:
    for delta in (1e-300, 1e-6, 1 - 1e-12):
        epsilon = gaussian_pair_epsilon(delta, mean, std).item()
        assert 0 <= epsilon < math.inf


def test_same_laws_and_large_delta_need_no_epsilon() -> None:
    assert gaussian_pair_epsilon(1e-300, 0.0, 1.0) == 0
    assert gaussian_pair_epsilon(0.999, 1.0, 2.0) == 0


def gaussian_mechanism(rng: np.random.Generator, sigma: float, d: int, k: int) -> Cosines:
    """The sum of k random unit vectors and noise; a canary's cosine is about N(1/√(σ²d + k), 1/d)."""
    canaries = rng.normal(size=(k, d))
    canaries /= np.linalg.norm(canaries, axis=1, keepdims=True)
    update = canaries.sum(axis=0) + rng.normal(0, sigma, d)
    return Cosines(canaries @ update / np.linalg.norm(update), d)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_mechanism_in_many_dimensions(sigma: float) -> None:
    """10⁶ dimensions and 1000 canaries, by the law that the cosines then have; 500 trainings."""
    d, k, rng = 10**6, 1000, np.random.default_rng(3)
    truth = GaussianClaim(1 / sigma).epsilon_at(DELTA)
    cosines = rng.normal(1 / math.sqrt(sigma**2 * d + k), d**-0.5, (500, k))
    means, stds = cosines.mean(axis=1) * d**0.5, cosines.std(axis=1, ddof=1) * d**0.5
    same = gaussian_pair_epsilon(DELTA, means, 1.0)
    assert same.mean() == pytest.approx(truth, abs=0.04)
    assert same.std() < 0.25
    assert cosine_canaries(Cosines(cosines[0], d), delta=DELTA, same_spread=True).epsilon == pytest.approx(same[0])
    fitted = gaussian_pair_epsilon(DELTA, means, stds)
    assert cosine_canaries(Cosines(cosines[0], d), delta=DELTA).epsilon == pytest.approx(fitted[0])
    assert 0.3 < fitted.mean() - truth < 0.8  # biased upward: never a bound
    assert np.mean(fitted > truth) > 0.8


def test_more_canaries_remove_the_bias() -> None:
    d, k, rng = 10**9, 10**6, np.random.default_rng(4)
    for sigma in SIGMAS:
        run = Cosines(rng.normal(1 / math.sqrt(sigma**2 * d + k), d**-0.5, k), d)
        truth = GaussianClaim(1 / sigma).epsilon_at(DELTA)
        assert cosine_canaries(run, delta=DELTA).epsilon == pytest.approx(truth, abs=0.06)


def test_real_vectors() -> None:
    runs = [gaussian_mechanism(np.random.default_rng(seed), 0.541, 20_000, 100) for seed in range(5)]
    found = [cosine_canaries(run, delta=DELTA, same_spread=True).epsilon for run in runs]
    truth = GaussianClaim(1 / math.sqrt(0.541**2 + 100 / 20_000)).epsilon_at(DELTA)  # the canaries' own noise too
    assert np.mean(found) == pytest.approx(truth, abs=0.6)  # one run's standard deviation is .6


def test_unobserved_canaries_replace_the_closed_form() -> None:
    rng = np.random.default_rng(6)
    null = rng.normal(0.03, 0.002, 50_000)  # as of a maximum over rounds
    found = cosine_canaries(Cosines(rng.normal(0.034, 0.002, 50_000), 10**4, null), delta=1e-5, same_spread=True)
    assert found.epsilon == pytest.approx(GaussianClaim(2.0).epsilon_at(1e-5), abs=0.1)
    assert found.proof.null_mean == pytest.approx(0.03, abs=1e-4)


def test_result_is_a_labelled_estimate() -> None:
    evidence = Cosines([0.1, 0.2, 0.12], 100, relation="zero-out")
    found = cosine_canaries(evidence, delta=1e-5)
    assert found.kind is Kind.ESTIMATE
    assert found.relation is Relation.ZERO_OUT
    assert "an estimate, not a bound" in str(found)
    assert "same spread" in cosine_canaries(evidence, delta=1e-5, same_spread=True).method
    assert json.loads(json.dumps(json_values(found.to_dict())))["unobserved"] == {"mean": 0.0, "std": 0.1}
    assert "3 canaries" in str(found.proof)


@pytest.mark.parametrize(
    "values",
    [[], [0.1], [0.1] * 5, [0.1, math.nan], [0.1, math.inf], [0.1, 1.5], [[0.1, 0.2]], "cosines", [0.1, None], 0.5],
)
def test_cosines_that_cannot_be_fitted_are_refused(values: object) -> None:
    with pytest.raises(InvalidInput, match="observed"):
        Cosines(values, 100)
    with pytest.raises(InvalidInput, match="unobserved"):
        Cosines([0.1, 0.2], 100, values)


def test_misuse_is_refused() -> None:
    evidence = Cosines([0.1, 0.2], 100)
    for delta in (0.0, 1.0, -1e-5, math.nan):
        with pytest.raises(InvalidInput, match="delta"):
            cosine_canaries(evidence, delta=delta)
    for dimension in (1, 0, 2.5, 10**16):
        with pytest.raises(InvalidInput, match="dimension"):
            Cosines([0.1, 0.2], dimension)
    with pytest.raises(EvidenceMismatch):
        cosine_canaries(PairedRuns([0.1], [0.2]), delta=1e-5)
