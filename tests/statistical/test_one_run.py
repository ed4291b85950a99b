"""One run: certified bounds exceed the truth in at most α of the audits, and come close to it.

Seeds are fixed, as in test_coverage.py: each test states what was seen with its seed.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
from repetitions import ALPHA, covers_at_length, surprising
from scipy import stats

from epsilometer import PointClaim
from epsilometer.accounting import calibrate
from epsilometer.bounds.one_run import one_run, one_run_epsilon, one_run_p_value
from epsilometer.bounds.one_run_fdp import one_run_fdp, one_run_fdp_epsilon, refute_one_run
from epsilometer.bounds.several_runs import pool_runs
from epsilometer.claims import GaussianClaim
from epsilometer.evidence import OneRun
from mechanisms import MECHANISMS, Mechanism, constant, least_favourable, randomized_response


def canaries_of(mechanism: Mechanism, rng: np.random.Generator, m: int, in_order: bool = False) -> OneRun:
    """Each canary goes through the mechanism on its own: the local case, in which one run can be tight."""
    out, inside = mechanism.draw(rng, m)
    member = rng.random(m) < 0.5
    if in_order:
        member = np.sort(member)
    return OneRun(np.where(member, inside, out), member, group_size=mechanism.group_size)


def exceeds(run: OneRun, method: str, epsilon: float, delta: float) -> bool:
    """Whether the bound is above the truth."""
    if method == "f-DP, point":  # the bound exceeds ε iff the test refutes it, and that is quicker to see
        return refute_one_run(run, PointClaim(epsilon + 1e-9, delta)).refuted
    m = len(run.scores)
    guesses = {"union-bound": None, "a quarter": max(1, m // 4), "all": m}[method]
    return one_run(run, delta=delta, guesses=guesses).epsilon > epsilon + 1e-9


def audits(mechanism: Mechanism, method: str, m: int, in_order: bool = False) -> Iterator[bool]:
    """Of audit after audit, whether the bound is above the truth."""
    rng = np.random.default_rng([m, zlib.crc32(mechanism.name.encode())])
    while True:
        run = canaries_of(mechanism, rng, m, in_order)
        yield exceeds(run, method, mechanism.epsilon, mechanism.delta)


def violations(mechanism: Mechanism, method: str, m: int, repetitions: int, in_order: bool = False) -> int:
    return sum(islice(audits(mechanism, method, m, in_order), repetitions))


METHODS = ["union-bound", "a quarter", "f-DP, point"]


@pytest.mark.parametrize("m", [20, 300])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_certified_bounds_cover(mechanism: Mechanism, method: str, m: int) -> None:
    assert not surprising(violations(mechanism, method, m, 100), 100)


@pytest.mark.full
@pytest.mark.parametrize("m", [1, 5, 100, 2000])
@pytest.mark.parametrize("method", [*METHODS, "all"])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_certified_bounds_cover_at_length(mechanism: Mechanism, method: str, m: int) -> None:
    assert covers_at_length(audits(mechanism, method, m))


@pytest.mark.parametrize("method", METHODS)
def test_a_file_sorted_by_membership_leaks_nothing(method: str) -> None:
    for mechanism in (constant(), least_favourable(1.0, 0.0, levels=5)):
        assert not surprising(violations(mechanism, method, 200, 300, in_order=True), 300)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 7, 40, 150])
def test_counts_cover_exactly(n: int, epsilon: float) -> None:
    """No simulation: randomized response makes a binomial number of guesses right."""
    correct = np.arange(n + 1)
    chance = stats.binom.pmf(correct, n, 1 / (1 + math.exp(-epsilon)))
    theorem = np.array([one_run_epsilon(n, n, int(c)) > epsilon + 1e-9 for c in correct])
    recursion = np.array([one_run_fdp_epsilon(n, n, int(c), 0.0, family="point") > epsilon + 2e-4 for c in correct])
    assert chance @ theorem <= ALPHA + 1e-12
    assert chance @ recursion <= ALPHA + 1e-12
    assert np.all(theorem | ~recursion)  # without δ the theorem is exact
    most = stats.binom.isf(ALPHA, n, 1 / (1 + math.exp(-epsilon)))  # and refutes whatever a binomial test can refute
    assert np.all(theorem == (correct > most)) or epsilon == 0


@pytest.mark.parametrize(
    ("m", "block", "probability", "epsilon"), [(200, 40, 0.03, 0.0), (200, 40, 0.04, 1.0), (1000, 100, 0.03, 0.5)]
)
def test_correlated_use_of_delta(m: int, block: int, probability: float, epsilon: float) -> None:
    """Dependent canaries, exactly: now and then a whole random block of coins is given away, else randomized response.

    Each coin is given away with probability (block/m)·probability, which is the δ of this mechanism at ε. The adversary
    guesses the block that was given away, or a random one if there is none, and repeats what it was told.
    """
    delta = probability * block / m
    correct = np.arange(block + 1)
    chance = (1 - probability) * stats.binom.pmf(correct, block, 1 / (1 + math.exp(-epsilon)))
    chance[block] += probability
    bounds = {
        "theorem": [one_run_epsilon(m, block, int(c), delta) for c in correct],
        "recursion": [one_run_fdp_epsilon(m, block, int(c), delta, family="point") for c in correct],
        "δ forgotten": [one_run_epsilon(m, block, int(c)) for c in correct],
    }
    exceeding = {name: float(chance @ (np.array(values) > epsilon + 1e-6)) for name, values in bounds.items()}
    assert exceeding["theorem"] <= ALPHA
    assert 0.5 * ALPHA < exceeding["recursion"] <= ALPHA  # it wastes little of α
    assert exceeding["δ forgotten"] > ALPHA  # the test has teeth


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_the_naive_rule_breaks_it(epsilon: float) -> None:
    """The best of all numbers of guesses on the same scores, not paid for."""
    rng = np.random.default_rng(5)
    m, repetitions, count = 300, 200, 0
    for _ in range(repetitions):
        run = canaries_of(least_favourable(epsilon, 0.0), rng, m)
        right = np.cumsum(run.member[np.argsort(-run.scores)])
        best = min(one_run_p_value(m, n, int(right[n - 1]), epsilon) for n in range(1, m + 1))
        count += best <= ALPHA
    assert surprising(count, repetitions)


@pytest.mark.parametrize(("confidence", "alpha"), [(0.95, 0.05), (0.99, 0.01), (0.5, 0.5)])
@pytest.mark.parametrize("plan", [None, "half", "all"])
@pytest.mark.parametrize("m", [1, 7, 40, 120, 200])
def test_no_luck_among_equal_scores(m: int, plan: str | None, confidence: float, alpha: float) -> None:
    """No simulation: all scores equal, in a file sorted by membership. By one draw a pattern, up to 27 % were refuted,
    13 % of them at α = .01 (a review found)."""
    guesses = {None: None, "half": max(1, m // 2), "all": m}[plan]
    chance, refuted = stats.binom.pmf(np.arange(m + 1), m, 0.5), 0.0
    for members in np.flatnonzero(chance > 1e-12):
        run = OneRun(np.ones(m), np.arange(m) < members)
        bound = one_run(run, confidence=confidence, guesses=guesses).epsilon
        refuted += chance[members] * (bound > 0)
        turned = OneRun(np.ones(m), np.arange(m) >= m - members)
        assert one_run(turned, confidence=confidence, guesses=guesses).epsilon == bound  # whatever the file's order
    assert refuted <= alpha


def test_few_different_scores_are_covered_in_sorted_files() -> None:
    """Randomized response, exactly: two scores, of which a guess takes a part."""
    m, epsilon = 12, 1.0
    chance = 1 / (1 + math.exp(-epsilon))
    for guesses in (3, 6, (4, 0), (0, 5), 12):
        refuted = 0.0
        for members in range(m + 1):
            coins = stats.binom.pmf(members, m, 0.5)
            for told_in, told_out in np.ndindex(members + 1, m - members + 1):
                weight = stats.binom.pmf(told_in, members, chance) * stats.binom.pmf(told_out, m - members, 1 - chance)
                scores = np.r_[np.arange(members) < told_in, np.arange(m - members) < told_out].astype(float)
                run = OneRun(scores, np.arange(m) < members)
                refuted += coins * weight * (one_run(run, guesses=guesses).epsilon > epsilon + 1e-9)
        assert refuted <= ALPHA


def test_ties_broken_by_position_break_it() -> None:
    """Why the order of a file does not count: a file sorted by membership would tell everything."""
    member = np.sort(np.random.default_rng(0).random(200) < 0.5)
    assert one_run_epsilon(200, 100, int(member[-100:].sum())) > 1
    assert one_run(OneRun(np.ones(200), member), guesses=(100, 0)).epsilon == 0


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_true_curves_are_not_refuted(mu: float) -> None:
    rng = np.random.default_rng(11)
    for m in (20, 500):
        refuted = halved = 0
        for _ in range(200):
            member = rng.random(m) < 0.5
            run = OneRun(rng.normal(size=m) + mu * member, member)
            refuted += refute_one_run(run, GaussianClaim(mu)).refuted
            halved += refute_one_run(run, GaussianClaim(mu / 4)).refuted
        assert not surprising(refuted, 200)
        assert m == 20 or mu < 1 or halved > 150  # and a curve that is far off is refuted


def test_pooled_runs_cover_and_prove_more() -> None:
    rng = np.random.default_rng(3)
    mechanism, repetitions, count = least_favourable(1.0, 0.0), 200, 0
    single, pooled = [], []
    for _ in range(repetitions):
        runs = [canaries_of(mechanism, rng, m) for m in (30, 50, 70)]
        # Runs whose scores have different scales: unwise, yet still valid.
        whole = pool_runs([OneRun(run.scores * scale, run.member) for run, scale in zip(runs, (1, 3, 9), strict=True)])
        count += exceeds(whole, "union-bound", 1.0, 0.0)
        single.append(one_run(runs[0], guesses=30).epsilon)
        pooled.append(one_run(pool_runs(runs), guesses=150).epsilon)
    assert not surprising(count, repetitions)
    assert np.mean(pooled) > np.mean(single) + 0.1


def test_randomized_response_is_audited_tightly() -> None:
    rng = np.random.default_rng(2)
    run = canaries_of(randomized_response(2.0), rng, 20_000)
    bounds = [one_run(run, guesses=20_000), one_run_fdp(run, delta=0.0, family="point", guesses=20_000)]
    assert all(1.9 < bound.epsilon <= 2.0 for bound in bounds)


def dirac_canaries(rng: np.random.Generator, sigma: float, per_coordinate: int) -> OneRun:
    """DP-SGD on gradients that are 1 in one coordinate each: T = 100 steps, q = .1, d = 1000 coordinates.

    Only a coordinate's sum over the steps matters to the guesser: each canary that is in adds the number of steps for
    which it was drawn, a binomial, and the noise adds up to N(0, Tσ²). Canaries of one coordinate share a score.
    """
    d, steps = 1000, 100
    member = rng.random((d, per_coordinate)) < 0.5
    signal = (rng.binomial(steps, 0.1, (d, per_coordinate)) * member).sum(axis=1)
    scores = signal + rng.normal(0, sigma * math.sqrt(steps), d)
    return OneRun(np.repeat(scores, per_coordinate), member.ravel(), in_order=True)


@pytest.mark.parametrize(("per_coordinate", "published"), [(1, 0.49), (8, 0.62)])
def test_several_elements_a_coordinate(per_coordinate: int, published: float) -> None:
    """Keinan, Shenfeld & Ligett 2025, section 6.2: ε = 2 by an RDP accountant, 100 guesses, mean of 200 audits."""
    sigma = calibrate(epsilon=2.0, delta=1e-5, sample_rate=0.1, steps=100, accountant="rdp")
    rng = np.random.default_rng(per_coordinate)
    runs = (dirac_canaries(rng, sigma, per_coordinate) for _ in range(200))
    bounds = [one_run(run, delta=1e-5, guesses=100).epsilon for run in runs]
    assert np.mean(bounds) == pytest.approx(published, abs=0.05)
    assert max(bounds) < 2
