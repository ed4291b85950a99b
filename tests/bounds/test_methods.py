"""What all methods for scores have in common, and the mathematics of rank tests and e-processes."""

import math
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from epsilometer import PairedRuns, PointClaim, exact_rank
from epsilometer.bounds import (
    METHODS,
    BestOnSame,
    ClopperPearson,
    EProcess,
    ExactRank,
    Simultaneous,
    draw_worlds,
    eprocess,
    method_as_dict,
    method_named,
)
from epsilometer.bounds.eprocess import _log_factor
from epsilometer.bounds.named_method import Settings
from epsilometer.bounds.one_run import Threshold
from epsilometer.bounds.rank_pairs import Gaussians, Points, Ranks, Single, p_values
from epsilometer.claims import GaussianClaim
from epsilometer.errors import EvidenceMismatch, InvalidInput
from epsilometer.evidence import Counts, OneRun

CERTIFIED = [ExactRank(), ExactRank(calibrated=False), ExactRank(rank=1), EProcess(), ClopperPearson(Simultaneous())]
names = st.sampled_from(sorted({name for name, one in METHODS.items() if one.judges} - {"fixed", "one-run-point"}))
scores = st.lists(st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, math.inf, -math.inf]), min_size=2, max_size=30)


def gaussian_runs(mu: float, n: int = 300, m: int = 300, seed: int = 0, k: int = 1) -> PairedRuns:
    rng = np.random.default_rng(seed)
    return PairedRuns(rng.normal(size=n), rng.normal(mu, size=m), group_size=k)


@settings(max_examples=60)
@given(scores, scores, names, st.sampled_from(["higher", "lower", "either"]), st.integers(1, 3))
def test_any_scores_give_a_number(outs, ins, name: str, direction: str, k: int) -> None:
    runs = PairedRuns(outs, ins, group_size=k)
    found = method_named(name).bound(runs, delta=1e-5, direction=direction)
    assert 0 <= found.epsilon < math.inf
    tested = method_named(name).test(runs, GaussianClaim(1.0), direction=direction)
    assert all((str(found), str(found.proof), str(tested), found.to_dict(), tested.to_dict()))


@pytest.mark.parametrize("method", CERTIFIED, ids=repr)
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 50), (50, 1), (2, 3)])
def test_a_handful_of_trials_proves_next_to_nothing(method, n: int, m: int) -> None:
    found = method.bound(PairedRuns([0.0] * n, [1.0] * m))
    assert 0 <= found.epsilon < 2


@pytest.mark.parametrize("method", [ExactRank(), ExactRank(calibrated=False), ExactRank(rank=7)], ids=repr)
@pytest.mark.parametrize(("delta", "k"), [(0.0, 1), (1e-5, 1), (0.01, 2)])
def test_the_bound_is_the_largest_epsilon_that_the_test_refutes(method, delta: float, k: int) -> None:
    for seed in range(3):
        runs = gaussian_runs(2.0, seed=seed, k=k)
        epsilon = method.bound(runs, delta=delta).epsilon
        assert epsilon > 0.5
        assert method.test(runs, PointClaim(epsilon - 1e-6, delta)).refuted
        assert not method.test(runs, PointClaim(epsilon + 1e-6, delta)).refuted


def test_an_eprocess_bound_is_refuted_and_more_is_not() -> None:
    runs = gaussian_runs(2.0)
    epsilon = eprocess(runs, delta=1e-5).epsilon
    assert EProcess().test(runs, PointClaim(epsilon, 1e-5)).refuted
    assert not EProcess().test(runs, PointClaim(epsilon * 1.02 + 0.02, 1e-5)).refuted


@pytest.mark.parametrize("family", [Points(0.0), Points(1e-3, 2), Gaussians()], ids=repr)
@pytest.mark.parametrize(("a", "b", "n", "m"), [(1, 5, 20, 20), (3, 280, 300, 300), (1, 1, 1, 1), (5, 900, 40, 1000),
                                                (300, 4, 1000, 30), (1, 990, 1000, 1000)])  # fmt: skip
