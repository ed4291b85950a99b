import numpy as np
import pytest

from epsilometer import Dataset, InvalidInput, digits
from epsilometer.data import load


def test_digits_are_scaled_and_complete() -> None:
    data = digits()
    assert (len(data), data.classes, data.x.dtype) == (1797, 10, np.float32)
    assert data.x.min() == 0
    assert data.x.max() == 1
    assert set(data.y.tolist()) == set(range(10))


def test_data_are_frozen() -> None:
    x = np.zeros((2, 2))
    data = Dataset("a", x, [0, 1], 2)
    x[0] = 9
    assert not data.x.any()
    with pytest.raises(ValueError, match="read-only"):
        data.x[0] = 1
    with pytest.raises(InvalidInput, match="float64"):
        Dataset("a", x, [0.5, 1.0], 2)


def test_a_neighbour_has_the_copies_at_the_end() -> None:
    data = digits()
    more = data.plus(np.ones(64), 3, copies=2)
    assert len(more) == 1799
    assert more.y[-2:].tolist() == [3, 3]
    assert len(data) == 1797


def test_the_fingerprint_knows_order_and_labels() -> None:
    x, y = np.eye(3, dtype=np.float32), np.array([0, 1, 0])
    base = Dataset("a", x, y, 2).fingerprint()
    assert base == Dataset("b", x.copy(), y.copy(), 2).fingerprint()
    assert base != Dataset("a", x[::-1], y, 2).fingerprint()
    assert base != Dataset("a", x, 1 - y, 2).fingerprint()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Dataset("a", np.zeros((2, 2), np.float32), np.array([0, 5]), 2), "labels from 0 to 1"),
        (lambda: Dataset("a", np.zeros((2, 2), np.float32), np.array([0]), 2), "as many labels"),
        (lambda: Dataset("a", np.full((1, 2), np.nan, np.float32), np.array([0]), 2), "finite features"),
        (lambda: digits().plus(np.ones(3), 0), "a record of shape"),
        (lambda: digits().plus(np.ones(64), 10), "labels from 0 to 9"),
        (lambda: load("digit"), "did you mean 'digits'"),
    ],
)
def test_bad_data_are_refused_in_words(make, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make()
