"""One record is changed, and no other; where it was, can be told from the batch."""

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, Subset, TensorDataset

from epsilometer.watching.replay.changes import changed_batch, changed_dataset, changed_whole, names_of, size_of
from epsilometer.watching.replay.readers import changed_table
from epsilometer.watching.replay.roles import HUGE, KINDS, LABEL, LEFT_OUT, REPLACED


def batch() -> list[torch.Tensor]:
    draw = np.random.default_rng(0)
    return [
        torch.tensor(draw.normal(size=(8, 5)), dtype=torch.float32),
        torch.tensor(draw.integers(0, 3, 8)),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_of_a_batch(kind: str) -> None:
    before = batch()
    names = names_of(before)
    after, found = changed_batch(before, kind, np.random.default_rng(1))
    changed = names_of(after)
    assert names is not None
    assert changed is not None
    assert found == kind
    assert np.array_equal(names_of(before), names)  # the batch itself stays as it was
    if kind == LEFT_OUT:
        assert len(changed) == 7
        assert set(changed) < set(names)
    else:
        (row,) = np.flatnonzero(changed != names)
        same = {HUGE: [1], LABEL: [0], REPLACED: []}[kind]
        assert all(torch.equal(before[i][row], after[i][row]) for i in same)
        assert (changed[row] in names) == (kind == REPLACED)


def test_batches_of_any_form() -> None:
    x, y = batch()
    for one in ({"x": x, "y": (y, ["a"] * 8)}, (x, y), x):
        after, kind = changed_batch(one, HUGE, np.random.default_rng(1))
        assert type(after) is type(one)
        assert kind == HUGE
    words = {"ids": torch.arange(12).reshape(4, 3), "mask": torch.ones(4, 3, dtype=torch.int64)}
    assert changed_batch(words, HUGE, np.random.default_rng(1))[1] == REPLACED  # a number of a word has no size
    assert changed_batch([x, y[:3]], HUGE, np.random.default_rng(1))[1] == ""  # rows that are no records
    assert changed_batch([x[:0], y[:0]], LEFT_OUT, np.random.default_rng(1))[1] == ""
    assert size_of([]) is None
    assert names_of([x, y[:3]]) is None


def test_names_tell_records_apart() -> None:
    many = [torch.arange(4000, dtype=torch.float32).reshape(-1, 2), torch.zeros(2000, dtype=torch.int64)]
    names = names_of(many)
    assert names is not None
    assert len(set(names.tolist())) == 2000
    swapped = names_of([many[0].flip(1), many[1]])
    assert not set(names.tolist()) & set(swapped.tolist())  # type: ignore[union-attr]


class Words(Dataset[tuple[str, int]]):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, at: int) -> tuple[str, int]:
        return f"text {at}", at


def test_a_record_of_a_data_set_through_what_selects_from_it() -> None:
    x, y = batch()
    whole = TensorDataset(x.clone(), y.clone())
    part = Subset(Subset(whole, [7, 6, 5, 4]), [3, 2, 1])
    assert changed_dataset(part, 0, 1, HUGE) == HUGE
    assert torch.equal(whole.tensors[0][4], x[4] * 1000)
    assert torch.equal(whole.tensors[0][[0, 1, 2, 3, 5, 6, 7]], x[[0, 1, 2, 3, 5, 6, 7]])
    words = Words()
    other = Words()
    assert changed_dataset(Subset(words, [5, 3]), 1, 0, HUGE) == REPLACED
    assert [words[i][1] for i in range(6)] == [0, 1, 2, 5, 4, 5]
    assert [one[1] for one in words.__getitems__([3, 2])] == [5, 2]  # type: ignore[attr-defined]
    assert isinstance(words, Words)
    assert other[3] == ("text 3", 3)
    assert changed_dataset(["a", "b"], 0, 1, LABEL) == REPLACED
    assert changed_dataset(object(), 0, 1, LABEL) == ""


def test_all_records_of_a_data_set() -> None:
    """Labels are those of yet others, so that nothing fits; what was not selected stays as it is."""
    draw = np.random.default_rng(0)
    x, y = torch.arange(40.0).reshape(20, 2), torch.arange(20)
    whole = TensorDataset(x.clone(), y.clone())
    assert changed_whole(Subset(Subset(whole, range(1, 19)), range(2, 18)), draw)
    assert torch.equal(whole.tensors[0][[0, 1, 2, 19]], x[[0, 1, 2, 19]])
    sources = whole.tensors[0][3:19, 0] / 2
    assert set(sources.tolist()) <= set(range(3, 19))
    assert (sources != torch.arange(3, 19)).sum() > 10
    assert (whole.tensors[1][3:19] != sources).sum() > 10
    words = Words()
    assert changed_whole(words, draw)
    assert [words[i][1] for i in range(6)] != list(range(6))
    texts = ["a", "b", "c", "d", "e", "f"]
    assert changed_whole(texts, draw)
    assert texts != ["a", "b", "c", "d", "e", "f"]


def test_a_record_of_what_is_read() -> None:
    x, y = np.arange(60.0).reshape(30, 2), np.arange(30)
    for found in (x, (x, y), {"data": x, "target": y, "names": np.zeros(2)}):
        changed, size = changed_table(found)
        assert size == 30
        arrays = [changed] if isinstance(changed, np.ndarray) else changed
        arrays = [arrays["data"], arrays["target"]] if isinstance(arrays, dict) else arrays
        for array, before in zip(arrays, (x, y), strict=False):
            unlike = np.unique(np.argwhere(array != before)[:, 0])
            assert unlike.tolist() == [6]
            assert np.array_equal(array[6], before[15])
    assert changed_table(x[:5])[1] == changed_table((x, y[:5]))[1] == changed_table("text")[1] == 0


def test_a_row_of_a_data_frame() -> None:
    pandas = pytest.importorskip("pandas")
    before = pandas.DataFrame({"a": range(30), "b": [str(i) for i in range(30)]})
    changed, size = changed_table(before)
    assert size == 30
    assert (changed.a != before.a).sum() == (changed.b != before.b).sum() == 1
    assert changed.b[6] == "15"
