"""Records that no training sees: who holds them out, and which adversaries know nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from epsilometer import DpSgdTraining, Recipe
from epsilometer.adversaries import AdaptivePoison, Adversary, Intermediate, StaticPoison
from epsilometer.auditing import Plan, claim_curve, spec_from_dict
from epsilometer.claims import Relation
from epsilometer.data import Dataset, digits
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, OUT
from epsilometer.testing import check_adversary

SEED = np.random.SeedSequence(0)
KINDS = [StaticPoison, Intermediate, AdaptivePoison]


def digits_of(held_out: int | None, per_class: int = 30) -> Dataset:
    """Three classes; without records that occur twice."""
    few = digits().subset(classes=(0, 1, 2), per_class=per_class + (held_out or 0))
    return few if held_out is None else few.holding_out(held_out)


def training(data: Dataset) -> DpSgdTraining:
    return DpSgdTraining(Recipe(records=len(data), sample_rate=0.2, steps=5), data)


def records(data: Dataset) -> set[bytes]:
    return {x.tobytes() for x in data.x}


def shadow_sets(adversary: Adversary, data: Dataset, relation: Relation, monkeypatch) -> list[Dataset]:
    """What the adversary trains models on for itself."""
    seen: list[Dataset] = []
    before = DpSgdTraining.rehearse

    def looking(self: DpSgdTraining, data: Dataset, seeds, **how):
        seen.append(data)
        return before(self, data, seeds, **how)

    monkeypatch.setattr(DpSgdTraining, "rehearse", looking)
    adversary.prepare(training(data), relation, SEED)
    return seen


def test_the_last_records_of_each_class_are_held_out() -> None:
    few, whole = digits_of(10), digits().subset(classes=(0, 1, 2), per_class=40)
    assert few.held_out is not None
    assert (len(few), len(few.held_out)) == (90, 30)
    np.testing.assert_array_equal(few.x, digits().subset(classes=(0, 1, 2), per_class=30).x)
    assert np.bincount(few.held_out.y).tolist() == [10, 10, 10]
    assert records(few) | records(few.held_out) == records(whole)
    assert not records(few) & records(few.held_out)
    assert few.fingerprint() == digits_of(None).fingerprint()  # what is trained on is the same
    assert few.without(0).held_out is few.subset().held_out is None


@pytest.mark.parametrize("number", [0, -1, 30, 31, 1.5, True])
def test_too_many_cannot_be_held_out(number) -> None:
    with pytest.raises(InvalidInput, match=r"data\.held_out"):
        digits_of(None).holding_out(number)


def test_records_of_another_kind_are_refused() -> None:
    with pytest.raises(InvalidInput, match="held_out"):
        replace(digits_of(None), held_out=digits())


@pytest.mark.parametrize("relation", list(Relation))
def test_shadow_models_know_nothing_of_the_data(relation: Relation, monkeypatch) -> None:
    data = digits_of(40)
    assert data.held_out is not None
    sets = shadow_sets(StaticPoison(2, "held-out"), data, relation, monkeypatch)
    assert {len(one) for one in sets} == {90, 91}  # as many as are trained on; the candidate comes to them
    assert not any(records(one) & records(data) for one in sets)
    (without, *_) = sets
    assert records(without) < records(data.held_out)


def test_fewer_records_are_drawn_again_for_shadow_models(monkeypatch) -> None:
    data = digits_of(10)
    assert data.held_out is not None
    (without, *_) = shadow_sets(StaticPoison(2, "held-out"), data, Relation.ADD_REMOVE, monkeypatch)
    assert len(without) == len(data)
    assert records(without) < records(data.held_out)
    assert len(records(without)) > 20  # of 29: nearly all of them, several times


def test_by_default_shadow_models_are_trained_on_the_data(monkeypatch) -> None:
    """Differential privacy protects from those who know all other records."""
    data = digits_of(40)
    sets = shadow_sets(StaticPoison(2), data, Relation.ADD_REMOVE, monkeypatch)
    assert records(sets[0]) < records(data)
    assert len(sets[0]) == len(data) - 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relation", list(Relation))
def test_worlds_are_neighbours(kind: type[Adversary], relation: Relation) -> None:
    """The crafted record comes to all of the data, or to the place of one under replace."""
    data = digits_of(40)
    adversary = kind(shadows=2, shadow_data="held-out")  # type: ignore[call-arg]
    game = adversary.game(training(data), relation, SEED)
    out, member = (game.insert(world, SEED).data for world in (OUT, IN))
    if relation is Relation.REPLACE:
        assert len(out) == len(member) == len(data)
        assert ((out.x != member.x).any(axis=1) | (out.y != member.y)).sum() == 1
    else:
        np.testing.assert_array_equal(out.x, data.x)
        np.testing.assert_array_equal(member.x[:-1], data.x)
    poisoner = game.insert(IN, SEED).poisoner
    if poisoner is not None:  # it changes the record that world 0 has not
        assert poisoner.row == (np.flatnonzero(out.y != member.y)[0] if relation is Relation.REPLACE else len(data))


@pytest.mark.parametrize("kind", KINDS)
def test_the_contract_holds(kind: type[Adversary]) -> None:
    check_adversary(kind(shadows=2, shadow_data="held-out"), training(digits_of(40)))  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", KINDS)
def test_held_out_records_are_in_the_plan_only_if_they_are_used(kind: type[Adversary]) -> None:
    plans = {
        (held, source): Plan(
            training(digits_of(held)), claim_curve(training(digits_of(held)).recipe), 1e-5,
            kind(shadow_data=source), trials=2,  # type: ignore[call-arg]
        ).fingerprint()
        for held in (None, 40, 41) for source in ("same", "held-out")
    }  # fmt: skip
    assert plans[None, "same"] == plans[40, "same"] == plans[41, "same"]
    assert len(set(plans.values())) == 4


@pytest.mark.parametrize("held_out", [None, 3])
def test_too_few_records_are_refused(held_out: int | None) -> None:
    held = 0 if held_out is None else 3 * held_out
    words = rf"shadow_data = 'held-out': expected data that hold out at least 11 records \(digits hold out {held}\)"
    with pytest.raises(InvalidInput, match=words):
        StaticPoison(2, "held-out").prepare(training(digits_of(held_out)), Relation.ADD_REMOVE, SEED)


def test_another_word_is_refused() -> None:
    with pytest.raises(InvalidInput, match="shadow_data = 'disjoint': expected one of held-out, same"):
        StaticPoison(shadow_data="disjoint")


def test_a_spec_holds_records_out() -> None:
    spec = {
        "data": {"classes": [0, 1], "per_class": 20, "held_out": 25},
        "training": {"steps": 2},
        "adversary": {"name": "static-poison", "shadow_data": "held-out", "shadows": 2},
    }
    data = spec_from_dict(spec).plan().subject.data
    assert (len(data), len(data.held_out)) == (40, 50)
    spec["data"] = {"classes": [0, 1], "held_out": 100}
    assert len(spec_from_dict(spec).plan().subject.data.held_out) == 200
    spec["data"] = {"classes": [0, 1], "held_out": 0}
    with pytest.raises(InvalidInput, match=r"data\.held_out = 0"):
        spec_from_dict(spec).plan()