def test_p_values_are_the_integral(family, a: int, b: int, n: int, m: int) -> None:
    """Against adaptive quadrature over the law of the a-th highest out-score: never too small, hardly too large."""
    for strength in (0.3, 2.0):
        found = p_values(np.array([a]), np.array([b]), n, m, family, strength)[0]
        law, other = stats.beta(a, n - a + 1), stats.beta(b, m - b + 1)

        def integrand(q: float, law=law, other=other, strength=strength) -> float:
            return other.cdf(family.max_tpr(np.array(strength), np.array([law.ppf(q)]))[0])

        cuts = np.linspace(0, 1, 65)
        oracle = sum(integrate.quad(integrand, lo, hi, epsabs=1e-13)[0] for lo, hi in pairwise(cuts))
        assert oracle - 1e-10 <= found <= 1.06 * oracle + 1e-9


def test_p_values_are_frequencies_of_audits() -> None:
    """Against audits at the least-favourable pair."""
    claim, n, m, rng = PointClaim(1.0, 0.01), 30, 20, np.random.default_rng(2)
    ranks = Ranks(n, m, (2, 9), (1, 4))
    pairs = [ranks.shown(draw_worlds(claim, n, m, rng)) for _ in range(20_000)]
    for test, (a, b) in enumerate([(2, 6), (9, 17), (28, 20), (20, 17)]):
        shown = np.mean([(x[test] <= a) if test > 1 else (y[test] >= b) for x, y in pairs])
        expected = p_values(np.array([a]), np.array([b]), n, m, Points(0.01), 1.0)[0] / 1.01  # upper sums
        assert abs(shown - expected) < 4.5 * math.sqrt(expected * (1 - expected) / 20_000)


def test_grades_invert_p_values() -> None:
    ranks, b = Ranks(200, 200, (1, 5, 40), ()), np.array([30.0, 90.0, 150.0])
    found = ranks._of_out.strengths(b, Points(1e-5), 0.01)
    a = np.array(ranks.out_top, np.float64)
    np.testing.assert_allclose(p_values(a, b, 200, 200, Points(1e-5), found), 0.01, rtol=0.08)


def test_the_worlds_are_exchangeable() -> None:
    """Swapping the worlds and the order of scores is the same game, since claims hold in both orders."""
    runs = gaussian_runs(1.5, 200, 350)
    turned = PairedRuns(-runs.in_scores, -runs.out_scores)
    for calibrated in (True, False):
        first, second = (exact_rank(r, delta=1e-5, calibrated=calibrated).epsilon for r in (runs, turned))
        assert first == pytest.approx(second, abs=0.03 if calibrated else 1e-6)


def test_calibration_pays_less_than_a_union_bound() -> None:
    for mu in (2.0, 3.0, 4.0):
        runs = gaussian_runs(mu, 1000, 1000)
        assert exact_rank(runs, delta=1e-5).epsilon > exact_rank(runs, delta=1e-5, calibrated=False).epsilon


def test_more_simulations_change_little_and_few_trials_in_the_tail_fall_back() -> None:
    runs = gaussian_runs(2.0, 1000, 1000)
    found = [ExactRank(simulations=s, seed=5).bound(runs, delta=1e-5).epsilon for s in (1999, 9999, 39999)]
    assert max(found) - min(found) < 0.08
    sure = ExactRank().bound(runs, confidence=1 - 1e-6)
    assert 0 < sure.epsilon == ExactRank(calibrated=False).bound(runs, confidence=1 - 1e-6).epsilon


def test_proofs_can_be_recounted() -> None:
    runs = gaussian_runs(2.0)
    for direction, sign in (("higher", 1), ("lower", -1)):
        given = PairedRuns(sign * runs.out_scores, sign * runs.in_scores)
        proof = exact_rank(given, delta=1e-5, direction=direction).proof
        outs, ins = sign * given.out_scores, sign * given.in_scores
        at = sign * proof.threshold
        beyond = (lambda s, at=at: s >= at) if proof.of == "in" else (lambda s, at=at: s > at)
        assert proof.counts.fp == np.count_nonzero(beyond(outs))
        assert proof.counts.tp == np.count_nonzero(beyond(ins))
        assert f"{proof.counts}" in str(proof)


