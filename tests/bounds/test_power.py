import math

import numpy as np
import pytest
from scipy import stats

from epsilometer import (
    Counts,
    GaussianClaim,
    InvalidInput,
    PairedRuns,
    PointClaim,
    clopper_pearson,
    eps_opt,
    refutation_power,
    trials_to_refute,
)
from epsilometer.bounds import UnionBound, attack_strength, simulated_power
from epsilometer.bounds.power import _power_at


def test_eps_opt_grows_with_trials_and_shrinks_with_groups() -> None:
    assert eps_opt(1) == pytest.approx(0.0)
    assert eps_opt(100) < eps_opt(1000) < eps_opt(100_000)
    assert eps_opt(1000, delta=1e-5, k=4) < eps_opt(1000, delta=1e-5, k=2) < eps_opt(1000, delta=1e-5)


@pytest.mark.parametrize(("fpr", "tpr", "n"), [(0.1, 0.5, 40), (0.0, 1.0, 30), (0.02, 0.9, 25)])
def test_power_is_the_enumerated_probability(fpr: float, tpr: float, n: int) -> None:
    claim = PointClaim(1.0, 1e-3)
    oracle = sum(
        stats.binom.pmf(fp, n, fpr) * stats.binom.pmf(tp, n, tpr)
        for fp in range(n + 1)
        for tp in range(n + 1)
        if clopper_pearson(Counts(tp, fp, n - tp, n - fp), delta=1e-3).epsilon > 1.0
    )
    assert _power_at(claim, fpr, tpr, n, 0.05, 1) == pytest.approx(oracle, abs=1e-9)


def test_trials_to_refute_reach_the_power_and_fewer_do_not() -> None:
    claim, truth = GaussianClaim(0.5), GaussianClaim(1.0)
    n = trials_to_refute(claim, truth)
    assert n is not None
    assert refutation_power(claim, truth, n) >= 0.95 > refutation_power(claim, truth, int(n * 0.9))


def test_a_perfect_attacker_needs_what_eps_opt_says() -> None:
    n = trials_to_refute(PointClaim(4.0, 1e-5), PointClaim(math.inf, 1e-5))
    assert n is not None
    assert eps_opt(n, delta=1e-5) > 4.0 > eps_opt(n - 1, delta=1e-5)


def test_a_true_claim_is_refuted_with_probability_alpha_at_most() -> None:
    for truth in (PointClaim(1.0, 1e-5), GaussianClaim(1.0)):
        assert refutation_power(truth, truth, 500) <= 0.05


def test_union_bound_costs_power() -> None:
    claim, truth = GaussianClaim(0.5), GaussianClaim(0.9)
    assert refutation_power(claim, truth, 300, candidates=8) < refutation_power(claim, truth, 300)


def test_simulated_power_agrees_with_the_exact_one() -> None:
    claim = GaussianClaim(0.5)
    fixed = UnionBound(thresholds=(0.5,))
    exact = _power_at(claim, stats.norm.sf(0.5), stats.norm.sf(-0.5), 150, 0.05, 1)
    simulated = simulated_power(claim, 1.0, out_trials=150, in_trials=150, thresholds=fixed, repetitions=1000)
    assert stats.binomtest(round(simulated * 1000), 1000, exact).pvalue > 1e-3


@pytest.mark.parametrize(("mu", "n"), [(0.8, 300), (1.0, 20), (3.0, 200), (0.0, 20)])
def test_attack_strength_is_a_lower_limit(mu: float, n: int) -> None:
    rng = np.random.default_rng(7)
    found = [attack_strength(PairedRuns(rng.normal(size=n), rng.normal(mu, size=n))) for _ in range(400)]
    above = sum(strength > mu for strength in found)
    assert stats.binomtest(above, 400, 0.05, alternative="greater").pvalue > 1e-3
    assert np.mean(found) > 0.75 * mu or n < 100


def test_attack_strength_at_the_extremes() -> None:
    assert attack_strength(PairedRuns([0.0, 0.0], [0.0, 0.0])) == 0
    assert 0 < attack_strength(PairedRuns([0.0] * 9, [1.0] * 9)) < math.inf


@pytest.mark.parametrize("epsilon", [709.0, 800.0, 1e5])
def test_huge_epsilons_are_numbers(epsilon: float) -> None:
    assert PointClaim(epsilon).max_tpr([0.0, 1e-300, 0.5]).tolist() == [0.0, 1.0 if epsilon > 691 else 0.0, 1.0]
    assert trials_to_refute(PointClaim(1.0, 1e-5), PointClaim(epsilon, 1e-5)) is not None


@pytest.mark.parametrize(("claim", "truth", "n"), [((2, 0), (2.5, 1e-5), 60), ((1, 1e-5), (2.5, 1e-5), 16)])
def test_no_threshold_on_a_fine_grid_has_much_more_power(claim, truth, n: int) -> None:
    claim, truth = PointClaim(*claim), PointClaim(*truth)
    rates = np.linspace(0.001, 0.5, 150)
    best = max(_power_at(claim, u, truth.max_tpr(u).item(), n, 0.05, 1) for u in rates)
    assert refutation_power(claim, truth, n) >= 0.85 * best


def test_nonsense_is_refused() -> None:
    with pytest.raises(InvalidInput, match="trials = 0"):
        eps_opt(0)
    with pytest.raises(InvalidInput, match="power = 1"):
        trials_to_refute(PointClaim(1.0), PointClaim(2.0), power=1.0)
    assert trials_to_refute(PointClaim(1.0), PointClaim(1.0)) is None
