from pathlib import Path

import numpy as np
import pytest

from epsilometer.data import DATASETS, Dataset, digits, load
from epsilometer.errors import InvalidInput


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


def named() -> Dataset:
    """Six records of three classes; the pixel is the row."""
    return Dataset("a", np.arange(12).reshape(6, 2), [2, 0, 2, 1, 0, 2], 3, ("ant", "bee", "cat"), (1, 2))


def test_names_and_shape_stay_but_are_not_in_the_fingerprint() -> None:
    data = named()
    assert Dataset("b", data.x, data.y, 3).fingerprint() == data.fingerprint()
    for other in (data.plus([0, 0], 1), data.with_rows(0, [0, 0], 1), data.subset()):
        assert (other.class_names, other.shape) == (("ant", "bee", "cat"), (1, 2))


def test_rows_are_replaced_and_nothing_else() -> None:
    data = named()
    two = data.with_rows([4, 1], [[8, 8], [9, 9]], [1, 2])
    assert two.x.tolist() == [[0, 1], [9, 9], [4, 5], [6, 7], [8, 8], [10, 11]]
    assert two.y.tolist() == [2, 2, 2, 1, 1, 2]
    same = data.with_rows(np.array([0, 5]), [7, 7], 0)
    assert same.x[[0, 5]].tolist() == [[7, 7], [7, 7]]
    assert same.y.tolist() == [0, 0, 2, 1, 0, 0]
    assert data.fingerprint() == named().fingerprint()


def test_a_subset_is_relabelled_in_the_order_given_and_keeps_the_order_of_records() -> None:
    part = named().subset(["cat", 0], per_class=2)
    assert part.x[:, 0].tolist() == [0, 2, 4, 8]
    assert part.y.tolist() == [0, 1, 0, 1]
    assert (part.classes, part.class_names, part.shape) == (2, ("cat", "ant"), (1, 2))
    assert named().subset().fingerprint() == named().fingerprint()
    assert named().subset(per_class=1).y.tolist() == [2, 0, 1]


def test_every_data_set_has_a_summary_and_a_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    for name, source in DATASETS.items():
        assert source.summary
        assert f"| `{name}` |" in page


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Dataset("a", np.zeros((2, 2), np.float32), np.array([0, 5]), 2), "labels from 0 to 1"),
        (lambda: Dataset("a", np.zeros((2, 2), np.float32), np.array([0]), 2), "as many labels"),
        (lambda: Dataset("a", np.full((1, 2), np.nan, np.float32), np.array([0]), 2), "finite features"),
        (lambda: digits().plus(np.ones(3), 0), "a record of shape"),
        (lambda: digits().plus(np.ones(64), 10), "labels from 0 to 9"),
        (lambda: load("digit"), "did you mean 'digits'"),
        (lambda: load("digits", part="test"), "digits has no official test part"),
        (lambda: load("mnist", part="tset"), "expected 'train' or 'test'"),
        (lambda: load("mnist", directory="/no/such/place"), "data.directory = .*an existing directory"),
        (lambda: load("mnist", per_class=0), "data.per_class = 0"),
        (lambda: load("mnist", download=False), "train-images-idx3-ubyte.gz and train-labels.* in .*mnist or in"),
        (lambda: load("retail"), "no checksum is published"),
        (lambda: Dataset("a", np.zeros((1, 2)), [0], 2, ("x",)), "2 different names"),
        (lambda: Dataset("a", np.zeros((1, 2)), [0], 2, (), (3, 3)), "one of 2 features"),
        (lambda: named().subset(["ant", "be"]), "data.classes = 'be'.*did you mean 'bee'"),
        (lambda: named().subset(["ant", 3]), "class numbers from 0 to 2"),
        (lambda: named().subset(["ant", True]), "class numbers from 0 to 2"),
        (lambda: named().subset(["ant", 0]), "each class once"),
        (lambda: named().subset(["ant"]), "at least 2 classes"),
        (lambda: named().subset("ant"), "a list of class names or numbers"),
        (lambda: Dataset("a", np.zeros((1, 2)), [0], 2).subset(["x", "y"]), "class numbers from 0 to 1"),
        (lambda: named().subset(per_class=2), "data.per_class = 2: expected at most 1; class 'bee' has 1 records"),
        (lambda: named().subset(per_class=0), "data.per_class = 0"),
        (lambda: named().with_rows([6], [0, 0], 0), "row numbers from 0 to 5"),
        (lambda: named().with_rows([-1], [0, 0], 0), "row numbers from 0 to 5"),
        (lambda: named().with_rows([1, 1], [0, 0], 0), "each row once"),
        (lambda: named().with_rows([1, 2], [[0, 0]], 0), "1 or 2 records of 2 features"),
        (lambda: named().with_rows([1], [0, 0], 3), "labels from 0 to 2"),
        (lambda: named().with_rows([1], [0, 0], 0.5), "labels from 0 to 2"),
    ],
)
def test_bad_data_are_refused_in_words(make, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_neighbours_are_checked_where_they_are_new() -> None:
    """All else was checked before, and is not checked again for every neighbour."""
    few = Dataset("few", np.eye(4), [0, 1, 0, 1], 2)
    for x, y, words in (
        ([np.nan, 0, 0, 0], 1, "finite"), (few.x[0], 2, "labels from 0 to 1"), (few.x[0], 0.5, "labels"),
        (few.x[0], [0, 1], "class of one"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=words):
            few.plus(x, y)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="finite"):
        few.with_rows([0], [np.inf, 0, 0, 0], 1)
    for rows in (0, np.array([[0, 1]])):
        with pytest.raises(InvalidInput, match="rows"):
            few.taken(rows)  # type: ignore[arg-type]
    parts = few.taken(np.arange(2)), few.taken(slice(1, 3))
    for neighbour in (few.plus(few.x[0], 1), few.without(2), few.with_rows([1], few.x[0], 0), *parts):
        assert not neighbour.x.flags.writeable
        assert not neighbour.y.flags.writeable
        assert not np.shares_memory(neighbour.x, few.x)
        again = Dataset("few", neighbour.x, neighbour.y, 2)
        assert again.fingerprint() == neighbour.fingerprint()
