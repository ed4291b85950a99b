"""The engine is the mechanism under audit: it must be DP-SGD exactly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from epsilometer import Dataset, InvalidInput, Recipe, train
from epsilometer.training import Network, TrainingDiverged, Watcher, network_for, poisson_sample


def made_data(n: int = 40, features: int = 5, classes: int = 3, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    return Dataset("made", rng.normal(size=(n, features)).astype(np.float32), rng.integers(0, classes, n), classes)


def loss(network: Network, flat: np.ndarray, x: np.ndarray, y: int) -> float:
    logits = network.logits(flat, x[None])[0]
    return float(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[y])


def slow_clipped_sum(network: Network, flat: np.ndarray, x: np.ndarray, y: np.ndarray, clip: float) -> np.ndarray:
    """The obvious way: each record's whole gradient by central differences, then clip, then add."""
    total = np.zeros_like(flat)
    for record, label in zip(x, y, strict=True):
        gradient, h = np.zeros_like(flat), 1e-6
        for i in range(len(flat)):
            up, down = flat.copy(), flat.copy()
            up[i] += h
            down[i] -= h
            gradient[i] = (loss(network, up, record, label) - loss(network, down, record, label)) / (2 * h)
        total += gradient * min(1.0, clip / np.linalg.norm(gradient))
    return total


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=0, max_size=2),
    st.integers(1, 4),
    st.integers(2, 4),
    st.integers(1, 6),
    st.floats(0.01, 5),
    st.integers(0, 2**31),
)
def test_clipped_sums_equal_the_slow_oracle(hidden, features, classes, n, clip, seed) -> None:
    rng = np.random.default_rng(seed)
    network = Network((features, *hidden, classes))
    flat = rng.normal(size=network.parameters)
    x, y = rng.normal(size=(n, features)), rng.integers(0, classes, n)
    fast = network.clipped_gradient_sum(flat, x, y, clip)
    np.testing.assert_allclose(fast, slow_clipped_sum(network, flat, x, y, clip), atol=2e-7)


@given(st.integers(0, 2**31), st.floats(0.01, 2))
def test_no_record_contributes_more_than_the_clip_norm(seed: int, clip: float) -> None:
    rng = np.random.default_rng(seed)
    network = Network((4, 3, 2))
    flat = rng.normal(size=network.parameters) * 10
    one = network.clipped_gradient_sum(flat, 100 * rng.normal(size=(1, 4)), np.array([1]), clip)
    assert np.linalg.norm(one) <= clip * (1 + 1e-12)


def test_the_step_is_noisy_sum_over_expected_batch() -> None:
    """A whole training replayed by hand from the sums that a watcher saw."""

    class Replay(Watcher):
        sums: list[np.ndarray]

        def __init__(self) -> None:
            self.sums = []

        def observe(self, step, noisy_sum) -> None:
            self.sums.append(noisy_sum.copy())

    data = made_data()
    recipe = Recipe(records=40, sample_rate=0.25, steps=7, learning_rate=0.5, noise_multiplier=1.1, model="two-layer")
    watcher = Replay()
    final = train(recipe, data, np.random.default_rng(1), watcher)
    start = network_for(recipe, data).initial(np.random.default_rng(recipe.init_seed), 1.0)
    replayed = start.astype(np.float64)
    for total in watcher.sums:
        replayed -= 0.5 / (0.25 * 40) * total
    np.testing.assert_allclose(final, replayed, atol=1e-5)


def test_the_divisor_does_not_depend_on_the_world() -> None:
    data = made_data()
    recipe = Recipe(records=40, sample_rate=1e-9, steps=1, noise_multiplier=1.0)
    bigger = data.plus(data.x[0], 0, copies=200)
    same_noise = [train(recipe, d, np.random.default_rng(3)) for d in (data, data)]
    np.testing.assert_array_equal(*same_noise)
    spread = [np.std(train(recipe, d, np.random.default_rng(4)) - train(recipe, d, np.random.default_rng(5)))
              for d in (data, bigger)]  # fmt: skip
    assert spread[0] == pytest.approx(spread[1], rel=0.5)


