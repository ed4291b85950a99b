"""Pre-trained extractors: better than random weights, the same from the same seed, of any shape."""

import numpy as np
import pytest

from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.training import Pretraining, linear_probe, pretrain

SEED = np.random.SeedSequence(3)


def stripes(seed: int, records: int = 400, side: int = 12, shape: tuple[int, ...] = (1, 12, 12)) -> Dataset:
    """Four directions of stripes at random places, in noise: means of pixels tell nothing, edges tell all."""
    rng = np.random.default_rng(seed)
    y = np.arange(records) % 4
    down, right = np.mgrid[:side, :side]
    waves = np.stack([down, right, down + right, down - right])
    phases = rng.uniform(0, 2 * np.pi, records)[:, None, None]
    x = 0.5 + 0.2 * np.sin(waves[y] * 1.5 + phases) + 0.25 * rng.normal(size=(records, side, side))
    return Dataset("stripes", np.clip(x, 0, 1).reshape(records, -1), y, 4, shape=shape)


SMALL = Pretraining(channels=(8, 12), strides=(1, 2), epochs=12, batch=32, learning_rate=0.02, flips=False)


def test_features_beat_random_weights_and_pixels() -> None:
    train, test = stripes(0), stripes(1)
    losses = []
    made = pretrain(train, SMALL, SEED, lambda _, loss: losses.append(loss))
    random = pretrain(train, Pretraining(SMALL.channels, SMALL.strides, epochs=0), SEED)

    def probed(extractor) -> float:
        return linear_probe(extractor.features(train.x), train.y, extractor.features(test.x), test.y)

    assert len(losses) == 12
    assert losses[-1] < 0.5 * losses[0]
    assert made.accuracy(test) > 0.9
    assert probed(made.extractor) > probed(random.extractor) + 0.1
    assert linear_probe(train.x, train.y, test.x, test.y) < 0.6  # it is not the pixels


def test_the_extractor_is_the_network_that_was_trained() -> None:
    """Pixels are scaled while training; the first layer has to keep that, or accuracy is lost."""
    train = stripes(0)
    made = pretrain(train, SMALL, SEED)
    assert made.accuracy(train) > 0.9
    assert made.extractor.mean == pytest.approx(255 * train.x.mean(axis=0).reshape(1, 12, 12), abs=1e-3)
    assert [weight.shape for weight, _ in made.extractor.layers] == [(8, 1, 3, 3), (12, 8, 3, 3)]
    assert made.extractor.strides == (1, 2)


def test_a_seed_decides_everything() -> None:
    import torch

    settings = Pretraining((4,), (2,), epochs=1)
    train = stripes(0, 64, shape=(12, 12))  # without channels is one channel
    before = torch.random.get_rng_state()
    first, again, other = (pretrain(train, settings, np.random.SeedSequence(seed)).extractor for seed in (0, 0, 1))
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()
    assert torch.equal(before, torch.random.get_rng_state())  # nobody else's randomness is touched


def test_a_probe_is_least_squares() -> None:
    rng = np.random.default_rng(0)
    x, wild = rng.normal(size=(300, 5)), rng.normal(size=(300, 5))
    y = (x[:, 0] > 0).astype(np.int64)
    assert linear_probe(x[:200], y[:200], x[200:], y[200:]) > 0.9
    assert linear_probe(wild[:200], y[:200], wild[200:], y[200:]) < 0.65
    constant = np.hstack([x, np.ones((300, 1))])
    assert linear_probe(constant[:200], y[:200], constant[200:], y[200:]) > 0.9


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Pretraining(channels=()), "strides"),
        (lambda: Pretraining(channels=(8, 8)), r"strides = \(1, 2, 2\): expected 2 numbers, one a layer"),
        (lambda: Pretraining(channels=(0, 8, 8)), "channels = 0: expected a whole number from 1 to 4,096"),
        (lambda: Pretraining(epochs=-1), "epochs = -1"),
        (lambda: Pretraining(learning_rate=0.0), "learning_rate = 0.0"),
        (
            lambda: pretrain(Dataset("table", np.zeros((2, 3)), [0, 1], 2), SMALL, SEED),
            "data = 'table': expected images",
        ),
        (lambda: linear_probe(np.ones((2, 2)), np.ones(2, int), np.ones((2, 3)), np.ones(2, int)), "x, test_x"),
    ],
)
def test_what_cannot_be_trained_is_refused(call, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        call()
