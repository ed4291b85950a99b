"""Counter-based randomness: published vectors, distribution, independence, and no reuse."""

import numpy as np
import pytest
from scipy import stats

from epsilometer.training import compiled, threefry
from epsilometer.training.threefry import COIN, INIT, NOISE, SAMPLE, below, normal_rows, normals, trial_key, words
from epsilometer.training.threefry import threefry as block

u32 = np.uint32
KEY = trial_key(np.random.SeedSequence(1))


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        # Known answers of Random123 (Salmon et al. 2011), kat_vectors, threefry 4x32 20.
        ((0,) * 4, (0,) * 4, (0x9C6CA96A, 0xE17EAE66, 0xFC10ECD4, 0x5256A7D8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 4, (0x2A881696, 0x57012287, 0xF6C7446E, 0xA16A6732)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0, 0x082EFA98, 0xEC4E6C89),
            (0x59CD1DBB, 0xB8879579, 0x86B5D00C, 0xAC8B6D84),
        ),
    ],
)
def test_published_vectors(counter, key, expected) -> None:
    with np.errstate(over="ignore"):
        found = block(*(np.array([w], u32) for w in (*counter, *key)))
    assert tuple(int(w[0]) for w in found) == expected


@pytest.mark.parametrize("count", [4, 8, 100, 25_184])
def test_compiled_words_are_the_portable_ones(count: int) -> None:
    out = np.empty(count, u32)
    for stream, step in ((SAMPLE, 0), (NOISE, 7), (COIN, 123_456)):
        compiled.fill_words(KEY, stream, step, out)
        np.testing.assert_array_equal(out, words(KEY, stream, step, count))


def test_compiled_normals_are_the_portable_ones_within_rounding() -> None:
    out = np.empty(400_000, np.float32)
    compiled.fill_normals(KEY, 3, out)
    np.testing.assert_allclose(out, normals(KEY, 3, len(out)), atol=2e-4)  # near 0 the radius is coarse
    assert np.mean(np.abs(out - normals(KEY, 3, len(out)))) < 3e-7


@pytest.mark.parametrize("count", [1, 4, 5, 100])
def test_rows_of_normals_are_those_of_each_key(count: int) -> None:
    keys = np.stack([trial_key(np.random.SeedSequence(seed)) for seed in range(7)])
    rows = normal_rows(keys, 3, count)
    for key, row in zip(keys, rows, strict=True):
        np.testing.assert_array_equal(row.astype(np.float32), normals(key, 3, count))
        assert normal_rows(key[None], 3, count)[0].tobytes() == row.tobytes()  # whatever stands beside it


def test_normals_are_normal_to_the_tails() -> None:
    out = np.concatenate([_compiled_normals(step, 2_000_000) for step in range(10)]).astype(np.float64)
    assert stats.kstest(out[:2_000_000], "norm").pvalue > 1e-3
    n = len(out)
    for power, moment, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(np.mean(out**power) - moment) < 4 * np.sqrt(spread / n)
    for limit in (3.0, 4.0, 4.5, 5.0):
        for side in (out > limit, out < -limit):
            assert stats.binomtest(int(side.sum()), n, stats.norm.sf(limit)).pvalue > 1e-4
    # A wrong deviation is seen at once.
    assert abs(np.mean((1.002 * out) ** 2) - 1) > 4 * np.sqrt(2 / n)
    assert stats.kstest(1.01 * out[:2_000_000], "norm").pvalue < 1e-3


def test_tails_reach_beyond_six_deviations() -> None:
    word, angle = np.array([0], u32), np.array([0], u32)
    assert compiled._radius(word[0]) > 6.6
    assert compiled._radius(u32(0xFFFFFFFF)) < 1e-3
    assert compiled._direction(angle[0]) == (1.0, 0.0)
    # P[radius > 6] = e^{−18}: the words below it, of 2³².
    expected = np.exp(-18) * 2**32
    w = np.arange(200, dtype=np.uint32)
    beyond = sum(compiled._radius(x) > 6 for x in w)
    assert beyond == pytest.approx(expected, abs=1.5)


def _compiled_normals(step: int, count: int) -> np.ndarray:
    out = np.empty(count, np.float32)
    compiled.fill_normals(KEY, step, out)
    return out


def test_trials_steps_streams_and_coordinates_share_nothing() -> None:
    draws = [
        words(trial_key(np.random.SeedSequence(seed, spawn_key=(world, index))), stream, step, 512)
        for seed in (0, 1) for world in (0, 1) for index in (0, 1, 2)
        for stream in (SAMPLE, NOISE, COIN, INIT) for step in (0, 1, 2)
    ]  # fmt: skip
    everything = np.concatenate(draws)
    # 73,728 words of 2³²: about 0.6 repetitions by chance. Any shared stream would give hundreds.
    assert len(everything) - len(np.unique(everything)) <= 5
    z = np.array([d.astype(np.float64) for d in draws])
    correlations = np.corrcoef(z)[np.triu_indices(len(z), 1)]
    assert np.abs(correlations).max() < 5.5 / np.sqrt(512)
    along = np.corrcoef(z[:, :-1].ravel(), z[:, 1:].ravel())[0, 1]
    assert abs(along) < 4 / np.sqrt(z.size)


@pytest.mark.parametrize("rate", [0.0, 1e-9, 0.013, 0.5, 1.0])
def test_thresholds_have_the_rate(rate: float) -> None:
    assert int(below(rate)) / 2**32 == pytest.approx(rate, abs=2**-33)


def test_everything_is_sampled_at_rate_one_and_nothing_at_rate_zero() -> None:
    buffer, rows = np.empty(8, u32), np.zeros(8, np.int64)
    assert compiled.sample_rows(compiled.POISSON, KEY, 0, threefry.below(1.0), (3, 3), buffer, rows) == (0, 7)
    assert rows[:7].tolist() == list(range(7))
    assert compiled.sample_rows(compiled.POISSON, KEY, 0, threefry.below(0.0), (3, 3), buffer, rows) == (0, 0)