CLAIMS = [PointClaim(0.0), PointClaim(1.0, 1e-5), PointClaim(3.0, 0.01), GaussianClaim(1.0), GaussianClaim(0.2)]


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.describe())
def test_no_rates_that_a_claim_allows_make_a_bet_profitable(claim, k: int) -> None:
    """The heart of the e-process: the expected factor is at most 1, for every bet and every allowed pair of rates."""
    rng = np.random.default_rng(4)
    u_guess = rng.random(300) ** 3
    w_guess = u_guess + (1 - u_guess) * rng.random(300)
    family, zero = Single(claim, k), np.zeros(300)
    factor = {
        (x, y): np.exp(_log_factor(family, zero, u_guess, w_guess, np.full(300, x), np.full(300, y), 1))
        for x in (0, 1)
        for y in (0, 1)
    }
    assert max(f.max() for f in factor.values()) > 1.01 or claim.max_tpr(0.3, k) > 0.99
    for u in np.r_[0.0, np.geomspace(1e-6, 0.5, 40), 1 - np.geomspace(1e-6, 0.5, 40)]:
        w = claim.max_tpr(u, k).item()  # less is worse for the bettor
        expected = sum(f * (w if x else 1 - w) * (u if y else 1 - u) for (x, y), f in factor.items())
        assert expected.max() <= 1 + 1e-9


def test_a_bet_against_less_than_the_claim_would_be_profitable() -> None:
    """And the test above has teeth: rates just beyond the claim do pay."""
    claim, one = PointClaim(1.0), np.ones(1)
    factor = {
        (x, y): np.exp(_log_factor(Single(claim, 1), 0 * one, 0.1 * one, 0.6 * one, x * one, y * one, 1))[0]
        for x in (0, 1)
        for y in (0, 1)
    }
    u, w = 0.13, claim.max_tpr(0.13).item() + 0.05
    assert sum(f * (w if x else 1 - w) * (u if y else 1 - u) for (x, y), f in factor.items()) > 1


def test_sorted_files_do_not_fool_an_eprocess() -> None:
    """Trials in the order of their scores are no sequence of independent trials; shuffled they are."""
    rng, claim = np.random.default_rng(0), PointClaim(1.0)
    refuted = 0
    for _ in range(60):
        runs = draw_worlds(claim, 150, 150, rng)
        ordered = PairedRuns(np.sort(runs.out_scores), np.sort(runs.in_scores))
        refuted += EProcess().test(ordered, claim).refuted
    assert refuted <= 8


def test_equal_worlds_are_not_paired_score_by_score() -> None:
    """Worlds with the same scores must not be shuffled in the same way: pairs would no longer be independent."""
    same = PairedRuns(np.arange(200.0), np.arange(200.0))
    _, orders = EProcess()._orders(same)
    assert all(np.mean(ordered.out_scores == ordered.in_scores) < 0.1 for ordered in orders)


@settings(max_examples=60)
@given(st.integers(1, 60), st.floats(0, 5), st.integers(0, 999), st.booleans())
def test_the_boundary_has_what_was_shown(n: int, mu: float, seed: int, discrete: bool) -> None:
    """Else the simulated event would be rarer than what was seen, and its p-value too small."""
    runs = gaussian_runs(mu, n, n, seed)
    if discrete:
        runs = PairedRuns(np.round(runs.out_scores), np.round(runs.in_scores))
    ranks = ExactRank()._ranks(n, n)
    for family in (Points(0.0), Points(1e-3, 2), Gaussians()):
        grades = ranks.grades(runs, family, 0.05 / ranks.tests)
        best = int(np.argmax(grades))
        if grades[best] > 0:
            a, b = ranks.boundary(family, float(grades[best]), 0.05 / ranks.tests)
            shown_a, shown_b = ranks.shown(runs)
            assert shown_a[best] <= a[best]
            assert shown_b[best] >= b[best]


