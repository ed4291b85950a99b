"""The likelihood ratio of shuffled epochs: what a batch's sum is, who is better, and what is proved above the claim."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from epsilometer import DpSgdTraining, Plan, PointClaim, Recipe
from epsilometer.adversaries import Api, ShuffledLabel
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, OUT
from epsilometer.metrics import area
from epsilometer.reproductions import REPRODUCTIONS, Session
from epsilometer.reproductions.annamalai_shuffle import BATCH, plan_of, recipe_of
from epsilometer.runs import Inline, MemoryStore, play
from epsilometer.testing import check_adversary

SEED = np.random.SeedSequence(0)


def training(batches: int = 6, sigma: float = 0.5, **settings) -> DpSgdTraining:
    recipe = replace(recipe_of(batches, sigma), **settings)
    return DpSgdTraining(recipe, Dataset("any", np.ones((recipe.records, 2)), np.arange(recipe.records) % 2, 2))


BOTH = [Relation.REPLACE, Relation.ZERO_OUT]


def projections(subject: DpSgdTraining, world: int, relation: Relation) -> np.ndarray:
    game, seed = ShuffledLabel().game(subject, relation, SEED), np.random.SeedSequence([3, world])
    observer = game.observe()
    subject.run([game.insert(world, seed)], [seed], [observer])
    return observer._projections


@pytest.mark.parametrize("relation", BOTH)
def test_sums_of_batches_are_minus_b_but_for_one_of_each_epoch(relation: Relation) -> None:
    """Almost without noise: −(b − 2) once an epoch where a label is another; −(b − 1) where it has no gradient."""
    subject = training(sigma=1e-4, steps=18)
    nil = projections(subject, OUT, relation).reshape(3, 6) + BATCH
    np.testing.assert_allclose(np.sort(nil, axis=1), [[0, 0, 0, 0, 0, relation is Relation.ZERO_OUT]] * 3, atol=1e-3)
    epochs = projections(subject, IN, relation).reshape(3, 6) + BATCH
    np.testing.assert_allclose(np.sort(epochs, axis=1), [[0, 0, 0, 0, 0, 2]] * 3, atol=1e-3)
    assert len(set(np.argmax(epochs, axis=1))) > 1  # another batch in another epoch


def test_the_record_in_place_of_a_zeroed_one_has_no_gradient_at_all() -> None:
    """Exactly: zero-out is a claim about gradients that are 0."""
    subject = training()
    prepared = ShuffledLabel().prepare(subject, Relation.ZERO_OUT, SEED)
    zeroed = ShuffledLabel().craft(subject, Relation.ZERO_OUT, prepared).insert(OUT, SEED)
    start = zeroed.start.astype(np.float32)
    for row, norm in ((0, 0.0), (1, 1.0)):
        one = subject.network.clipped_gradient_sum(start, zeroed.data.x[[row]], zeroed.data.y[[row]], 1.0)
        assert np.linalg.norm(one) == pytest.approx(norm, abs=0.0 if row == 0 else 1e-6)


@pytest.mark.parametrize("relation", BOTH)
def test_the_score_is_the_log_likelihood_ratio(relation: Relation) -> None:
    """By enumeration: the label is in each batch of an epoch with the same probability, in each epoch anew."""
    subject = training(batches=3, sigma=0.8, steps=6)
    game = ShuffledLabel().game(subject, relation, SEED)
    observer = game.observe()
    subject.run([game.insert(IN, SEED)], [SEED], [observer])
    seen, normal = observer._projections.reshape(2, 3) + BATCH, stats.norm(scale=0.8)

    def likelihood(more: float) -> float:
        total = 0.0
        for places in itertools.product(range(3), repeat=2):
            shift = np.zeros((2, 3))
            shift[[0, 1], places] = more
            total += np.prod(normal.pdf(seen - shift)) / 9
        return total

    ratio = likelihood(2.0) / likelihood(1.0 if relation is Relation.ZERO_OUT else 0.0)
    assert observer.score() == pytest.approx(np.log(ratio), rel=1e-6)


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


@pytest.mark.parametrize(("relation", "poisson"), [("zero-out", 0.718), ("replace", 0.895)])
def test_more_is_proved_than_poisson_sampling_promises(relation: str, poisson: float) -> None:
    """2000 trials a world of 100 batches at σ = 1: certified above the claim, which the same training breaks."""
    shuffle = REPRODUCTIONS["annamalai-shuffle"]
    (cell,) = shuffle.chosen([f"relation={relation}", "batches=100", "sigma=1"])
    (row,) = shuffle.rows([cell], Session(2000))
    assert row.details["poisson"] == pytest.approx(poisson, abs=0.01)
    assert row.measured > 1.1 * row.details["poisson"]
    assert row.details["verdict"] == "violated"
    assert shuffle.draw([row]).to_dict()["figures"][0]["title"] == f"100 batches of 10, {relation}"


def test_nobody_else_may_leave_a_record_out_of_shuffled_batches() -> None:
    with pytest.raises(InvalidInput, match="a record that is left out would change other batches too"):
        Plan(training(), PointClaim(1.0, 1e-5, Relation.ZERO_OUT), 1e-5, Api())


def test_poisson_batches_are_not_accused() -> None:
    """The same game and noise, in batches that really are Poisson samples: their sizes hide the label."""
    (cell,) = REPRODUCTIONS["annamalai-shuffle"].chosen(["relation=replace", "batches=100", "sigma=1"])
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
        ({}, Relation.ADD_REMOVE, "relation = 'add-remove': expected replace or zero-out"),
        ({"sampling": "poisson"}, Relation.REPLACE, "expected shuffled epochs of whole batches"),
        ({"steps": 7}, Relation.REPLACE, "expected shuffled epochs of whole batches"),
        ({"model": "mlp"}, Relation.REPLACE, "logistic regression, cross-entropy, two classes"),
        ({"noise_multiplier": 0.0}, Relation.REPLACE, "noise > 0"),
        ({"learning_rate": 10.0, "noise_multiplier": 5.0}, Relation.ZERO_OUT, "plain SGD that hardly moves"),
        ({"optimizer": "adam"}, Relation.ZERO_OUT, "plain SGD that hardly moves"),
        ({"weight_decay": 0.1}, Relation.ZERO_OUT, "plain SGD that hardly moves"),
    ],
)
def test_other_trainings_are_refused(changes: dict, relation: Relation, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        ShuffledLabel().prepare(training(**changes), relation, SEED)


def test_a_recipe_of_the_reproduction_is_one_epoch() -> None:
    recipe: Recipe = recipe_of(1000, 0.7)
    assert (recipe.records, recipe.batches, recipe.steps, recipe.batch_size) == (10_000, 1000, 1000, 10)
