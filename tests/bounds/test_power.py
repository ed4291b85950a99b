import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from epsilometer import PairedRuns, PointClaim
from epsilometer.bounds import (
    ClopperPearson,
    ExactRank,
    attack_strength,
    blind_spot,
    eps_opt,
    refutation_power,
    trials_to_refute,
)
from epsilometer.claims import GaussianClaim
from epsilometer.errors import InvalidInput


def test_eps_opt_grows_with_trials_and_shrinks_with_groups() -> None:
    assert eps_opt(1) == pytest.approx(0.0)
    assert eps_opt(100) < eps_opt(1000) < eps_opt(100_000)
    assert eps_opt(1000, delta=1e-5, k=4) < eps_opt(1000, delta=1e-5, k=2) < eps_opt(1000, delta=1e-5)


def test_trials_to_refute_reach_the_power_and_fewer_do_not() -> None:
    claim, truth = GaussianClaim(0.5), GaussianClaim(1.0)
    n = trials_to_refute(claim, truth)
    assert n is not None
    assert refutation_power(claim, truth, n) >= 0.95 > refutation_power(claim, truth, int(n * 0.9))


def test_a_perfect_attacker_needs_what_the_best_bound_says() -> None:
    n = trials_to_refute(PointClaim(4.0, 1e-5), PointClaim(math.inf, 1e-5))
    assert n is not None
    best = [eps_opt(trials, delta=1e-5, method=ExactRank()) for trials in (round(0.93 * n), round(1.05 * n))]
    assert best[0] < 4.0 < best[1]
    assert eps_opt(n, delta=1e-5) < 4.0  # Clopper–Pearson needs more


def test_a_true_claim_is_refuted_with_probability_alpha_at_most() -> None:
    for truth in (PointClaim(1.0, 1e-5), GaussianClaim(1.0)):
        assert refutation_power(truth, truth, 500) <= 0.05


def test_clopper_pearson_has_less_power() -> None:
    claim, truth = GaussianClaim(0.5), GaussianClaim(0.9)
    assert refutation_power(claim, truth, 200, method=ClopperPearson()) < refutation_power(claim, truth, 200)


@pytest.mark.parametrize(
    ("claim", "mu"), [pytest.param(GaussianClaim(0.5), 1.0, marks=pytest.mark.full), (PointClaim(1.0, 1e-3), 1.8)]
)
def test_power_is_the_share_of_audits_that_refute(claim, mu: float) -> None:
    """The power of rank tests is computed without audits; these are audits."""
    rng, n = np.random.default_rng(3), 120
    method = ExactRank()
    expected = method.power(claim, GaussianClaim(mu), out_trials=n, in_trials=n)
    refuted = sum(
        method.test(PairedRuns(rng.normal(size=n), rng.normal(mu, size=n)), claim).refuted for _ in range(400)
    )
    assert stats.binomtest(refuted, 400, expected).pvalue > 1e-3


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


def test_the_work_does_not_grow_with_the_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """`power --delta 0.5 --epsilon 1000` took 14 seconds, to say that more than 10^8 trials are needed."""
    looks = []
    own = ExactRank._boundary_draws

    def counting(self: ExactRank, ranks: Any, *rest: Any) -> Any:
        looks.append(self.simulations * (len(ranks.out_top) + len(ranks.in_bottom)))
        return own(self, ranks, *rest)

    monkeypatch.setattr(ExactRank, "_boundary_draws", counting)
    assert trials_to_refute(PointClaim(1000.0, 0.5), PointClaim(math.inf, 0.5)) is None
    assert 1 <= len(looks) <= 13 * 14  # 16, 64, … 10^8 trials; for each the ends, and a dozen bisections
    assert max(looks) <= 500_000  # numbers drawn


def test_nonsense_is_refused() -> None:
    with pytest.raises(InvalidInput, match="trials = 0"):
        eps_opt(0)
    with pytest.raises(InvalidInput, match="power = 1"):
        trials_to_refute(PointClaim(1.0), PointClaim(2.0), power=1.0)
    assert trials_to_refute(PointClaim(1.0), PointClaim(1.0)) is None


@pytest.mark.parametrize("claim", [PointClaim(1.0, 1e-5), GaussianClaim(1.0), GaussianClaim(0.3)])
@pytest.mark.parametrize("n", [100, 1000])
def test_rarer_leaks_than_the_blind_spot_are_missed(claim, n: int) -> None:
    """By the highest score alone they are seen with the stated probability; by the default with no more than that."""
    share = blind_spot(claim, n, n)
    rng, highest = np.random.default_rng(4), ExactRank(rank=1)
    leaks = [PairedRuns(rng.random(n), np.where(rng.random(n) < share, 2.0, rng.random(n))) for _ in range(150)]
    seen = sum(highest.test(runs, claim).refuted for runs in leaks)
    assert stats.binomtest(seen, 150, 0.8).pvalue > 1e-3
    assert ExactRank().power(claim, PointClaim(0.0, 0.9 * share), out_trials=n, in_trials=n) < 0.8
    assert blind_spot(claim, 1, 1) == 1.0