def test_an_eprocess_says_when_it_is_enough() -> None:
    runs, claim = gaussian_runs(2.0, 400, 400), GaussianClaim(3.0)
    assert not EProcess().enough(runs, claim, 1e-5, 0.95)
    assert EProcess().enough(runs, GaussianClaim(1.0), 1e-5, 0.95)
    assert EProcess(target=1.0).enough(runs, claim, 1e-5, 0.95)
    assert not EProcess(target=4.0).enough(runs, claim, 1e-5, 0.95)


def test_enough_is_where_the_bound_reaches_the_target() -> None:
    """Though no ε beyond the target is looked at."""
    claim = GaussianClaim(9.0)
    for k in (1, 3):
        runs = gaussian_runs(2.0, k=k)
        proved = EProcess(in_order=True).bound(runs, delta=1e-5).epsilon
        for target in (0.5 * proved, proved, np.nextafter(proved, 9.0), 2.0 * proved, 1e3):
            assert EProcess(target=float(target)).enough(runs, claim, 1e-5, 0.95) == (proved >= target)


@pytest.mark.parametrize("together", [1, 7])
def test_bets_found_together_are_those_found_one_by_one(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    for runs in (gaussian_runs(1.0), PairedRuns(rng.integers(0, 3, 90), rng.integers(0, 4, 90))):
        whole = EProcess().test(runs, GaussianClaim(0.3))
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules[EProcess.__module__], "TOGETHER", together)
            assert EProcess().test(runs, GaussianClaim(0.3)) == whole


def test_methods_have_names_and_settings() -> None:
    for name in (name for name, one in METHODS.items() if one.judges):
        method = method_named(name, 0.5 if name == "fixed" else None, seed=3)
        assert method_as_dict(method)["name"] == method.name
    assert method_as_dict(ClopperPearson(BestOnSame())) == {
        "name": "clopper-pearson",
        "thresholds": {"name": "best-on-same"},
    }


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ExactRank(rank=0), "rank = 0"),
        (lambda: ExactRank(rank=9).bound(PairedRuns([0.0], [1.0])), "rank = 9"),
        (lambda: ExactRank(simulations=5), "simulations = 5"),
        (lambda: EProcess(target=-1.0), "target = -1"),
        (lambda: Simultaneous(simulations=1), "simulations = 1"),
        (lambda: exact_rank(gaussian_runs(1.0), delta=2.0), "delta = 2"),
        (lambda: exact_rank(gaussian_runs(1.0), confidence=1.0), "confidence = 1"),
        (lambda: exact_rank(gaussian_runs(1.0), direction="up"), "direction = 'up'"),
    ],
)
def test_misuse_is_refused_in_words(call, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        call()


@pytest.mark.parametrize("method", CERTIFIED[:4], ids=repr)
def test_evidence_of_another_kind_is_refused(method) -> None:
    for evidence in (Counts(1, 0, 0, 1), OneRun([1.0], [1])):
        with pytest.raises(EvidenceMismatch):
            method.bound(evidence)


def test_guesses_are_refused_by_whoever_has_no_use_for_them() -> None:
    """They were ignored: whoever said how many was told of another number."""
    run = OneRun(np.arange(40.0), np.arange(40) % 2)
    deaf = replace(METHODS["one-run"], takes_guesses=False)
    with pytest.raises(InvalidInput, match=r"guesses = 10: expected nothing with one-run"):
        deaf.bound(run, Settings(guesses=10))
    with pytest.raises(InvalidInput, match=r"threshold = 0\.5: expected nothing with one-run"):
        deaf.bound(run, Settings(guesses=Threshold(0.5)))
    assert deaf.bound(run, Settings()) == METHODS["one-run"].bound(run, Settings())
    assert METHODS["one-run"].bound(run, Settings(guesses=10)).proof.guesses == 10
