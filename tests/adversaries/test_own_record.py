"""A record of the user's own as the canary: who is in which world, and what of it decides a plan."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from epsilometer.adversaries import Adversary, Api, LearnedScore
from epsilometer.auditing import Plan
from epsilometer.claims import PointClaim, Relation
from epsilometer.data import Dataset, own_data
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, OUT
from epsilometer.subjects import CallableTraining, Controls

MINE = np.array([1.0, 2.0, 3.0], np.float32)


def train(data, seed):
    """Leaks the presence of records far from all others, and of no other."""
    found = float(np.any(data.x[:, 0] > 100))
    weights = found + np.random.default_rng(seed).normal(0, 0.1, size=(2, 3))
    return lambda x: x @ (weights * np.array([[-1.0], [1.0]])).T


@pytest.fixture
def data() -> Dataset:
    return own_data((np.random.default_rng(0).normal(size=(20, 3)), ["no", "yes"] * 10))


@pytest.fixture
def mine(tmp_path: Path) -> str:
    np.savez(tmp_path / "mine.npz", x=MINE, y="yes")
    return str(tmp_path / "mine.npz")


def worlds(adversary: Adversary, data: Dataset, relation: Relation) -> tuple[Dataset, Dataset]:
    game = adversary.game(CallableTraining(train, data), relation, np.random.SeedSequence(0))
    return tuple(game.insert(world, np.random.SeedSequence(1)).data for world in (OUT, IN))  # type: ignore[return-value]


def test_it_comes_to_all_of_the_data(data: Dataset, mine: str) -> None:
    without, present = worlds(Api(record=mine), data, Relation.ADD_REMOVE)
    assert without.fingerprint() == data.fingerprint()
    assert present.fingerprint() == data.plus(MINE, 1).fingerprint()


def test_one_that_is_there_already_is_left_out(data: Dataset, tmp_path: Path) -> None:
    np.savez(tmp_path / "row.npz", x=data.x[7], y="yes")
    without, present = worlds(Api(record=str(tmp_path / "row.npz")), data, Relation.ADD_REMOVE)
    assert without.fingerprint() == data.without(7).fingerprint()
    assert present.fingerprint() == data.without(7).plus(data.x[7], 1).fingerprint()


def test_replaced_worlds_differ_in_its_label(data: Dataset, mine: str) -> None:
    without, present = worlds(Api(record=mine), data, Relation.REPLACE)
    (row,) = np.flatnonzero(without.y != present.y)
    np.testing.assert_array_equal(without.x, present.x)
    np.testing.assert_array_equal(present.x[row], MINE)
    assert present.y[row] == 1


@pytest.mark.parametrize("text", ["a,b,label,c\n1,2,yes,3\n", "label,x,y1,z\nyes,1,2,3\n"])
def test_tables_have_one_row(data: Dataset, tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.csv").write_text(text)
    _, present = worlds(Api(record=str(tmp_path / "mine.csv")), data, Relation.ADD_REMOVE)
    np.testing.assert_array_equal(present.x[-1], MINE)


def test_its_content_is_part_of_the_plan_and_travels_without_its_file(data: Dataset, mine: str) -> None:
    def plan() -> Plan:
        return Plan(CallableTraining(train, data), PointClaim(1.0, 1e-5), 1e-5, Api(record=mine), trials=4)

    first = plan()
    sent = pickle.dumps(first.adversary)
    np.savez(mine, x=2 * MINE, y="yes")
    assert plan().fingerprint() != first.fingerprint()
    Path(mine).unlink()
    there = pickle.loads(sent)
    np.testing.assert_array_equal(worlds(there, data, Relation.ADD_REMOVE)[1].x[-1], MINE)


def test_only_the_records_own_leak_is_found(data: Dataset, tmp_path: Path) -> None:
    """The training leaks records beyond 100, and the data have none: no natural record shows it."""
    from epsilometer import audit

    np.savez(tmp_path / "far.npz", x=[200.0, 1.0, 1.0], y="yes")
    for record, outcome in ((str(tmp_path / "far.npz"), "violated"), (3, "inconclusive")):
        result = audit(train, data=data, claim=1.0, adversary=Api(record=record), trials=60, executor="inline")
        assert result.verdict.outcome == outcome


def test_a_learned_score_takes_it_too(data: Dataset, mine: str) -> None:
    assert Controls.RECORDS in LearnedScore(record=mine).needs.controls
    assert Controls.RECORDS not in LearnedScore(record=3).needs.controls
    score = LearnedScore(record=mine)
    subject = CallableTraining(train, data)
    kept = score._record(subject, Relation.ADD_REMOVE, np.random.SeedSequence(0))
    without, present = (
        score._insertions(subject, Relation.ADD_REMOVE, kept).insert(world, np.random.SeedSequence(0)).data
        for world in (OUT, IN)
    )
    assert (len(without), len(present)) == (20, 21)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([1.0, 2.0], "yes", "expected a record of 3 features"),
        (MINE, "perhaps", r"label 'perhaps'.*expected a class of own data \(no, yes\)"),
        ([MINE, MINE], ["yes", "no"], "expected one record"),
        ([np.nan, 1.0, 2.0], "yes", "expected finite features"),
    ],
)
def test_what_does_not_fit_is_refused(data: Dataset, tmp_path: Path, x, y, words: str) -> None:
    np.savez(tmp_path / "bad.npz", x=x, y=y)
    with pytest.raises(InvalidInput, match=words) as caught:
        worlds(Api(record=str(tmp_path / "bad.npz")), data, Relation.ADD_REMOVE)
    assert caught.value.argument == "record"
