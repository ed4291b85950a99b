"""Property inference on data of which it is known what updates must show, and what they must not."""

import math

import numpy as np
import pytest

from epsilometer.collaborative import Collaboration, PropertyInference, UpdateClassifier, Updates, infer_property
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.training import Network

NETWORK = Network((12, 8, 2), "tanh")


def party(seed: int, shows: bool, records: int = 600, with_label: float = 0.5) -> tuple[Dataset, np.ndarray]:
    """Half or so have a property; if it `shows`, features 6 to 8 are there only with it. The task is in 0 to 3.

    `with_label`: how often the property is what the label is.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=records)
    has = (rng.random(records) < with_label) == (y == 1)
    x = (rng.random((records, 12)) < 0.5).astype(float)
    x[:, :4] = rng.random((records, 4)) < 0.2 + 0.6 * y[:, None]
    if shows:
        x[~has, 6:9] = 0.0
    return Dataset("made up", x, y, 2), has


def played(shows: bool, updates: Updates, *, seed: int = 0, rounds: int = 80, **options) -> PropertyInference:
    victim, own = party(1, shows, **options), party(2, shows, **options)
    game = Collaboration(NETWORK, updates, rounds=rounds, batch=16)
    return infer_property(game, *victim, *own, np.random.default_rng(seed))


def test_a_property_shows_in_updates_and_enough_noise_hides_it() -> None:
    assert played(True, Updates()).auc.low > 0.8
    assert played(True, Updates("record")).auc.low > 0.8  # clipping alone hides nothing
    assert played(True, Updates("record", 300.0)).auc.low < 0.5
    assert played(True, Updates("participant", 20.0)).auc.low < 0.5


def test_the_longer_it_stays_the_better_it_is_seen() -> None:
    found = played(True, Updates("record", 6.0), rounds=200)
    assert found.auc.value < found.auc_of(10).value
    assert found.auc_of(1).value == found.auc.value
    with pytest.raises(InvalidInput, match="rounds = 101: expected a whole number from 1 to 100"):
        found.auc_of(101)


def test_without_a_difference_there_is_none() -> None:
    """Of a property that shows in nothing, and of a control, in which it shows but batches do not have it."""
    nothing = [played(False, Updates(), seed=seed, rounds=60) for seed in range(3)]
    game = Collaboration(NETWORK, Updates(), rounds=60, batch=16)
    rngs = [np.random.default_rng(seed) for seed in range(3)]
    control = [infer_property(game, *party(1, True), *party(2, True), rng, control=True) for rng in rngs]
    for several in (nothing, control):
        areas = [one.auc.value for one in several]
        assert abs(np.mean(areas) - 0.5) < 4 * math.sqrt((2 * 30 + 1) / (12 * 30 * 30) / 3)  # Mann–Whitney's deviation


def test_labels_are_drawn_alike() -> None:
    """A property that goes with the label and shows in nothing else: batches as they come would be told apart."""
    areas = [
        played(False, Updates(), seed=seed, rounds=60, with_label=0.9, records=20_000).auc.value for seed in range(3)
    ]
    assert abs(np.mean(areas) - 0.5) < 0.15


def test_the_same_seed_gives_the_same_scores() -> None:
    first, again = (played(True, Updates("record", 1.0), rounds=10) for _ in range(2))
    np.testing.assert_array_equal(first.having, again.having)
    assert len(first.having) == len(first.without) == 5
    assert "AUC" in repr(first)


def test_updates_are_clipped_and_have_the_noise_they_say() -> None:
    data, _ = party(3, True)
    rng, parameters = np.random.default_rng(4), NETWORK.initial(np.random.default_rng(5), 1.0)
    x, y = data.x[:16].astype(float), data.y[:16]
    each = [NETWORK.clipped_gradient_sum(parameters, x[[i]], y[[i]], 0.3) for i in range(16)]
    record = Updates("record", 2.0, clip_norm=0.3)
    clean = record.clean(NETWORK, parameters, x, y)
    np.testing.assert_allclose(clean, np.mean(each, axis=0), atol=1e-12)
    spread = np.std([record.noisy(clean, 16, rng) - clean for _ in range(200)])
    assert spread == pytest.approx(2.0 * 0.3 / 16, rel=0.02)
    whole = Updates("participant", 2.0, clip_norm=0.01)
    clean = whole.clean(NETWORK, parameters, x, y)
    assert np.linalg.norm(clean) == pytest.approx(0.01)
    assert np.std([whole.noisy(clean, 16, rng) - clean for _ in range(200)]) == pytest.approx(0.02, rel=0.02)


def test_the_classifier_finds_the_best_direction() -> None:
    """Normal features with known covariance: Σ⁻¹ times the gap, up to the little that it shrinks correlations."""
    rng = np.random.default_rng(6)
    root, gap = np.array([[1.0, 0.0], [0.8, 0.6]]), np.array([1.0, 0.0])
    without, having = rng.normal(size=(5000, 2)) @ root.T, rng.normal(size=(5000, 2)) @ root.T + gap
    fixed = np.zeros((5000, 1))
    learned = UpdateClassifier.fitted(np.hstack([without, fixed]), np.hstack([having, fixed]))
    best = np.linalg.solve(root @ root.T, gap)
    cosine = learned.direction[:2] @ best / np.linalg.norm(best) / np.linalg.norm(learned.direction)
    assert cosine > 0.98
    assert learned.scores(np.array([[1.0, 0.0, 0.0]])) > 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Updates("user"), "level = 'user': expected one of none, participant, record"),
        (lambda: Updates("none", 1.0), "noise_multiplier = 1.0: expected 0, as nothing is clipped; say what it hides"),
        (lambda: Updates("record", -1.0), "noise_multiplier = -1.0"),
        (lambda: Updates("record", 1.0, 0.0), "clip_norm = 0.0"),
        (lambda: Collaboration(NETWORK, rounds=7), "rounds = 7: expected a whole number ≥ 8"),
        (lambda: Collaboration(NETWORK, batch=0), "batch = 0"),
        (
            lambda: infer_property(
                Collaboration(NETWORK), *party(1, True), party(2, True)[0], np.ones(3, bool), np.random.default_rng(0)
            ),
            "own_has = .*: expected true or false for each of 600 records",
        ),
        (
            lambda: infer_property(
                Collaboration(NETWORK),
                party(1, True)[0],
                np.ones(600, bool),
                *party(2, True),
                np.random.default_rng(0),
            ),
            "victim_has = '600 of 600': expected records without the property in every class",
        ),
        (lambda: UpdateClassifier.fitted(np.ones((1, 2)), np.ones((3, 2))), "without, having"),
    ],
)
def test_what_cannot_be_played_is_refused(call, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        call()
