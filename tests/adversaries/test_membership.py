"""Membership inference as a game: coins, scores that have seen them through the model only, and what is proved."""

import math

import numpy as np
import pytest
from scipy import stats

from epsilometer import DpSgdTraining, PointClaim, Recipe, noise_for, run
from epsilometer.adversaries import Game, MembershipAttack
from epsilometer.auditing import Outcome, Plan, parse_spec
from epsilometer.bounds import OneRunPoint, Threshold
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.evidence import OneRun
from epsilometer.subjects import Trained
from epsilometer.training import record_losses

SEED = np.random.SeedSequence(0)
ALPHA = 0.05


def records(number: int = 40, features: int = 6, classes: int = 3) -> Dataset:
    """Labels without rhyme or reason: whoever gets them right has learnt them by heart."""
    rng = np.random.default_rng(number)
    x = rng.normal(size=(number, features))
    return Dataset("noise", x, rng.integers(0, classes, number), classes)


def training(data: Dataset, **settings) -> DpSgdTraining:
    return DpSgdTraining(Recipe(records=len(data), **settings), data)


def game_of(data: Dataset, tossed: int, **settings) -> Game:
    return MembershipAttack(tossed).game(training(data, **settings), Relation.ADD_REMOVE, SEED)


def world_of(game: Game, coins: np.ndarray) -> Dataset:
    return game.insert(coins, SEED).data


def places(part: Dataset, whole: Dataset) -> list[int]:
    return [int(np.flatnonzero((whole.x == row).all(axis=1)).item()) for row in part.x]


def scores_of(game: Game, coins: np.ndarray, flat: np.ndarray) -> np.ndarray:
    data = game.insert(coins, np.random.SeedSequence(int(coins.sum()))).data
    observer = game.observe()
    observer.finish(Trained(training(data).network, flat, np.zeros(0)))
    return observer.score()


# -- the game --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tossed", [1, 25, 39])
def test_a_world_has_exactly_the_records_that_its_coins_say(tossed: int) -> None:
    data = records()
    game, rng = game_of(data, tossed), np.random.default_rng(tossed)
    always = set(places(world_of(game, np.zeros(tossed, bool)), data))
    assert len(always) == 40 - tossed
    single = [set(places(world_of(game, np.arange(tossed) == i), data)) - always for i in range(tossed)]
    assert all(len(one) == 1 for one in single)
    assert len(set.union(*single)) == tossed  # each coin has a record of its own
    for _ in range(5):
        coins = rng.random(tossed) < 0.5
        world = world_of(game, coins)
        found = places(world, data)
        assert found == sorted(found)
        assert set(found) == always.union(*(one for one, coin in zip(single, coins, strict=True) if coin))
        np.testing.assert_array_equal(world.y, data.y[found])


def test_the_score_is_the_mean_loss_of_the_others_less_the_own() -> None:
    data = records()
    for loss in ("cross-entropy", "logistic", "squared"):
        game = game_of(data, 25, loss=loss)
        coins = np.ones(25, bool)
        always = places(world_of(game, ~coins), data)
        tossed = [places(world_of(game, np.arange(25) == i), data) for i in range(25)]
        tossed = [next(iter(set(found) - set(always))) for found in tossed]
        flat = np.random.default_rng(1).normal(size=21)
        losses = record_losses(data.x @ flat[:18].reshape(3, 6).T + flat[18:], data.y, loss)
        np.testing.assert_allclose(scores_of(game, coins, flat), losses[always].mean() - losses[tossed], rtol=1e-9)


def test_scores_have_seen_the_coins_through_the_model_only() -> None:
    """For one and the same model, scores and guesses are the same whatever the coins were. Yeom's would not be."""
    data = records()
    game, rng = game_of(data, 25), np.random.default_rng(0)
    flat = rng.normal(size=21)
    losses = record_losses(data.x @ flat[:18].reshape(3, 6).T + flat[18:], data.y)
    flipped = rng.random((50, 25)) < 0.5
    found = np.array([scores_of(game, coins, flat) for coins in flipped])
    np.testing.assert_array_equal(found, np.broadcast_to(found[0], found.shape))
    means = [losses[places(world_of(game, coins), data)].mean() for coins in flipped]
    assert len(set(means)) == 50  # the mean over all members tells the coins without any noise
    assert len({tuple(losses < mean) for mean in means}) > 1  # and guesses that rest on it as well


@pytest.mark.parametrize("tossed", [40, 41])
def test_somebody_must_be_in_anyway(tossed: int) -> None:
    with pytest.raises(InvalidInput, match=f"records = {tossed}: expected fewer than the 40 records of noise"):
        game_of(records(), tossed)


def test_a_coin_cannot_replace() -> None:
    with pytest.raises(InvalidInput, match="add-remove or zero-out"):
        MembershipAttack(10).game(training(records()), Relation.REPLACE, SEED)
    with pytest.raises(InvalidInput, match="records = 0"):
        MembershipAttack(0)


# -- audits ----------------------------------------------------------------------------------------------------------


