"""Bets on the coins of one step: nobody whom the claim allows wins on average, and the worst of them comes near."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from epsilometer.arrays import Floats
from epsilometer.bounds import StepProcess, bet_on_steps
from epsilometer.bounds.step_bets import Bet, right_among, right_so_far, tuned
from epsilometer.bounds.step_process import LIMITING, SLOTS
from epsilometer.claims import GaussianClaim, Relation, StepClaim
from epsilometer.errors import EvidenceMismatch, InvalidInput, NeighboursMismatch
from epsilometer.evidence import PerStep

STRENGTHS = (0.05, 1 / 1.386, 2.0)
CANARIES = (1, 2, 20, 200)


def payoffs(bet: Bet, mu: float, canaries: int) -> Floats:
    return np.exp(bet.log_payoffs(mu, canaries))


def bets(mu: float, canaries: int) -> list[Bet]:
    held = [slot.bet(mu, canaries) for slot in (*SLOTS, *LIMITING[::5])]
    return [*held, Bet(max(1, canaries // 2), 1.5, 0.01, 0.99), Bet(canaries, 3.0, 0.2, 0.5)]


def most_any_mechanism_wins(factors: Floats, mu: float, odds: float, canaries: int) -> float:
    """The largest mean of `factors` over all laws of the number of right guesses that the claim allows, by linear
    programming.

    Guesses are exchangeable; given the coins of the others, r of which are guessed right, one is right with probability
    π(r+1)·(r+1)/n and wrong with π(r)·(n−r)/n. For every κ of a grid the positive parts of their difference must add up
    to no more than δ(ln κ) on average over all canaries, of which those that are not bet on may leak nothing.
    """
    n = len(factors) - 1
    r = np.arange(n)
    right, wrong = np.zeros((n, n + 1)), np.zeros((n, n + 1))
    right[r, r + 1], wrong[r, r] = (r + 1) / n, (n - r) / n
    kappas = np.unique(np.r_[odds, np.geomspace(1.0, 50.0, 30)])
    rows, limits, parts = [], [], n * len(kappas)
    for place, kappa in enumerate(kappas):
        slack = np.zeros((n, parts))
        slack[r, place * n + r] = -1.0
        total = np.zeros((1, n + 1 + parts))
        total[0, n + 1 + place * n : n + 1 + (place + 1) * n] = n / canaries
        rows += [np.hstack([right - kappa * wrong, slack]), total]
        limits += [np.zeros(n), np.array([GaussianClaim(mu).delta_at(math.log(kappa))])]
    found = optimize.linprog(
        -np.r_[factors, np.zeros(parts)],
        A_ub=np.vstack(rows),
        b_ub=np.concatenate(limits),
        A_eq=np.r_[np.ones(n + 1), np.zeros(parts)][None],
        b_eq=[1.0],
    )
    assert found.success
    return float(-found.fun)


@pytest.mark.parametrize("mu", STRENGTHS)
@pytest.mark.parametrize("canaries", [1, 2, 5, 12])
def test_no_mechanism_that_the_claim_allows_wins(mu: float, canaries: int) -> None:
    for bet in bets(mu, canaries):
        assert most_any_mechanism_wins(payoffs(bet, mu, canaries), mu, bet.odds, canaries) <= 1.0 + 1e-7


def test_some_mechanism_wins_nearly_as_much_and_would_win_more_against_other_stakes() -> None:
    """No larger payoff could be promised; stakes that look at their own guess promise too much."""
    mu, canaries = 1 / 1.386, 20
    for bet in (slot.bet(mu, canaries) for slot in SLOTS[1:5]):
        assert most_any_mechanism_wins(payoffs(bet, mu, canaries), mu, bet.odds, canaries) > 0.999
        n, rights = bet.guesses, np.arange(bet.guesses + 1)
        total = (rights - bet.odds * (n - rights)) / canaries
        won = total * (total > 0)  # stakes of 1 where all guesses together have won: never negative, so c might be 0
        limit = GaussianClaim(mu).delta_at(math.log(bet.odds))
        assert most_any_mechanism_wins(won / limit, mu, bet.odds, canaries) > 1.2


@pytest.mark.parametrize("mu", STRENGTHS)
@pytest.mark.parametrize("canaries", CANARIES)
def test_payoffs_have_mean_one_at_most_for_independent_and_for_equally_clear_canaries(mu: float, canaries: int) -> None:
    """Exactly: independent Gaussian canaries, and one clearness for all canaries of a step (drawn from the law of the
    Gaussian's likelihood ratio), which is the worst dependence known."""
    nodes = np.linspace(-9.0, 9.0, 4_001)
    weights = stats.norm.pdf(nodes) / stats.norm.pdf(nodes).sum()
    clear = special.expit(np.abs(mu * nodes + mu**2 / 2))  # of ln LR ~ N(μ²/2, μ²), the probability of being right
    for bet in bets(mu, canaries):
        rights, won = np.arange(bet.guesses + 1), payoffs(bet, mu, canaries)
        assert won.min() >= 0
        alone = stats.binom.pmf(rights, bet.guesses, right_among(bet.guesses / canaries, mu))
        together = weights @ stats.binom.pmf(rights, bet.guesses, clear[:, None])
        assert alone @ won <= 1.0
        assert together @ won <= 1.0 + 1e-6
    if canaries == 200:  # and stronger canaries win: a test that refutes nothing would pass all above
        strong = tuned(mu, 2.0, canaries)
        chance = stats.binom.pmf(
            np.arange(strong.guesses + 1), strong.guesses, right_among(strong.guesses / canaries, 2 * mu)
        )
        assert chance @ strong.log_payoffs(mu, canaries) > 0


def test_a_stronger_promise_never_pays_less() -> None:
    """Why what is refuted of the noise is all above a limit."""
    bet = tuned(0.7, 1.4, 100)
    by_strength = np.array([bet.log_payoffs(mu, 100) for mu in (0.01, 0.1, 0.5, 0.7, 1.0, 5.0)])
    assert np.all(np.diff(by_strength, axis=0) <= 0)


def test_clearest_guesses_come_first_and_of_equally_clear_ones_the_wrong() -> None:
    scores, coins = np.array([0.75, 0.25, 0.5, 2.5, 0.25]), np.array([True, True, False, True, False])
    assert right_so_far(scores, coins, np.array(0.5)).tolist() == [0, 1, 1, 2, 3, 4]


def test_equal_scores_in_an_order_that_knows_the_coins_win_nothing() -> None:
    """A file sorted by membership, no leak: with ties in the order of the file it was refuted at step 3."""
    rng = np.random.default_rng(0)
    coins = -np.sort(-(rng.random((50, 100)) < 0.5).astype(int), axis=1)
    for scores in (np.ones(5000), rng.integers(0, 2, 5000)):
        found = bet_on_steps(PerStep(scores, coins.ravel(), steps=50, middle=0.5), StepClaim(1.0))
        assert found.log_e_value < 1e-9


@pytest.mark.parametrize("mu", STRENGTHS)
def test_more_right_guesses_never_pay_less(mu: float) -> None:
    """Why it is safe to count too few."""
    for canaries in CANARIES:
        assert all(np.all(np.diff(payoffs(bet, mu, canaries)) >= -1e-12) for bet in bets(mu, canaries))


def test_limit_and_test_never_contradict_each_other() -> None:
    for noise in (0.7, 0.9, 0.97, 1.0):
        for seed in range(10):
            process = run_steps(noise, 40, 20 if seed % 2 else 200, seed)
            assert (process.noise_factor() <= 1.0) == process.refuted


def run_steps(noise: float, steps: int, canaries: int, seed: int = 0, stated: float = 1.0) -> StepProcess:
    rng, process = np.random.default_rng(seed), StepProcess()
    for _ in range(steps):
        coins = rng.random(canaries) < 0.5
        process.add(coins + rng.normal(0, noise, canaries), coins, noise_multiplier=stated)
    return process


def test_the_limit_on_the_noise_is_near_the_truth_and_not_below_it() -> None:
    for noise in (0.3, 0.7, 1.0, 2.0):
        limits = [run_steps(noise, 100, 200, seed).noise_factor() for seed in range(5)]
        assert all(noise <= limit < 1.25 * noise for limit in limits), (noise, limits)
    assert math.isinf(run_steps(1.0, 2, 3).noise_factor())
    assert run_steps(1e-6, 50, 50).noise_factor() < 0.3


def test_coins_of_others_win_nothing() -> None:
    rng, process = np.random.default_rng(1), StepProcess()
    for _ in range(200):
        process.add(rng.random(100), rng.random(100) < 0.5, noise_multiplier=1.0)
    assert not process.refuted
    assert process.log_e_value < 0


def test_evidence_of_steps_gives_what_the_process_gives() -> None:
    rng = np.random.default_rng(3)
    coins = rng.random((40, 50)) < 0.5
    scores = np.where(coins, 1.0, -1.0) + rng.normal(0, 1.0, coins.shape)  # replace: opposite gradients, twice as far
    process = StepProcess()
    for one, tossed in zip(scores, coins, strict=True):
        process.add(one, tossed, mu=1.0, middle=0.0)
    evidence = PerStep(scores.ravel(), coins.ravel(), Relation.REPLACE, steps=40, middle=0.0)
    claim = StepClaim.of_noise(2.0, Relation.REPLACE)
    assert bet_on_steps(evidence, claim) == process.wealth()
    assert process.refuted_at is not None
    assert bet_on_steps(evidence, StepClaim((1.0,) * 40, Relation.REPLACE)) == process.wealth()
    assert bet_on_steps(evidence, StepClaim(math.inf, Relation.REPLACE)).p_value == pytest.approx(1.0)
    shifted = PerStep(scores.ravel() + 7.0, coins.ravel(), Relation.REPLACE, steps=40)  # no middle: the median
    assert bet_on_steps(shifted, claim).refuted_at is not None


def test_settings_that_change_from_step_to_step() -> None:
    rng, process = np.random.default_rng(0), StepProcess()
    for step in range(60):
        sigma, canaries = 1.0 + step // 15 / 4, 100 + step // 59
        coins = rng.random(canaries) < 0.5
        process.add(coins + rng.normal(0, sigma / 2, canaries), coins, noise_multiplier=sigma)
    assert process.refuted
    assert 0.5 <= process.noise_factor() < 0.6


def test_what_is_refused() -> None:
    process, coins = StepProcess(), np.ones(3, dtype=bool)
    for scores, tossed, stated in (
        ([1.0, 2.0], coins, 1.0),
        ([1.0, 2.0, math.nan], coins, 1.0),
        ([1.0, 2.0, 3.0], coins, 0.0),
        ([], coins[:0], 1.0),
    ):
        with pytest.raises(InvalidInput):
            process.add(scores, tossed, stated)
    for coins_of_others in (np.array([1, -1, 1]), np.array(["1", "0", "1"]), np.array([2, 0, 1])):
        with pytest.raises(InvalidInput, match="coins"):
            process.add([1.0, 2.0, 3.0], coins_of_others, 1.0)
    for settings in ({"mu": 2e7}, {"mu": "x"}, {"mu": 1.0, "middle": math.nan}, {"noise_multiplier": 1.0, "mu": 1.0}):
        with pytest.raises(InvalidInput):
            process.add([1.0, 2.0, 3.0], coins, **settings)
    assert process.steps == 0
    process.add([1.0, 2.0, 3.0], coins, mu=math.inf)
    process.add([math.inf, -math.inf, 0.5], coins, mu=1e7)
    assert math.isinf(process.noise_factor())
    evidence = PerStep([0.0, 1.0], [0, 1])
    with pytest.raises(InvalidInput, match="steps"):
        bet_on_steps(evidence, StepClaim(1.0))
    with pytest.raises(InvalidInput, match="divides"):
        PerStep([0.0, 1.0], [0, 1], steps=3)
    with pytest.raises(NeighboursMismatch):
        bet_on_steps(PerStep([0.0, 1.0], [0, 1], steps=1), StepClaim(1.0, Relation.REPLACE))
    with pytest.raises(InvalidInput, match="group_size"):
        bet_on_steps(PerStep([0.0, 1.0], [0, 1], group_size=2, steps=1), StepClaim(1.0))
    with pytest.raises(InvalidInput, match="mu"):
        bet_on_steps(PerStep([0.0, 1.0], [0, 1], steps=1), StepClaim((1.0, 1.0)))
    with pytest.raises(InvalidInput):
        StepClaim(())
    with pytest.raises(InvalidInput):
        StepClaim(-1.0)


def test_a_step_claim_says_what_a_step_promises() -> None:
    claim = StepClaim.of_noise(1.0, "replace")
    assert claim.mu == 2.0
    assert claim.strongest == GaussianClaim(2.0, Relation.REPLACE)
    for wrong in (lambda: claim.max_tpr(0.1), lambda: claim.epsilon_at(1e-5)):  # of whole trainings it says nothing
        with pytest.raises(EvidenceMismatch):
            wrong()
    assert StepClaim((0.5, 1.0)).strengths(2).tolist() == [0.5, 1.0]
    assert "at least 1)" in StepClaim((0.5, 1.0)).describe()
    assert math.isinf(StepClaim.of_noise(0.0).mu)
    assert StepClaim.of_noise(0.0).is_vacuous
    assert not StepClaim((1.0, math.inf)).is_vacuous
    for slots in (SLOTS, LIMITING):
        assert sum(slot.share for slot in slots) == pytest.approx(1.0)
