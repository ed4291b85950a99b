"""Poisoned records are made for many trainings at once, and no training is any different for it."""

from itertools import count

import numpy as np
import pytest

from epsilometer import Recipe
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.training import Watcher, side_by_side, threefry, train, train_many
from epsilometer.training.sampling import sample

BACKENDS = ["portable", "compiled"]
SAMPLINGS = [
    {"sampling": "poisson", "sample_rate": 0.4},
    {"sampling": "full", "sample_rate": 1.0},
    {"sampling": "shuffle", "sample_rate": 0.25, "optimizer": "adam", "learning_rate": 0.05},
    {"sampling": "fixed-size", "sample_rate": 0.25, "optimizer": "momentum"},
]


def made_data(n: int = 40, features: int = 5, classes: int = 3) -> Dataset:
    rng = np.random.default_rng(0)
    return Dataset("made", rng.normal(size=(n, features)).astype(np.float32), rng.integers(0, classes, n), classes)


def seed(*numbers: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(numbers)


class Echo:
    """A record that depends on the step and the model."""

    def __init__(self, row: int) -> None:
        self.row = row
        self.asked: list[list[int]] = []

    def records(self, steps, parameters):
        self.asked.append(steps.tolist())
        return np.tanh(parameters[:, :5] * (1 + steps[:, None])), steps % 3


class Same:
    """Always the same record."""

    def __init__(self, row: int, record, label: int) -> None:
        self.row, self.record, self.label = row, record, label

    def records(self, steps, parameters):
        return np.repeat(self.record[None], len(steps), axis=0), np.full(len(steps), self.label)


class Poisoned(Watcher):
    stepwise = True

    def __init__(self, poisoner, last: int | None = None) -> None:
        self.poisoner, self.last = poisoner, last
        self.models: list[np.ndarray] = []

    def observe(self, step, noisy_sum, parameters) -> bool:
        self.models.append(parameters.copy())
        return step == self.last


def recipe_with(**changes) -> Recipe:
    return Recipe(**{"records": 40, "steps": 8, "model": "mlp", "hidden": (6,), **changes})


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("changes", SAMPLINGS, ids=lambda changes: changes["sampling"])
def test_replacing_a_record_is_training_on_the_data_that_have_it_until_stopped(changes, backend: str) -> None:
    data, record = made_data(), np.full(5, 2.0, np.float32)
    x, y = data.x.copy(), data.y.copy()
    x[39], y[39] = record, 1
    watcher = Poisoned(Same(39, record, 1), last=5)
    recipe = recipe_with(**changes)
    stopped = train(recipe, data, seed(6), watcher, backend=backend)
    plain = Poisoned(None)
    train(recipe, Dataset("b", x, y, 3), seed(6), plain, backend=backend)
    assert len(watcher.models) == 6
    np.testing.assert_array_equal(stopped, plain.models[5])
    np.testing.assert_array_equal(watcher.models, plain.models[:6])
    np.testing.assert_array_equal(data.x, made_data().x)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("changes", SAMPLINGS, ids=lambda changes: changes["sampling"])
def test_any_group_and_order_gives_the_same_bits(changes, backend: str, monkeypatch) -> None:
    """Several poisoners, rows, worlds and watchers in one group; some end early, some never wait."""
    recipe, bigger = recipe_with(**changes), made_data(41)
    smaller = bigger.without(40)
    makers = [
        lambda: (bigger, Poisoned(first)),
        lambda: (bigger, Poisoned(first)),
        lambda: (smaller, Poisoned(None)),
        lambda: (bigger, Poisoned(second, last=3)),
        lambda: (smaller, Watcher()),
        lambda: (bigger, Poisoned(first, last=0)),
        lambda: (smaller, Poisoned(second)),
        lambda: (bigger, Poisoned(first)),
        lambda: (bigger, Watcher()),
    ]
    first, second = Echo(40), Echo(3)

    def trained(order) -> dict[int, np.ndarray]:
        datasets, watchers = zip(*(makers[i]() for i in order), strict=True)
        models = train_many(recipe, datasets, [seed(9, i) for i in order], watchers, backend=backend)
        return dict(zip(order, models, strict=True))

    alone = {i: trained([i])[i] for i in range(len(makers))}
    assert not np.array_equal(alone[0], alone[1])
    first.asked.clear()
    for most, order in ((32, range(9)), (32, [8, 3, 1, 7, 0, 6, 2, 5, 4]), (2, [4, 1, 0, 7, 8]), (3, [7, 3, 5, 1])):
        monkeypatch.setattr("epsilometer.training.engine.MOST_WAITING", most)
        for i, parameters in trained(list(order)).items():
            np.testing.assert_array_equal(parameters, alone[i], err_msg=f"{i} of {list(order)}")
    assert max(len(steps) for steps in first.asked) >= 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_records_are_made_only_for_steps_whose_batch_has_them(backend: str) -> None:
    recipe, poisoner = recipe_with(sampling="poisson", sample_rate=0.3, steps=30), Echo(17)
    train(recipe, made_data(), seed(2), Poisoned(poisoner), backend=backend)
    key = threefry.trial_key(seed(2))
    present = [step for step in range(30) if 17 in sample(recipe, key, step, 40)]
    assert 0 < len(present) < 30
    assert poisoner.asked == [[step] for step in present]


def test_no_more_wait_at_once_than_memory_allows() -> None:
    poisoner, many = Echo(0), side_by_side.MOST_WAITING + 3
    recipe = recipe_with(sampling="full", sample_rate=1.0, steps=2)
    train_many(recipe, [made_data()] * many, [seed(i) for i in range(many)], [Poisoned(poisoner) for _ in range(many)])
    assert [len(steps) for steps in poisoner.asked] == [side_by_side.MOST_WAITING] * 2 + [3] * 2


def test_what_a_poisoner_gives_is_checked() -> None:
    recipe, data, numbers = recipe_with(sampling="full", sample_rate=1.0), made_data(), count()

    def run(poisoner, watcher=Poisoned) -> None:
        own = watcher(poisoner) if watcher is Poisoned else watcher()
        own.poisoner = poisoner
        train(recipe, data, seed(next(numbers)), own)

    for label in (3, -1, 0.9):
        with pytest.raises(InvalidInput, match=r"labels of a poisoner = .*: expected 1 classes, 0 to 2"):
            run(Same(0, np.zeros(5, np.float32), label))
    for record in (np.zeros(4, np.float32), np.full(5, np.nan)):
        with pytest.raises(InvalidInput, match=r"records of a poisoner = .*expected finite features of shape \(1, 5\)"):
            run(Same(0, record, 0))
    few = Same(0, np.zeros((0, 5)), 0)
    few.records = lambda *_: (np.zeros((0, 5)), np.zeros(0, int))
    with pytest.raises(InvalidInput, match=r"expected finite features of shape \(1, 5\)"):
        run(few)
    for row, watcher in ((40, Poisoned), (-1, Poisoned), (0, Watcher)):
        with pytest.raises(InvalidInput, match=f"poisoner = 'row {row}': expected a row of the 40 records"):
            run(Same(row, np.zeros(5, np.float32), 0), watcher)