def overfitting(noise: float, claim: PointClaim, trials: int = 5) -> Plan:
    data = records(120, 40)
    recipe = Recipe(
        records=120, noise_multiplier=noise, clip_norm=50.0 if noise == 0 else 1.0, sampling="full", sample_rate=1.0,
        steps=300, learning_rate=0.5, model="mlp", hidden=(32,),
    )  # fmt: skip
    return Plan(
        DpSgdTraining(recipe, data), claim, claim.delta, MembershipAttack(100), trials,
        method=OneRunPoint(Threshold(0.0)),
    )  # fmt: skip


def test_who_learns_by_heart_is_caught() -> None:
    result = run(overfitting(0.0, PointClaim(0.5, 1e-5)))
    assert len(result.evidence.scores) == 500
    assert result.lower_bound.epsilon > 0.5
    assert result.verdict.outcome is Outcome.VIOLATED
    assert result.lower_bound.proof.guesses == 500  # every record was guessed


def test_who_adds_enough_noise_is_not() -> None:
    noise = noise_for(0.5, 1e-5, 1.0, 300)
    result = run(overfitting(noise, PointClaim(0.5, 1e-5)))
    assert result.lower_bound.epsilon <= 0.5
    assert result.verdict.outcome is not Outcome.VIOLATED


def test_a_spec_fixes_the_threshold() -> None:
    text = '[adversary]\nname = "membership"\nrecords = 50\n[audit]\nthreshold = 0.0\nseed = 3'
    plan = parse_spec(text).plan()
    assert plan.planned_method == OneRunPoint(Threshold(0.0), 3)
    assert plan.planned_trials == 1
    assert parse_spec(text.replace("threshold = 0.0\n", "")).plan().planned_method == OneRunPoint(None, 3)
    other = parse_spec(text.replace("0.0", "0.5")).plan()
    assert other.fingerprint() != plan.fingerprint()


# -- what a threshold proves -----------------------------------------------------------------------------------------


def guessed_right(rng: np.random.Generator, epsilon: float, canaries: int) -> OneRun:
    """Randomized response: each guess at threshold 0 is right with probability e^ε/(1 + e^ε), the most there can be."""
    coins = rng.random(canaries) < 0.5
    right = rng.random(canaries) < 1 / (1 + math.exp(-epsilon))
    return OneRun(np.where(coins == right, 1.0, -1.0) * (1 + rng.random(canaries)), coins)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_a_threshold_proves_more_than_the_truth_rarely_and_a_naive_estimate_half_of_the_time(epsilon: float) -> None:
    rng, repetitions, method = np.random.default_rng(7), 400, OneRunPoint(Threshold(0.0))
    claim, false_alarms, too_high = PointClaim(epsilon + 1e-9, 0.0), 0, 0
    for _ in range(repetitions):
        evidence = guessed_right(rng, epsilon, 200)
        false_alarms += method.test(evidence, claim, confidence=1 - ALPHA).refuted
        accuracy = np.mean((evidence.scores > 0) == evidence.member)
        too_high += math.log(accuracy / (1 - accuracy)) > epsilon if accuracy < 1 else True
    assert stats.binomtest(false_alarms, repetitions, ALPHA, alternative="greater").pvalue > 1e-3
    assert false_alarms > 0 or epsilon == 0  # it is not the caution of a bound that proves nothing
    assert 0.35 < too_high / repetitions < 0.65


def test_a_threshold_chosen_by_looking_breaks_it() -> None:
    """The test above has teeth: the best of all thresholds refutes a truth too often."""
    rng, refuted = np.random.default_rng(3), 0
    for _ in range(100):
        coins = rng.random(100) < 0.5
        evidence = OneRun(rng.normal(size=100), coins)  # ε = 0
        best = max(evidence.scores, key=lambda cut: np.mean((evidence.scores > cut) == coins))
        refuted += OneRunPoint(Threshold(float(best))).test(evidence, PointClaim(1e-9, 0.0)).refuted
    assert stats.binomtest(refuted, 100, ALPHA, alternative="greater").pvalue < 1e-3


def test_a_threshold_guesses_everybody() -> None:
    evidence = OneRun([0.5, -0.5, 0.0, 2.0], [1, 0, 1, 0])
    for cut, correct in ((0.0, 2), (1.0, 1), (-math.inf, 2), (math.inf, 2)):
        proof = OneRunPoint(Threshold(cut)).bound(evidence).proof
        assert (proof.canaries, proof.guesses, proof.correct) == (4, 4, correct)
    with pytest.raises(InvalidInput, match="threshold = nan"):
        Threshold(math.nan)


def test_the_power_of_a_threshold_is_that_of_guessing_everybody() -> None:
    """Simulated scores lie below 0: cut there, nobody would be guessed in, and no audit could find anything."""
    sizes = {"out_trials": 100, "in_trials": 100, "repetitions": 20}
    cut, everybody = OneRunPoint(Threshold(0.0)), OneRunPoint(200)
    for claim, least, most in ((0.5, 0.9, 1.0), (3.0, 0.0, 0.2)):
        power = cut.power(PointClaim(claim, 0.0), PointClaim(3.0, 0.0), **sizes)
        assert power == everybody.power(PointClaim(claim, 0.0), PointClaim(3.0, 0.0), **sizes)
        assert least <= power <= most
