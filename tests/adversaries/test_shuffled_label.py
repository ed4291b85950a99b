"""The likelihood ratio of shuffled epochs: what a batch's sum is, who is better, and what is proved above the claim."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from epsilometer import DpSgdTraining, Plan, PointClaim, Recipe
from epsilometer.adversaries import ShuffledLabel
from epsilometer.attacks import area
from epsilometer.auditing import Inline, MemoryStore, play
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, OUT
from epsilometer.reproductions import REPRODUCTIONS, Session
from epsilometer.reproductions.annamalai_shuffle import BATCH, plan_of, recipe_of
from epsilometer.testing import check_adversary

SEED = np.random.SeedSequence(0)


def training(batches: int = 6, sigma: float = 0.5, **settings) -> DpSgdTraining:
    recipe = replace(recipe_of(batches, sigma), **settings)
    return DpSgdTraining(recipe, Dataset("any", np.ones((recipe.records, 1)), np.arange(recipe.records) % 2, 2))


def projections(subject: DpSgdTraining, world: int) -> np.ndarray:
    game, seed = ShuffledLabel().game(subject, Relation.REPLACE, SEED), np.random.SeedSequence([3, world])
    observer = game.observe()
    subject.run([game.insert(world, seed)], [seed], [observer])
    return observer._projections


def test_sums_of_batches_are_minus_b_but_for_one_of_each_epoch() -> None:
    """Almost without noise: −b everywhere, and −(b − 2) once an epoch where a label is another."""
    subject = training(sigma=1e-4, steps=18)
    np.testing.assert_allclose(projections(subject, OUT), -BATCH, atol=1e-3)
    epochs = projections(subject, IN).reshape(3, 6) + BATCH
    np.testing.assert_allclose(np.sort(epochs, axis=1), [[0, 0, 0, 0, 0, 2]] * 3, atol=1e-3)
    assert len(set(np.argmax(epochs, axis=1))) > 1  # another batch in another epoch


def test_the_score_is_the_log_likelihood_ratio() -> None:
    """By enumeration: the label is in each batch of an epoch with the same probability, in each epoch anew."""
    subject = training(batches=3, sigma=0.8, steps=6)
    game = ShuffledLabel().game(subject, Relation.REPLACE, SEED)
    observer = game.observe()
    subject.run([game.insert(IN, SEED)], [SEED], [observer])
    seen, normal = observer._projections.reshape(2, 3), stats.norm(scale=0.8)
    absent = np.prod(normal.pdf(seen + BATCH))
    present = 0.0
    for places in itertools.product(range(3), repeat=2):
        shift = np.zeros((2, 3))
        shift[[0, 1], places] = 2.0
        present += np.prod(normal.pdf(seen + BATCH - shift)) / 9
    assert observer.score() == pytest.approx(np.log(present / absent), rel=1e-6)


def test_trials_of_the_engine_are_as_far_apart_as_simulated_sums() -> None:
    """4000 noisy sums a world, of which one batch has 2 more."""
    subject = training(batches=30, sigma=0.7)
    plan = Plan(subject, PointClaim(1.0, 1e-5, Relation.REPLACE), 1e-5, ShuffledLabel(), 400)
    store = MemoryStore()
    play(plan, store, Inline())
    found = store.results(plan.fingerprint())
    scores = [np.array([found[world, i][0] for i in range(400)]) for world in (OUT, IN)]
    rng = np.random.default_rng(0)
    sums = 0.7 * rng.normal(size=(2, 4000, 30))
    sums[1, np.arange(4000), rng.integers(0, 30, 4000)] += 2.0
    exact = np.exp((2 * sums - 2) / 0.49)
    assert area(*scores).value == pytest.approx(area(*exact.mean(axis=2)).value, abs=0.03)


def test_the_contract_holds() -> None:
    check_adversary(ShuffledLabel(), training(), relations=("replace",))


def test_more_is_proved_than_poisson_sampling_promises() -> None:
    """3000 trials a world of 100 batches at σ = 1: certified above the claim, which the same training breaks."""
    shuffle = REPRODUCTIONS["annamalai-shuffle"]
    (cell,) = shuffle.chosen(["batches=100", "sigma=1"])
    (row,) = shuffle.rows([cell], Session(3000))
    assert row.details["poisson"] == pytest.approx(0.895, abs=0.01)
    assert row.measured > 1.2 * row.details["poisson"]
    assert row.details["verdict"] == "violated"
    assert shuffle.draw([row]).to_dict()["figures"][0]["title"] == "100 batches of 10"


def test_poisson_batches_are_not_accused() -> None:
    """The same game and noise, in batches that really are Poisson samples: their sizes hide the label."""
    (cell,) = REPRODUCTIONS["annamalai-shuffle"].chosen(["batches=100", "sigma=1"])
    claimed = plan_of(cell, Session(1000))
    recipe = claimed.subject.recipe
    shuffled = ShuffledLabel().game(claimed.subject, Relation.REPLACE, SEED)
    subject = DpSgdTraining(replace(recipe, sampling="poisson"), claimed.subject.data)
    scores = []
    for world in (OUT, IN):
        seeds = np.random.SeedSequence(world).spawn(500)
        observers = [shuffled.observe() for _ in seeds]
        subject.run([shuffled.insert(world, seed) for seed in seeds], seeds, observers)
        scores.append(np.array([observer.score() for observer in observers]))
    assert area(*scores).value < 0.6  # shuffled: .73


@pytest.mark.parametrize(
    ("changes", "relation", "words"),
    [
        ({}, Relation.ADD_REMOVE, "relation = 'add-remove': expected replace"),
        ({"sampling": "poisson"}, Relation.REPLACE, "expected shuffled epochs of whole batches"),
        ({"steps": 7}, Relation.REPLACE, "expected shuffled epochs of whole batches"),
        ({"model": "mlp"}, Relation.REPLACE, "logistic regression with cross-entropy and two classes"),
        ({"noise_multiplier": 0.0}, Relation.REPLACE, "noise > 0"),
    ],
)
def test_other_trainings_are_refused(changes: dict, relation: Relation, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        ShuffledLabel().prepare(training(**changes), relation, SEED)


def test_a_recipe_of_the_reproduction_is_one_epoch() -> None:
    recipe: Recipe = recipe_of(1000, 0.7)
    assert (recipe.records, recipe.batches, recipe.steps, recipe.batch_size) == (10_000, 1000, 1000, 10)
