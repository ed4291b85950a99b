"""A training on some records of the data is one on data that have no others."""

from __future__ import annotations

import numpy as np
import pytest

from epsilometer import DpSgdTraining
from epsilometer.adversaries import Api, Canaries, MembershipAttack
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, OUT
from epsilometer.training import Recipe, Watcher, train

SAMPLINGS = ("poisson", "full", "shuffle", "fixed-size")
ROWS = np.random.default_rng(1).permutation(90)[:63]


def made_data(zeros: float = 0.0) -> Dataset:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 30)) * (rng.random((90, 30)) >= zeros)
    return Dataset("made", x.astype(np.float32), rng.integers(0, 3, 90), 3)


class On(Watcher):
    """Sees every model of a training on these rows, or nothing at all."""

    def __init__(self, rows: np.ndarray | None, stepwise: bool = False, poisoner=None) -> None:
        self.rows, self.stepwise, self.poisoner = rows, stepwise, poisoner
        self.models: list[np.ndarray] = []

    def observe(self, step, noisy_sum, parameters) -> bool:
        self.models.append(parameters.copy())
        return False


class Marked:
    """One record, which is marked before every step."""

    def __init__(self, row: int) -> None:
        self.row = row

    def records(self, steps, parameters):
        return np.full((len(steps), 30), 0.5), np.zeros(len(steps), int)


@pytest.mark.parametrize("backend", ["compiled", "portable"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_some_rows_train_as_if_there_were_no_others(sampling: str, backend: str) -> None:
    """Bit for bit: dense and sparse records, in one go and step by step, with a record that is made on the way.

    (Whether records count as sparse is decided by all data: near the limit the copied ones may be the other kind.)
    """
    rate = 1.0 if sampling == "full" else 0.3
    recipe = Recipe(records=63, steps=7, sample_rate=rate, sampling=sampling, model="mlp", hidden=(8,))
    seed, marked = np.random.SeedSequence(3), int(ROWS[20])
    for data in (made_data(), made_data(zeros=0.97)):
        copied = data.taken(ROWS)
        one, other = (
            train(recipe, *at, backend=backend) for at in ((data, seed, On(ROWS)), (copied, seed, On(None)))
        )  # fmt: skip
        np.testing.assert_array_equal(one, other)
        for poisoners in ((None, None), (Marked(marked), Marked(20))):
            seen, alone = On(ROWS, True, poisoners[0]), On(None, True, poisoners[1])
            train(recipe, data, seed, seen, backend=backend)
            train(recipe, copied, seed, alone, backend=backend)
            np.testing.assert_array_equal(seen.models, alone.models)
    assert not np.array_equal(one, train(recipe, data, seed, On(np.sort(ROWS)), backend=backend))  # order counts


def test_nobody_may_be_there() -> None:
    recipe = Recipe(records=90, steps=3, sample_rate=0.3)
    nobody, alone = (np.zeros(0, np.int64), made_data().taken(np.zeros(0, np.int64)))
    np.testing.assert_array_equal(
        train(recipe, made_data(), np.random.SeedSequence(0), On(nobody)),
        train(recipe, alone, np.random.SeedSequence(0)),
    )


@pytest.mark.parametrize("rows", [[90], [-1], [[0]], [0.5], [True]])
def test_what_is_no_row_is_refused(rows: list) -> None:
    """Compiled code would read whatever lies there."""
    with pytest.raises(InvalidInput, match="row numbers from 0 to 89"):
        train(Recipe(records=90, steps=1), made_data(), np.random.SeedSequence(0), On(np.array(rows)))


@pytest.mark.parametrize("adversary", [Api(record="random"), MembershipAttack(10), Canaries(10, kind="records")])
def test_games_that_leave_records_out_copy_no_data(adversary) -> None:
    """Sixteen trials on all of MNIST held sixteen copies of it, and took three times as long as without."""
    data = made_data()
    subject = DpSgdTraining(Recipe(records=90, steps=2), data)
    game = adversary.game(subject, Relation.ADD_REMOVE, np.random.SeedSequence(0))
    sides = (OUT, IN) if adversary.name == "api" else (np.arange(10) % 2 == 0, np.zeros(10, bool))
    seeds = [np.random.SeedSequence(i) for i in range(2)]
    parties = game.parties(sides, seeds, seeds)
    subject.run([insertion for insertion, _ in parties], seeds, [observer for _, observer in parties])
    records = [len(insertion.whole if insertion.rows is None else insertion.rows) for insertion, _ in parties]
    assert records == ([89, 90] if adversary.name == "api" else [85, 80])
    wholes = {id(insertion.whole) for insertion, _ in parties}
    assert len(wholes) == 1
    assert adversary.name == "canaries" or wholes == {id(data)}  # they have labels of their own, for all trials
    assert all("data" not in vars(insertion) for insertion, _ in parties)
    assert [len(insertion.data) for insertion, _ in parties] == records  # who asks gets them