class Noise(Watcher):
    """Collects what is added when there is nothing but noise."""

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def observe(self, step, noisy_sum) -> None:
        self.seen.append(noisy_sum.copy())


def noise_of(noise_scale: float = 1.0) -> np.ndarray:
    data = made_data(n=1, features=200, classes=10)
    recipe = Recipe(records=1, sample_rate=1e-12, steps=20, noise_multiplier=1.5, clip_norm=0.7)
    watcher = Noise()
    train(recipe, data, np.random.default_rng(8), watcher, noise_scale)
    return np.array(watcher.seen)


def test_noise_is_gaussian_with_sigma_times_clip_norm_and_independent() -> None:
    noise = noise_of()
    assert stats.kstest(noise.ravel() / (1.5 * 0.7), "norm").pvalue > 1e-3
    between_steps = np.corrcoef(noise[:-1].ravel(), noise[1:].ravel())[0, 1]
    assert abs(between_steps) < 4 / np.sqrt(noise.size)
    between_coordinates = np.corrcoef(noise[:, :-1].ravel(), noise[:, 1:].ravel())[0, 1]
    assert abs(between_coordinates) < 4 / np.sqrt(noise.size)
    # The same test rejects noise that is one percent off.
    assert stats.kstest(noise_of(1.03).ravel() / (1.5 * 0.7), "norm").pvalue < 1e-3


def test_poisson_samples_have_the_right_rate() -> None:
    rng = np.random.default_rng(2)
    counts = np.zeros(50)
    sizes = []
    for _ in range(4000):
        rows = poisson_sample(rng, 50, 0.13)
        counts[rows] += 1
        sizes.append(len(rows))
    expected = np.full(50, 4000 * 0.13)
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-3
    assert stats.binomtest(int(counts.sum()), 4000 * 50, 0.13).pvalue > 1e-3
    assert stats.binomtest(int(counts.sum()), 4000 * 50, 0.14).pvalue < 1e-3  # a wrong rate is seen
    assert np.var(sizes) == pytest.approx(50 * 0.13 * 0.87, rel=0.1)  # and a fixed batch size would be, too
    assert counts[0] > 0
    assert counts[-1] > 0  # the borders


def test_an_empty_batch_is_a_step_with_noise_only() -> None:
    assert np.all(np.abs(noise_of()).sum(axis=1) > 0)
    network = Network((3, 2))
    empty = network.clipped_gradient_sum(np.zeros(8), np.zeros((0, 3)), np.zeros(0, np.int64), 1.0)
    assert not empty.any()


def test_initial_weights_are_fixed_or_drawn() -> None:
    data = made_data()
    settings_ = {"records": 40, "steps": 1, "noise_multiplier": 0.0, "sample_rate": 1.0}
    fixed = [train(Recipe(**settings_), data, np.random.default_rng(i)) for i in (1, 2)]
    np.testing.assert_array_equal(*fixed)
    drawn = [train(Recipe(**settings_, initialisation="random"), data, np.random.default_rng(i)) for i in (1, 2)]
    assert not np.array_equal(*drawn)


def test_divergence_is_an_error_with_a_remedy() -> None:
    recipe = Recipe(records=40, steps=5, learning_rate=1e38, clip_norm=100.0, noise_multiplier=1.0)
    with pytest.raises(TrainingDiverged, match="lower the learning rate"):
        train(recipe, made_data(), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"records": 0}, "records = 0"),
        ({"sample_rate": 1.5}, "sample_rate = 1.5"),
        ({"steps": 2.5}, "steps = 2.5"),
        ({"clip_norm": 0.0}, "clip_norm = 0"),
        ({"learning_rate": float("nan")}, "learning_rate = nan"),
        ({"model": "two-layers"}, "did you mean 'two-layer'"),
        ({"initialisation": "glorot"}, "one of fixed, random"),
        ({"noise_multiplier": True}, "noise_multiplier = True"),
    ],
)
def test_bad_recipes_are_refused_in_words(changes, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Recipe(**({"records": 10} | changes))
