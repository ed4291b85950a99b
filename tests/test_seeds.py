"""Seeds of many uses are numpy's own, whether they are made or not."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from epsilometer.seeds import Seeds, Stream, seed_of, words_of

KEYS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2**32 - 1)), min_size=1, max_size=20)


@given(st.integers(0, 2**200), KEYS, st.integers(1, 9))
def test_words_of_all_at_once_are_numpys(seed: int, keys: list[tuple[int, int]], count: int) -> None:
    made = [seed_of(seed, *key) for key in keys]
    expected = np.array([one.generate_state(count) for one in made])
    np.testing.assert_array_equal(words_of(Seeds(seed, keys), count), expected)
    np.testing.assert_array_equal(words_of(made, count), expected)


def test_seeds_are_a_sequence() -> None:
    seeds = Seeds(5, [(Stream.OUT, 0), (Stream.IN, 0), (Stream.IN, 1)])
    assert [seed.spawn_key for seed in seeds] == [(0, 0), (1, 0), (1, 1)]
    assert [seed.spawn_key for seed in seeds[1:]] == [(1, 0), (1, 1)]
    assert seeds[-1].entropy == 5
