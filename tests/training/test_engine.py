"""The engine is the mechanism under audit: it must be DP-SGD exactly."""

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from epsilometer import Recipe
from epsilometer.data import Dataset, digits
from epsilometer.errors import InvalidInput
from epsilometer.training import (
    Network,
    TrainingDiverged,
    Watcher,
    blas,
    compiled,
    compiled_trainer,
    initial_parameters,
    median_gradient_norm,
    network_for,
    sparse,
    threefry,
    train,
    train_many,
)
from epsilometer.training.sampling import sample


def made_data(n: int = 40, features: int = 5, classes: int = 3, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    return Dataset("made", rng.normal(size=(n, features)).astype(np.float32), rng.integers(0, classes, n), classes)


def loss(network: Network, flat: np.ndarray, x: np.ndarray, y: int) -> float:
    logits = network.logits(flat, x[None])[0]
    if network.loss == "squared":
        return float(0.5 * np.sum((logits - np.eye(len(logits))[y]) ** 2))
    if network.loss == "logistic":
        signs = np.where(np.arange(len(logits)) == y, -1.0, 1.0)
        return float(np.logaddexp(0.0, signs * logits).sum())
    return float(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[y])


def clipped(network: Network, gradient: np.ndarray, clip: float, clipping: str) -> np.ndarray:
    if clipping == "per-layer":
        result = gradient.copy()
        for parts in network.layers(result):
            norm = np.sqrt(sum((part**2).sum() for part in parts))
            for part in parts:
                part[...] *= min(1.0, clip / np.sqrt(len(network.widths) - 1) / norm) if norm else 1.0
        return result
    norm = np.linalg.norm(gradient)
    return gradient * (clip / (norm + 0.01) if clipping == "automatic" else min(1.0, clip / norm))


def slow_clipped_sum(
    network: Network, flat: np.ndarray, x: np.ndarray, y: np.ndarray, clip: float, clipping: str
) -> np.ndarray:
    """The obvious way: each record's whole gradient by central differences, then clip, then add."""
    total = np.zeros_like(flat)
    for record, label in zip(x, y, strict=True):
        gradient, h = np.zeros_like(flat), 1e-6
        for i in range(len(flat)):
            up, down = flat.copy(), flat.copy()
            up[i] += h
            down[i] -= h
            gradient[i] = (loss(network, up, record, label) - loss(network, down, record, label)) / (2 * h)
        total += clipped(network, gradient, clip, clipping)
    return total


LOSSES = st.sampled_from(["cross-entropy", "logistic", "squared"])
CLIPPINGS = st.sampled_from(["flat", "per-layer", "automatic"])


@settings(max_examples=25)
@given(
    st.lists(st.integers(1, 4), min_size=0, max_size=2),
    st.integers(1, 4),
    st.integers(2, 4),
    st.integers(1, 6),
    st.floats(0.01, 5),
    st.sampled_from(["relu", "tanh"]),
    LOSSES,
    CLIPPINGS,
    st.integers(0, 2**31),
)
def test_clipped_sums_equal_the_slow_oracle(
    hidden, features, classes, n, clip, activation, loss, clipping, seed
) -> None:
    rng = np.random.default_rng(seed)
    network = Network((features, *hidden, classes), activation, loss)
    flat = rng.normal(size=network.parameters)
    x, y = rng.normal(size=(n, features)), rng.integers(0, classes, n)
    fast = network.clipped_gradient_sum(flat, x, y, clip, clipping)
    np.testing.assert_allclose(fast, slow_clipped_sum(network, flat, x, y, clip, clipping), atol=5e-7)


@given(st.integers(0, 2**31), st.floats(0.01, 2))
def test_no_record_contributes_more_than_the_clip_norm(seed: int, clip: float) -> None:
    rng = np.random.default_rng(seed)
    network = Network((4, 3, 2))
    flat = rng.normal(size=network.parameters) * 10
    one = network.clipped_gradient_sum(flat, 100 * rng.normal(size=(1, 4)), np.array([1]), clip)
    assert np.linalg.norm(one) <= clip * (1 + 1e-12)


BACKENDS = ["portable", "compiled"]


def seed(*numbers: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(numbers)


class Sums(Watcher):
    """Keeps every noisy sum."""

    stepwise = True

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def observe(self, step, noisy_sum, parameters) -> bool:
        self.seen.append(noisy_sum.copy())
        return False


RECIPES = [
    {},
    {"model": "mlp"},
    {"model": "mlp", "hidden": (7, 5, 3), "activation": "tanh"},
    {"model": "mlp", "hidden": (6,), "initialisation": "random", "clip_norm": 0.3},
    {"sample_rate": 1.0, "noise_multiplier": 0.0},
    {"sample_rate": 0.01},
    {"sampling": "full", "sample_rate": 1.0, "optimizer": "momentum", "weight_decay": 0.1},
    {"sampling": "shuffle", "sample_rate": 0.28, "optimizer": "adam", "learning_rate": 0.02, "schedule": "cosine"},
    {"sampling": "fixed-size", "loss": "logistic", "clipping": "per-layer", "model": "mlp", "hidden": (5, 4)},
    {"loss": "squared", "clipping": "automatic", "model": "mlp", "schedule": "linear"},
    {"optimizer": "adam", "weight_decay": 0.01, "learning_rate": 0.05, "model": "mlp", "activation": "tanh"},
]


@pytest.mark.parametrize(("zeros", "classes"), [(0.0, 4), (0.97, 4), (0.0, compiled.MANY_CLASSES + 2)])
@pytest.mark.parametrize("changes", RECIPES, ids=str)
def test_both_backends_give_the_same_trials_within_rounding(changes, zeros: float, classes: int) -> None:
    """In the compiled one, records that are nearly all zeros have a first layer of their own, and many classes eˣ."""
    data = made_data(n=60, features=9, classes=classes)
    data = dataclasses.replace(data, x=data.x * (np.random.default_rng(1).random(data.x.shape) >= zeros))
    assert (len(sparse.compress(data.x)[0]) > 0) == (zeros > 0)
    for precision, tolerance in (("float32", 2e-4), ("float64", 1e-5)):  # float64: the noise itself is float32
        settings_ = {"sample_rate": 0.3, "steps": 15, "learning_rate": 0.5} | changes
        recipe = Recipe(records=60, precision=precision, **settings_)
        ours = [train(recipe, data, seed(3), backend=backend) for backend in BACKENDS]
        assert all(parameters.dtype == precision for parameters in ours)
        np.testing.assert_allclose(ours[0], ours[1], atol=tolerance)


@settings(max_examples=30)
@given(
    st.lists(st.integers(1, 20), min_size=0, max_size=3),
    st.integers(1, 40),
    st.integers(2, 25),
    st.integers(0, 70),
    st.floats(0.01, 5),
    st.sampled_from(["relu", "tanh"]),
    LOSSES,
    CLIPPINGS,
    st.sampled_from(["auto", "scipy"]),
    st.sampled_from([1.0, 0.03, 0.0]),
    st.integers(0, 2**31),
)
def test_compiled_sums_equal_the_plain_ones(
    hidden, features, classes, n, clip, activation, loss, clipping, library, density, number
) -> None:
    """In double precision to 1e-9, for any shape, number of records (in several chunks, or none), BLAS, and zeros."""
    rng = np.random.default_rng(number)
    network = Network((features, *hidden, classes), activation, loss)
    theta = compiled_trainer._aligned((network.parameters,), "float64")
    theta[:] = rng.normal(size=network.parameters)
    x, y = rng.normal(size=(80, features)) * (rng.random((80, features)) < density), rng.integers(0, classes, 80)
    rows = np.append(rng.permutation(80)[:n], 0)
    compressed = sparse.compress(x)
    tile, turned = (sparse.TILE, features) if len(compressed[0]) else (0, 0)
    units, chunk, total = sum(network.widths[1:]), 32, np.full(network.parameters, np.nan)
    first, layers = network.widths[1], len(network.widths) - 1
    batches = (chunk, features), (units, chunk), (units, chunk), (2, chunk), (layers, chunk)
    shapes = *batches, (tile, first), (turned, first)
    work = tuple(compiled_trainer._aligned(shape, "float64") for shape in shapes)
    shape = (
        compiled_trainer._ACTIVATIONS[activation],
        compiled_trainer._LOSSES[loss],
        compiled_trainer._CLIPPINGS[clipping],
    )
    gemm = blas.product_addresses(library)[1]
    squares = np.einsum("ij,ij->i", x, x)
    records = x, compressed
    compiled.clipped_sum(theta, total, records, y, squares, rows, n, np.array(network.widths), clip, shape, work, gemm)
    plain = network.clipped_gradient_sum(theta, x[rows[:n]], y[rows[:n]], clip, clipping)
    np.testing.assert_allclose(total, plain, atol=1e-9)


def test_a_trial_does_not_depend_on_its_group() -> None:
    """Bit for bit: alone, in a group, in another order, with another watcher, beside other data."""
    data, other = made_data(), made_data(n=55, seed=9)
    recipe = Recipe(records=40, sample_rate=0.4, steps=12, model="mlp", noise_multiplier=1.3)
    alone = [train(recipe, data, seed(i)) for i in range(4)]
    group = train_many(recipe, [data] * 4, [seed(i) for i in range(4)])
    np.testing.assert_array_equal(group, alone)
    backwards = train_many(recipe, [data] * 4, [seed(i) for i in reversed(range(4))])
    np.testing.assert_array_equal(backwards[::-1], alone)
    mixed = train_many(recipe, [other, data, other], [seed(7), seed(2), seed(2)])
    np.testing.assert_array_equal(mixed[1], alone[2])
    watched = train(recipe, data, seed(1), Sums())
    np.testing.assert_array_equal(watched, alone[1])
    few = dataclasses.replace(data, x=data.x * (np.arange(data.x.size).reshape(data.x.shape) % 29 == 0))
    np.testing.assert_array_equal(train(recipe, few, seed(1)), train(recipe, few, seed(1), Sums()))
    assert not np.array_equal(alone[0], alone[1])


def test_a_trial_does_not_depend_on_its_process() -> None:
    code = (
        "import numpy as np\nfrom epsilometer.data import digits\nfrom epsilometer.training import Recipe, train\n"
        "recipe = Recipe(records=1797, steps=8, model='mlp')\n"
        "print(train(recipe, digits(), np.random.SeedSequence((5,))).tobytes().hex())"
    )
    outputs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout
        for env in (dict(os.environ), {**os.environ, "OMP_NUM_THREADS": "2"}, {**os.environ, "OMP_NUM_THREADS": "1"})
    }
    assert len(outputs) == 1
    recipe = Recipe(records=1797, steps=8, model="mlp")
    assert outputs.pop().strip() == train(recipe, digits(), seed(5)).tobytes().hex()


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_step_is_noisy_sum_over_expected_batch(backend: str) -> None:
    """A whole training replayed by hand from the sums that a watcher saw."""
    data = made_data()
    recipe = Recipe(records=40, sample_rate=0.25, steps=7, learning_rate=0.5, noise_multiplier=1.1, model="mlp")
    watcher = Sums()
    final = train(recipe, data, seed(1), watcher, backend=backend)
    replayed = initial_parameters(recipe, network_for(recipe, data), threefry.trial_key(seed(1))).astype(np.float64)
    for total in watcher.seen:
        replayed -= 0.5 / (0.25 * 40) * total
    np.testing.assert_allclose(final, replayed, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_probe_sees_what_a_stepwise_watcher_sees(backend: str) -> None:
    class Probe(Watcher):
        def __init__(self, probe, inserted) -> None:
            self.probe, self.inserted = probe, inserted

        def finish(self, parameters, projections) -> None:
            self.projections = projections

    class Both(Probe, Sums):
        stepwise = True

        def __init__(self, probe, inserted) -> None:
            Probe.__init__(self, probe, inserted)
            Sums.__init__(self)

    data = made_data()
    recipe = Recipe(records=40, sample_rate=0.5, steps=9)
    size = network_for(recipe, data).parameters
    probe, inserted = np.linspace(-1, 1, size), np.full(size, 0.1)
    quick, slow = Probe(probe, inserted), Both(probe, inserted)
    results = [train(recipe, data, seed(4), w, backend=backend) for w in (quick, slow)]
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(quick.projections, np.array(slow.seen) @ probe, atol=1e-5)
    # The gradient is in about half of the steps, and by its own coin: batches and noise stay the same.
    without = Sums()
    train(recipe, data, seed(4), without, backend=backend)
    first = np.array(slow.seen)[0] - np.array(without.seen)[0]
    coin = threefry.words(threefry.trial_key(seed(4)), threefry.COIN, 0, 4)[0] < threefry.below(0.5)
    np.testing.assert_allclose(first, 0.1 if coin else 0.0, atol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_norm_that_overflows_never_passes_unclipped(backend: str) -> None:
    """‖x‖² is infinite in single precision and ‖error‖² is 0: their product is not a number, and not short either."""
    x = np.zeros((4, 1), np.float32)
    x[0] = 1e25
    data = Dataset("huge", x, np.zeros(4, np.int64), 2)
    recipe = Recipe(records=4, sample_rate=1.0, sampling="full", steps=1, noise_multiplier=0.0, clip_norm=1e-3)

    class Start(Watcher):
        start = np.array([60 / 1e25, 0, 0, 0], np.float32)

    with pytest.raises(TrainingDiverged):
        train(recipe, data, seed(0), Start(), backend=backend)


def test_the_divisor_does_not_depend_on_the_world() -> None:
    data = made_data()
    recipe = Recipe(records=40, sample_rate=1e-9, steps=1, noise_multiplier=1.0)
    smaller, bigger = (train(recipe, d, seed(3)) for d in (data, data.plus(data.x[0], 0, copies=200)))
    np.testing.assert_array_equal(smaller, bigger)  # no record is sampled: noise over a public number


def noise_of(noise_scale: float = 1.0) -> np.ndarray:
    """What is added when no record is sampled."""
    data = made_data(n=1, features=200, classes=10)
    recipe = Recipe(records=1, sample_rate=1e-9, steps=20, noise_multiplier=1.5, clip_norm=0.7)
    watcher = Sums()
    train(recipe, data, seed(8), watcher, noise_scale)
    return np.array(watcher.seen)


def test_noise_is_gaussian_with_sigma_times_clip_norm_and_independent() -> None:
    noise = noise_of()
    assert stats.kstest(noise.ravel() / (1.5 * 0.7), "norm").pvalue > 1e-3
    between_steps = np.corrcoef(noise[:-1].ravel(), noise[1:].ravel())[0, 1]
    assert abs(between_steps) < 4 / np.sqrt(noise.size)
    between_coordinates = np.corrcoef(noise[:, :-1].ravel(), noise[:, 1:].ravel())[0, 1]
    assert abs(between_coordinates) < 4 / np.sqrt(noise.size)
    # The same test rejects noise that is three percent off.
    assert stats.kstest(noise_of(1.03).ravel() / (1.5 * 0.7), "norm").pvalue < 1e-3


def test_poisson_samples_have_the_right_rate() -> None:
    key, n, steps = threefry.trial_key(seed(2)), 50, 4000
    words, rows, counts, sizes = np.empty(52, np.uint32), np.zeros(n + 1, np.int64), np.zeros(n), []
    for step in range(steps):
        _, size = compiled.sample_rows(compiled.POISSON, key, step, threefry.below(0.13), (7, 8), words, rows)
        counts[rows[:size]] += 1
        sizes.append(size)
    assert stats.chisquare(counts).pvalue > 1e-3
    assert stats.binomtest(int(counts.sum()), steps * n, 0.13).pvalue > 1e-3
    assert stats.binomtest(int(counts.sum()), steps * n, 0.14).pvalue < 1e-3  # a wrong rate is seen
    assert np.var(sizes) == pytest.approx(n * 0.13 * 0.87, rel=0.1)  # and a fixed batch size would be, too
    assert counts.min() > 0  # the borders, too


def rows_of(sampling: str, n: int, rate: float, steps: int, number: int = 2) -> list[list[int]]:
    """Batches, by both backends, which must agree."""
    recipe = Recipe(records=n, sample_rate=rate, sampling=sampling)
    key = threefry.trial_key(seed(number))
    words, rows, batches = np.empty(-(-n // 4) * 4, np.uint32), np.zeros(n + 1, np.int64), []
    for step in range(steps):
        batch = recipe.batch_size, recipe.batches
        begin, count = compiled.sample_rows(
            compiled_trainer._SAMPLINGS[sampling], key, step, threefry.below(rate), batch, words, rows
        )
        batches.append(rows[begin : begin + count].tolist())
        assert batches[-1] == sample(recipe, key, step, n).tolist()
    return batches


@pytest.mark.parametrize("backend", ["compiled", "portable"])
def test_a_lone_record_does_not_give_an_epoch_one_more_batch(backend: str) -> None:
    """The number of records is public: with 21 of them in batches of 10, both neighbours have epochs of 3 batches."""
    rng = np.random.default_rng(0)
    recipe = Recipe(records=21, sample_rate=10 / 21, sampling="shuffle", steps=6, noise_multiplier=0.0)
    whole = Dataset("random", rng.normal(size=(21, 4)).astype(np.float32), rng.integers(0, 2, 21), 2)

    class Sums(Watcher):
        stepwise = True

        def __init__(self) -> None:
            self.moved: list[bool] = []

        def observe(self, step: int, noisy_sum: np.ndarray, parameters: np.ndarray) -> bool:
            self.moved.append(bool(np.any(noisy_sum)))
            return False

    for data, last in ((whole, True), (whole.without(20), False)):
        watcher = Sums()
        train(recipe, data, seed(0), watcher, backend=backend)
        assert watcher.moved == [True, True, last, True, True, last]


def test_shuffled_epochs_use_every_record_once() -> None:
    batches = rows_of("shuffle", n=23, rate=0.2, steps=15)  # batches of 5, 5 an epoch
    for epoch in (batches[:5], batches[5:10], batches[10:]):
        assert sorted(np.concatenate(epoch).tolist()) == list(range(23))
        assert [len(b) for b in epoch] == [5, 5, 5, 5, 3]
    assert batches[0] != batches[5]


def test_fixed_size_batches_are_drawn_without_replacement_and_evenly() -> None:
    batches = rows_of("fixed-size", n=20, rate=0.25, steps=2000)
    assert all(len(set(batch)) == 5 for batch in batches)
    counts = np.bincount(np.concatenate(batches), minlength=20)
    assert stats.chisquare(counts).pvalue > 1e-3
    pairs = sum({0, 1} <= set(batch) for batch in batches)
    assert stats.binomtest(pairs, 2000, 5 * 4 / (20 * 19)).pvalue > 1e-3


def test_full_batches_are_full() -> None:
    assert rows_of("full", n=6, rate=1.0, steps=2) == [list(range(6))] * 2


def test_an_empty_batch_is_a_step_with_noise_only() -> None:
    assert np.all(np.abs(noise_of()).sum(axis=1) > 0)
    network = Network((3, 2))
    empty = network.clipped_gradient_sum(np.zeros(8), np.zeros((0, 3)), np.zeros(0, np.int64), 1.0)
    assert not empty.any()


def test_initial_weights_are_fixed_or_drawn() -> None:
    data = made_data()
    settings_ = {"records": 40, "steps": 1, "noise_multiplier": 0.0, "sample_rate": 1.0}
    np.testing.assert_array_equal(*(train(Recipe(**settings_), data, seed(i)) for i in (1, 2)))
    drawn = [train(Recipe(**settings_, initialisation="random"), data, seed(i)) for i in (1, 2)]
    assert not np.array_equal(*drawn)


@pytest.mark.parametrize("backend", BACKENDS)
def test_divergence_is_an_error_with_a_remedy(backend: str) -> None:
    recipe = Recipe(records=40, steps=5, learning_rate=9e29, clip_norm=1e12, noise_multiplier=1.0)
    with pytest.raises(TrainingDiverged, match="lower the learning rate"):
        train(recipe, made_data(), seed(0), backend=backend)


def test_the_median_norm_is_that_of_unclipped_gradients() -> None:
    data = made_data()
    recipe = Recipe(records=40, sample_rate=1.0, sampling="full", steps=1, model="mlp", precision="float64")
    network = network_for(recipe, data)
    start = initial_parameters(recipe, network, threefry.trial_key(seed(1)))
    norms = [np.linalg.norm(network.clipped_gradient_sum(start, data.x[i : i + 1], data.y[i : i + 1], np.inf))
             for i in range(40)]  # fmt: skip
    assert median_gradient_norm(recipe, data, seed(1)) == pytest.approx(np.median(norms), rel=1e-6)
    longer = Recipe(records=40, sample_rate=0.3, steps=30, model="mlp")
    assert 0 < median_gradient_norm(longer, data, seed(1)) < 10


def test_misuse_of_the_engine_is_refused_in_words() -> None:
    data, recipe = made_data(), Recipe(records=40, steps=1)
    with pytest.raises(InvalidInput, match="sequences of one length"):
        train_many(recipe, [data], [seed(0), seed(1)])
    with pytest.raises(InvalidInput, match="backend = 'gpu'"):
        train(recipe, data, seed(0), backend="gpu")
    watcher = Watcher()
    watcher.probe = np.zeros(3)
    with pytest.raises(InvalidInput, match="one value for each of 18 parameters"):
        train(recipe, data, seed(0), watcher)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"records": 0}, "records = 0"),
        ({"sample_rate": 1.5}, "sample_rate = 1.5"),
        ({"steps": 2.5}, "steps = 2.5"),
        ({"clip_norm": 0.0}, "clip_norm = 0"),
        ({"learning_rate": float("nan")}, "learning_rate = nan"),
        ({"model": "mpl"}, "did you mean 'mlp'"),
        ({"hidden": ()}, "at least one"),
        ({"hidden": (3, 0)}, "hidden = 0"),
        ({"activation": "rely"}, "did you mean 'relu'"),
        ({"precision": "float16"}, "one of float32, float64"),
        ({"initialisation": "glorot"}, "one of fixed, random"),
        ({"noise_multiplier": True}, "noise_multiplier = True"),
        ({"sampling": "possion"}, "did you mean 'poisson'"),
        ({"sampling": "full"}, "exactly 1 with sampling"),
        ({"sampling": "shuffle", "sample_rate": 1.0}, "below 1 otherwise"),
        ({"momentum": 1.0}, "momentum = 1"),
        ({"weight_decay": -0.1}, "weight_decay = -0.1"),
    ],
)
def test_bad_recipes_are_refused_in_words(changes, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Recipe(**({"records": 10} | changes))


@pytest.mark.parametrize("value", [np.array([1.0, 2.0]), np.array("sgd"), ["sgd"], {"a": 1}, (np.ones(2),), 10**400])
@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Recipe)])
def test_arrays_are_no_settings(name: str, value) -> None:
    with pytest.raises(InvalidInput, match=f"^{name} = "):
        Recipe(**({"records": 10} | {name: value}))


def test_widths_may_come_as_a_list() -> None:
    assert Recipe(records=10, hidden=[3, 4]) == Recipe(records=10, hidden=(3, 4))
