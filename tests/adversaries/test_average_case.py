"""A record of its own for every trial: which one is known to who looks, and to nobody which world it is."""

import numpy as np
import pytest

from epsilometer import DpSgdTraining, Plan, Recipe, run
from epsilometer.adversaries import Api
from epsilometer.auditing import claim_curve, spec_from_dict
from epsilometer.claims import Relation
from epsilometer.data import Dataset, digits
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, OUT
from epsilometer.runs import Inline, MemoryStore, play
from epsilometer.seeds import Stream, seed_of
from epsilometer.testing import check_adversary


def plan_of(record, data: Dataset, relation: Relation = Relation.ADD_REMOVE, trials: int = 30, seed: int = 0) -> Plan:
    recipe = Recipe(records=len(data), sample_rate=0.5, steps=3)
    return Plan(DpSgdTraining(recipe, data), claim_curve(recipe, relation), 1e-5, Api(record), trials, seed=seed)


@pytest.fixture(scope="module")
def few() -> Dataset:
    return digits().subset(classes=(0, 1, 2), per_class=12)


def rows_seen(plan: Plan, monkeypatch) -> dict[tuple[int, int], tuple[int, Dataset]]:
    """Of each trial: which row of the data its observer looks at, and what was trained on."""
    data, seen = plan.subject.data, {}
    before = DpSgdTraining.run

    def looking(self: DpSgdTraining, insertions, seeds, observers):
        for insertion, seed, observer in zip(insertions, seeds, observers, strict=True):
            (row,) = np.flatnonzero((data.x == observer._points[0]).all(axis=1))
            seen[seed.spawn_key] = int(row), insertion.data
        return before(self, insertions, seeds, observers)

    monkeypatch.setattr(DpSgdTraining, "run", looking)
    play(plan, MemoryStore(), Inline())
    return seen


@pytest.mark.parametrize("relation", list(Relation))
def test_each_trial_has_a_record_of_its_own_and_its_observer_looks_there(relation, few, monkeypatch) -> None:
    seen = rows_seen(plan_of("random", few, relation), monkeypatch)
    for world in (OUT, IN):
        rows = [seen[world, i][0] for i in range(30)]
        assert len(set(rows)) > 10  # one, if a record is drawn for all trials
    for (world, _), (row, data) in seen.items():
        own = few.x[row]
        there = (data.x == own).all(axis=1) & (data.y == few.y[row])
        assert there.sum() == (1 if world == IN else 0)
        if relation is Relation.REPLACE:
            assert len(data) == len(few)
        else:
            assert len(data) == len(few) - (world == OUT)


def test_worlds_are_independent(few, monkeypatch) -> None:
    """Rank tests need that: the same record for trial i of both worlds would tie their scores to each other."""
    seen = rows_seen(plan_of("random", few, trials=60), monkeypatch)
    equal = sum(seen[OUT, i][0] == seen[IN, i][0] for i in range(60))
    assert equal <= 8  # 60 draws at 1/36: more in 1 of 10,000; 60, if index alone decided


def test_both_worlds_draw_by_one_law(few) -> None:
    plan = plan_of("random", few)
    game = plan.game(plan.prepare())
    assert game.drawn is not None
    counts = []
    for world in (OUT, IN):
        points = [game.drawn(seed_of(7, Stream.DRAWING, 2 * i + world)).observe()._points[0] for i in range(720)]
        rows = [int(np.flatnonzero((few.x == point).all(axis=1)).item()) for point in points]
        counts.append(np.bincount(rows, minlength=36))
    for one in counts:
        assert ((one - 20) ** 2 / 20).sum() < 72.0  # χ² of 35 degrees: more in 1 of 4,000


def test_one_record_stays_one_record(few, monkeypatch) -> None:
    seen = rows_seen(plan_of(None, few), monkeypatch)
    assert len({row for row, _ in seen.values()}) == 1
    another = plan_of("random", few)
    game = another.game(another.prepare())
    with pytest.raises(TypeError, match="in a trial only"):
        game.observe()


def test_the_contract_holds() -> None:
    check_adversary(Api("random"), relations=("add-remove", "replace"))


def test_it_is_a_setting_of_specs_and_of_plans(few) -> None:
    spec = {"adversary": {"name": "api", "record": "random"}, "training": {"steps": 2}, "audit": {"trials": 20}}
    result = run(spec_from_dict(spec).plan())
    assert result.lower_bound.epsilon <= result.plan.claimed_epsilon
    assert plan_of("random", few).fingerprint() != plan_of(None, few).fingerprint()
    with pytest.raises(InvalidInput, match="at least 2 records"):
        run(plan_of("random", few.taken(np.array([0]))))
