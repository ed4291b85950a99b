import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax_privacy import auditing
from scipy import optimize, stats

from epsilometer import PairedRuns, PointClaim
from epsilometer.bounds import Guesses, Kind
from epsilometer.bounds.one_run import one_run, one_run_epsilon, one_run_p_value
from epsilometer.bounds.one_run_fdp import _least_fpr, one_run_fdp, one_run_fdp_epsilon, refute_one_run
from epsilometer.bounds.several_runs import pool_runs
from epsilometer.claims import Claim, CurveClaim, GaussianClaim
from epsilometer.errors import EvidenceMismatch, InvalidInput, NeighboursMismatch
from epsilometer.evidence import Counts, Membership, OneRun


def run_with(canaries: int, guesses: int, correct: int, group_size: int = 1) -> OneRun:
    """Canaries of which so many of the highest are in."""
    return OneRun(-np.arange(canaries), np.arange(canaries) < correct, group_size=group_size)


def gaussian_run(canaries: int = 2000, mu: float = 2.0, seed: int = 0) -> OneRun:
    rng = np.random.default_rng(seed)
    member = rng.random(canaries) < 0.5
    return OneRun(rng.normal(size=canaries) + mu * member, member)


def slow_p_value(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """Theorem 5.2, word for word."""
    w = stats.binom(r, 1 / (1 + np.exp(-epsilon)))
    beta = w.sf(v - 1)
    averages = [(w.sf(v - i - 1) - beta) / i for i in range(1, v + 1)]
    return min(1.0, beta + 2 * m * delta * max(averages, default=0.0))


@pytest.mark.parametrize("seed", range(40))
def test_p_value_is_the_theorem_word_for_word(seed: int) -> None:
    rng = np.random.default_rng(seed)
    r = int(np.exp(rng.uniform(0, 6)))
    m, epsilon, delta = r * int(rng.integers(1, 30)), rng.uniform(0, 6), 10 ** rng.uniform(-7, -1)
    for v in {0, 1, r // 2, int(rng.binomial(r, 0.8)), r}:
        found = one_run_p_value(m, r, v, epsilon, delta)
        assert found == pytest.approx(slow_p_value(m, r, v, epsilon, delta), rel=1e-9)


def test_p_value_far_out_in_the_tail() -> None:
    # Here β and most averages are 0 in floating point; the price of δ is not.
    assert one_run_p_value(5000, 5000, 5000, 0.0, 1e-5) == pytest.approx(slow_p_value(5000, 5000, 5000, 0.0, 1e-5))
    assert one_run_p_value(5000, 5000, 5000, 0.0, 1e-5) > 1e-5


@given(st.integers(1, 400), st.integers(1, 40), st.floats(0.5, 1.0), st.floats(-6, -0.5), st.floats(0, 7))
def test_p_value_grows_with_epsilon(r: int, times: int, accuracy: float, log_delta: float, epsilon: float) -> None:
    """What bisection rests on, also where 2mδ > 1 and the proof ends."""
    v = round(accuracy * r)
    grid = epsilon + np.array([0, 1e-3, 0.03, 0.3, 1.0])
    p = [one_run_p_value(r * times, r, v, float(e), 10**log_delta) for e in grid]
    assert all(b >= a * (1 - 1e-9) for a, b in itertools.pairwise(p))


@settings(max_examples=50)
@given(st.integers(1, 300), st.integers(1, 50), st.floats(0, 1), st.sampled_from([0.0, 1e-6, 1e-3]), st.integers(1, 3))
def test_epsilon_is_where_the_p_value_reaches_alpha(r: int, times: int, share: float, delta: float, k: int) -> None:
    m, v = r * times, round(share * r)
    found = one_run_epsilon(m, r, v, delta, 0.05, k)
    assert one_run_p_value(m, r, v, found + 1e-6, delta, k) > 0.05
    assert found == 0 or one_run_p_value(m, r, v, max(0.0, found - 1e-6), delta, k) <= 0.05


@pytest.mark.parametrize("seed", range(3))
def test_side_by_side_with_jax_privacy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    run = gaussian_run(int(rng.integers(50, 2000)), rng.uniform(0.5, 4), seed)
    auditor = auditing.CanaryScoreAuditor(run.scores[run.member], run.scores[~run.member])
    for number in (10, 30, len(run.scores) // 2):
        explicit = auditing.Explicit(float(np.sort(run.scores)[-number]))
        for delta in (1e-6, 1e-4):
            theirs = auditor.epsilon_one_run(0.05, delta, threshold_strategy=explicit)
            assert one_run(run, delta=delta, guesses=(number, 0)).epsilon == pytest.approx(theirs, abs=2e-6)
            theirs = auditor.epsilon_one_run_fdp(0.05, delta, threshold_strategy=explicit)
            assert one_run_fdp(run, delta=delta, guesses=(number, 0)).epsilon == pytest.approx(theirs, abs=1e-4)


def largest_probability(m: int, n: int, c: int, epsilon: float, delta: float) -> float:
    """The largest P[at least c of n right] that the inequalities of the f-DP proof allow: a linear programme."""
    right, wrong = np.arange(n + 1) / m, (n - np.arange(n + 1)) / m
    rows, limits = [], []
    for i in range(n):
        above, from_here = np.arange(n + 1) > i, np.arange(n + 1) >= i
        for slope, limit in ((np.exp(epsilon), delta), (np.exp(-epsilon), 1 - np.exp(-epsilon) * (1 - delta))):
            rows.append(right * above - slope * wrong * from_here)
            limits.append(limit)
    objective = -(np.arange(n + 1) >= c).astype(float)
    found = optimize.linprog(objective, rows, limits, np.ones((1, n + 1)), [1.0])
    return -found.fun


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.02])
@pytest.mark.parametrize(("m", "n", "c"), [(12, 12, 10), (30, 12, 12), (30, 20, 15), (15, 15, 9), (1, 1, 1)])
def test_the_recursion_solves_its_linear_programme(m: int, n: int, c: int, delta: float) -> None:
    for epsilon in (0.0, 0.4, 1.5):
        alpha = largest_probability(m, n, c, epsilon, delta)
        claim, run = PointClaim(epsilon, delta), run_with(m, n, c)
        assert not refute_one_run(run, claim, guesses=(n, 0), confidence=1 - alpha * (1 - 1e-6)).refuted
        if alpha < 1 - 1e-6:
            assert refute_one_run(run, claim, guesses=(n, 0), confidence=1 - alpha * (1 + 1e-6)).refuted


CLAIMS = [
    PointClaim(0.7, 0.01),
    PointClaim(0.0, 0.0),
    PointClaim(15.0, 0.1),
    GaussianClaim(0.0),
    GaussianClaim(1.3),
    CurveClaim((0.0, 1.0, 3.0), (0.3, 0.1, 1e-3)),
    CurveClaim((0.5, float("inf")), (0.2, 0.0)),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.describe())
def test_the_least_fpr_inverts_what_the_claim_allows(claim: Claim) -> None:
    quick, plain = _least_fpr(claim), _least_fpr.dispatch(Claim)(claim)
    for tpr in (1e-6, 1e-3, 0.05, 0.3, 0.7, 0.99, 1 - 1e-9):
        fpr = quick(tpr)
        assert fpr == pytest.approx(plain(tpr), abs=1e-12)
        assert claim.max_tpr(min(1.0, fpr + 1e-9)).item() >= tpr - 1e-8  # there the claim allows it …
        if fpr > 1e-6:
            assert claim.max_tpr(fpr - 1e-7).item() < tpr  # … and before there it does not


@settings(max_examples=50)
@given(st.integers(1, 200), st.integers(1, 30), st.floats(0, 1), st.floats(-6, -2))
def test_the_point_family_is_the_test_of_points(n: int, times: int, share: float, log_delta: float) -> None:
    m, c, delta = n * times, round(share * n), 10**log_delta
    found = one_run_fdp_epsilon(m, n, c, delta, family="point")
    run = run_with(m, n, c)
    assert not refute_one_run(run, PointClaim(found + 2e-4, delta), guesses=(n, 0)).refuted
    if found > 0:
        point = PointClaim(found - 1e-6, delta)
        same = CurveClaim((point.epsilon,), (delta,))
        assert refute_one_run(run, point, guesses=(n, 0)).refuted
        assert refute_one_run(run, same, guesses=(n, 0)).refuted


def test_families() -> None:
    run = gaussian_run()
    gaussian = one_run_fdp(run, delta=1e-5)
    given_one = one_run_fdp(run, delta=1e-5, family=GaussianClaim)
    assert gaussian.kind is given_one.kind is Kind.FAMILY
    assert gaussian.epsilon == given_one.epsilon
    point = one_run_fdp(run, delta=1e-5, family="point")
    assert point.kind is Kind.CERTIFIED
    assert point.method == "one-run f-DP (point, union-bound)"
    assert point.epsilon < gaussian.epsilon  # what is assumed is worth something
    assert one_run_fdp(run, delta=0.0, family="point").epsilon > 0


def test_many_canaries_make_theorem_5_2_pay_for_delta_but_not_the_recursion() -> None:
    # 100 right of 100. With δ = 1e-5 one canary in 1000 of 100,000 can be given away: a hundredth of all runs.
    assert one_run_epsilon(100_000, 100, 100, 0.0) == pytest.approx(3.493, abs=1e-3)
    assert one_run_epsilon(100_000, 100, 100, 1e-5) < 1
    found = one_run_fdp_epsilon(100_000, 100, 100, 1e-5, family="point")
    assert found == pytest.approx(one_run_epsilon(100_000, 100, 100, 0.0, alpha=0.04), abs=1e-2)


def test_groups_of_records() -> None:
    assert one_run_epsilon(50, 50, 45, group_size=3) == pytest.approx(one_run_epsilon(50, 50, 45) / 3)
    assert one_run_epsilon(50, 50, 45, 1e-4, group_size=3) < one_run_epsilon(50, 50, 45, 1e-4) / 3  # δ grows as well
    mu = [GaussianClaim.through(one_run_fdp_epsilon(50, 50, 45, 1e-5, group_size=k), 1e-5).mu for k in (1, 3)]
    assert mu[1] == pytest.approx(mu[0] / 3, rel=1e-6)
    found = one_run(run_with(50, 50, 45, group_size=3), guesses=(50, 0))
    assert found.group_size == 3
    assert found.epsilon == one_run_epsilon(50, 50, 45, group_size=3)
    # Twice through (ε, 0) allows less than 2ε where the rates lie on both sides of the middle.
    tighter = one_run_fdp_epsilon(50, 50, 50, 0.0, family="point", group_size=2)
    assert tighter > one_run_epsilon(50, 50, 50) / 2


def test_what_is_guessed() -> None:
    run = OneRun([5, 4, 3, 2, 1, 0], [1, 0, 1, 1, 0, 0])
    for guesses, correct in ((6, 4), (2, 2), (3, 2), ((1, 0), 1), ((2, 2), 3), ((0, 1), 1), ((0, 6), 3)):
        proof = one_run(run, guesses=guesses).proof
        assert proof == Guesses(6, guesses if isinstance(guesses, int) else sum(guesses), correct)
    assert str(one_run(run, guesses=6).proof) == "4 of 6 guesses right, 6 canaries"
    assert one_run(run).to_dict()["canaries"] == 6


def test_the_grid_is_paid_for() -> None:
    run = gaussian_run()
    found = one_run(run, delta=1e-5)
    assert found.method == "one-run (union-bound)"
    share = 0.6 / 5  # five numbers of guesses have as many "in" as "out"
    assert found.epsilon == one_run_epsilon(2000, found.proof.guesses, found.proof.correct, 1e-5, share * 0.05)
    beforehand = one_run(run, delta=1e-5, guesses=found.proof.guesses)
    assert beforehand.method == "one-run (fixed)"
    assert beforehand.epsilon > found.epsilon


def test_leaks_of_few_canaries_show_at_one_end() -> None:
    """2 % of the included ones give themselves away: .18 with as many guesses "in" as "out"."""
    rng, found = np.random.default_rng(0), []
    for _ in range(20):
        member = rng.random(2000) < 0.5
        leaks = member & (rng.random(2000) < 0.02)
        run = OneRun(rng.normal(size=2000) + 10 * leaks, member)
        found.append(one_run_fdp(run, delta=1e-5, family="point"))
    assert np.mean([bound.epsilon for bound in found]) > 0.75
    assert all(bound.proof.guesses == 20 or bound.epsilon < 0.75 for bound in found)


def test_equal_scores_tell_nothing_even_in_a_sorted_file() -> None:
    member = np.arange(1000) < 500
    run = OneRun(np.ones(1000), member)
    # Of a hundred random ones 50 would be right: 42 or 43 and more with probability .95 or .9.
    assert [one_run(run, guesses=g).proof.correct for g in (100, (100, 0), (0, 100))] == [38, 44, 44]
    # The order of a file without ties does not matter.
    run, order = gaussian_run(), np.random.default_rng(1).permutation(2000)
    assert one_run(OneRun(run.scores[order], run.member[order])).epsilon == one_run(run).epsilon


@pytest.mark.parametrize("bound", [one_run, one_run_fdp])
def test_extremes_give_numbers(bound) -> None:
    alone = bound(OneRun([1.0], [1]), delta=1e-5)
    assert alone.epsilon == 0
    assert alone.proof == Guesses(1, 1, 1)
    wrong = OneRun([-1.0] * 50 + [1.0] * 50, [1] * 50 + [0] * 50)
    assert bound(wrong, delta=1e-5).epsilon == 0
    assert bound(OneRun(-wrong.scores, wrong.member), delta=1e-5).epsilon > 1
    infinite = OneRun(np.where(np.arange(100) < 50, np.inf, -np.inf), np.arange(100) < 50)
    assert bound(infinite, delta=1e-5).epsilon > 1
    assert bound(infinite, delta=0.9).epsilon == 0  # 2mδ is far over 1
    assert bound(OneRun(np.ones(100), np.arange(100) < 50), delta=1e-5).epsilon == 0


def test_vacuous_claims_are_never_refuted() -> None:
    infinity = float("inf")
    nothing = PointClaim(infinity), PointClaim(800.0), GaussianClaim(infinity), CurveClaim((infinity,), (1.0,))
    for claim in nothing:
        test = refute_one_run(run_with(1000, 1000, 1000), claim, guesses=(1000, 0))
        assert not test.refuted
        assert test.kind is Kind.CERTIFIED
    assert "1000 of 1000 guesses right" in str(test)


def test_pooled_runs_are_one_run() -> None:
    first, second = gaussian_run(300, seed=1), gaussian_run(500, seed=2)
    pooled = pool_runs([first, second])
    assert one_run(pooled, guesses=200).proof.canaries == 800
    whole = gaussian_run(800, seed=3)
    parts = [OneRun(whole.scores[a:b], whole.member[a:b]) for a, b in ((0, 100), (100, 800))]
    assert one_run(pool_runs(parts), delta=1e-5).epsilon == one_run(whole, delta=1e-5).epsilon
    assert one_run(pool_runs(iter([first]))).epsilon == one_run(first).epsilon
    with pytest.raises(NeighboursMismatch, match="run 1 of replace"):
        pool_runs([first, OneRun([1.0], [1], relation="replace")])
    with pytest.raises(InvalidInput, match="group_size of run 1 = 2: expected 1, as in run 0"):
        pool_runs([first, OneRun([1.0], [1], group_size=2)])
    with pytest.raises(EvidenceMismatch, match="got PairedRuns"):
        pool_runs([first, PairedRuns([1.0], [1.0])])


def test_many_canaries() -> None:
    """100,000, also where the recursion is longest."""
    found = []
    for mu in (0.03, 0.5, 4.0):
        run = gaussian_run(100_000, mu)
        for bound in (one_run, one_run_fdp, lambda run, delta: one_run_fdp(run, delta=delta, family="point")):
            found.append(bound(run, delta=1e-5).epsilon)
    assert np.isfinite(found).all()
    assert found[:3] < found[3:6] < found[6:]


def test_scipy_stats_is_not_needed() -> None:
    code = "import sys, epsilometer.bounds.one_run_fdp; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: OneRun([], []), "at least one score"),
        (lambda: one_run(gaussian_run(20), guesses=21), "guesses = 21: expected a whole number from 1 to 20"),
        (lambda: one_run(gaussian_run(20), guesses=0), "guesses = 0"),
        (lambda: one_run(gaussian_run(20), guesses=2.5), "guesses = 2.5"),
        (lambda: one_run(gaussian_run(20), guesses=(15, 6)), r"guesses = \(15, 6\): expected a sum from 1 to 20"),
        (lambda: one_run(gaussian_run(20), guesses=(0, 0)), r"guesses = \(0, 0\)"),
        (lambda: one_run(gaussian_run(20), guesses=(-1, 3)), "guesses = -1"),
        (lambda: one_run(gaussian_run(20), guesses=(1, 2, 3)), "a pair"),
        (lambda: one_run(gaussian_run(20), delta=1.0), "delta = 1.0"),
        (lambda: one_run(gaussian_run(20), confidence=0.0), "confidence = 0.0"),
        (lambda: one_run_epsilon(0, 0, 0), "canaries = 0: expected a whole number from 1"),
        (lambda: one_run_epsilon(10, 11, 5), "guesses = 11"),
        (lambda: one_run_epsilon(10, 5, 6), "correct = 6"),
        (lambda: one_run_epsilon(10, 5, 5, alpha=0.0), "alpha = 0.0"),
        (lambda: one_run_p_value(10, 5, 5, -1.0), "epsilon = -1.0"),
        (lambda: one_run_fdp(gaussian_run(20), delta=0.0), "delta = 0.0: expected a δ at which the family"),
        (lambda: one_run_fdp(gaussian_run(20), delta=1e-5, family="gauss"), "did you mean 'gaussian'"),
        (
            lambda: one_run_fdp(gaussian_run(200), delta=1e-5, family=lambda _: PointClaim(0.1)),
            "family = 'refuted up to the parameter 8192': expected claims that promise less",
        ),
        (lambda: refute_one_run(gaussian_run(20), 1.0), "claim = 1.0"),
        (lambda: pool_runs([]), "at least one run"),
    ],
)
def test_misuse_is_refused_in_words(call, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        call()


@pytest.mark.parametrize("evidence", [PairedRuns([1.0], [1.0]), Counts(1, 0, 0, 1), Membership([1.0], [1])])
def test_other_evidence_is_refused(evidence) -> None:
    claim = PointClaim(1.0)
    for call in (one_run, lambda e: one_run_fdp(e, delta=1e-5), lambda e: refute_one_run(e, claim)):
        with pytest.raises(EvidenceMismatch, match=f"needs the canaries of one run .* got {type(evidence).__name__}"):
            call(evidence)
    with pytest.raises(NeighboursMismatch):
        refute_one_run(gaussian_run(20), PointClaim(1.0, relation="replace"))
