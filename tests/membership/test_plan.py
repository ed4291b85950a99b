"""Models as trials: who is in them, what is stored, and what is trained again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from noisy_bits import NoisyBits, numbered

from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, Membership, OneRun
from epsilometer.membership import (
    GivenModel,
    Lira,
    LossAttack,
    MembershipPlan,
    Rmia,
    membership_from_dict,
    parse_membership,
    run_membership,
    seen_of,
)
from epsilometer.membership.signals import BLACK_BOX
from epsilometer.runs import Local, MemoryStore, SqliteStore

SMALL = {"model": {"hidden": [8]}, "training": {"steps": 20}, "membership": {"records": 200, "references": 4}}


def small(**membership: object) -> MembershipPlan:
    return membership_from_dict({**SMALL, "membership": SMALL["membership"] | membership}).study().plan


def test_coins_are_fair_independent_and_paired_for_references() -> None:
    plan = small(records=1000, targets=2, references=6)
    members = np.array([plan.member(index) for index in range(plan.planned_trials)])
    assert np.array_equal(members[2::2], ~members[3::2])  # every record is in half of the references
    apart = members[[0, 1, 2, 4, 6]]
    assert abs(apart.mean(axis=1) - 0.5).max() < 4 * 0.5 / np.sqrt(1000)
    assert abs(np.corrcoef(apart) - np.eye(5)).max() < 4 / np.sqrt(1000)
    assert not np.array_equal(members[0], small(records=1000, seed=1).member(0))


def test_an_attacker_is_not_told_who_was_in_the_target() -> None:
    plan = small()
    store = MemoryStore()
    run_membership(plan, [LossAttack()], store=store)
    signals = plan.signals(store.results(plan.fingerprint()))
    shown = seen_of(plan, signals, 0)
    assert shown.member.shape == (4, 200)
    assert not any(np.array_equal(plan.member(0), row) or np.array_equal(plan.member(0), ~row) for row in shown.member)
    assert shown.population.values.shape[0] == len(plan.population)


def test_members_are_who_was_trained_on() -> None:
    """By the data that a training is given, and by what its model knows."""
    bits = NoisyBits(numbered(300), epsilon=50.0)
    plan = MembershipPlan(bits, numbered(0 + 5), references=4)
    found = run_membership(plan, [LossAttack()])
    assert found.attack("loss").auc.value > 0.999
    assert isinstance(found.attack("loss").evidence, OneRun)
    assert found.bound is not None
    assert found.bound.epsilon > 3.0


def test_what_is_stored_is_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, store = small(), SqliteStore(tmp_path / "trials.sqlite")
    with store:
        first = run_membership(plan, [LossAttack(), Lira()], store=store)
        monkeypatch.setattr(MembershipPlan, "play", lambda *_: pytest.fail("trained again"))
        again = run_membership(plan, [LossAttack(), Rmia()], store=store)  # other attacks on the same models
    assert np.array_equal(first.attack("loss").evidence.scores, again.attack("loss").evidence.scores)
    assert store.path.exists()


def test_a_run_goes_on_where_it_was_stopped_and_in_any_process() -> None:
    plan, whole, half = small(), MemoryStore(), MemoryStore()
    run_membership(plan, [LossAttack()], store=whole)
    results = whole.results(plan.fingerprint())
    half.begin(plan)
    half.add(plan.fingerprint(), {(IN, i): results[IN, i] for i in (0, 3)}, 0.0)
    run_membership(plan, [LossAttack()], store=half, executor=Local(2))
    again = half.results(plan.fingerprint())
    assert again.keys() == results.keys()
    assert all(np.array_equal(results[key], again[key]) for key in results)


def test_the_plan_says_what_decides_signals_and_nothing_else() -> None:
    plan = small()
    assert plan.fingerprint() == small(attacks=["loss"], confidence=0.9).fingerprint()
    for other in (small(seed=1), small(references=6), small(targets=2), small(population=30)):
        assert other.fingerprint() != plan.fingerprint()


def given(member: Sequence[int], outputs: np.ndarray, kind: str = "probabilities") -> MembershipPlan:
    data = Dataset("given", np.arange(len(member))[:, None], np.zeros(len(member), int), 2)
    model = GivenModel(lambda x: outputs[x.ravel().astype(int)], np.array(member), kind)
    nobody = Dataset("nobody", np.zeros((0, 1)), np.zeros(0, int), 2)
    return MembershipPlan(None, nobody, references=0, given=model, records=data)


def test_a_given_model_certifies_nothing() -> None:
    sure = np.array([[0.99, 0.01]] * 50 + [[0.5, 0.5]] * 50)
    found = run_membership(given([1] * 50 + [0] * 50, sure), [LossAttack()])
    assert found.attack("loss").auc.value == 1.0
    assert found.attack("loss").tpr_at[-1].tpr.value == 1.0
    assert isinstance(found.attack("loss").evidence, Membership)
    assert found.bound is None
    assert found.attack("loss").bound is None
    assert found.theory is None


@pytest.mark.parametrize(
    ("member", "outputs", "said"),
    [
        ([1, 0], [[2.0, -1.0], [0.5, 0.5]], "a row from -1 to 2 with the sum 1': expected probabilities"),
        ([1, 0], [[0.9, 0.9], [0.5, 0.5]], "with the sum 1.8': expected probabilities"),
        ([1, 0], [[np.nan, 1.0], [0.5, 0.5]], "NaN or infinity"),
        ([1, 0], [[0.2, 0.3, 0.5], [0.2, 0.3, 0.5]], r"shape \(2, 3\)'?: expected an array of shape \(2, 2\)"),
        ([1, 1], [[0.5, 0.5], [0.5, 0.5]], "others = 0: expected at least one record"),
        ([0, 0], [[0.5, 0.5], [0.5, 0.5]], "members = 0: expected at least one record"),
    ],
)
def test_outputs_that_are_none_are_refused(member: list[int], outputs: list[list[float]], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        run_membership(given(member, np.array(outputs)), [LossAttack()])


def test_logits_are_taken_where_they_are_announced() -> None:
    found = run_membership(given([1, 1, 0, 0], np.array([[9.0, -3], [8, 0], [1, 1], [0, 2]]), "logits"), [LossAttack()])
    assert found.attack("loss").auc.value == 1.0


def test_too_few_models_or_records_are_refused_before_anything_is_trained() -> None:
    plan = small(references=3, population=0, attacks=["loss"])
    with pytest.raises(InvalidInput, match="references = 3: expected at least 4 for lira"):
        run_membership(plan, [Lira()])
    with pytest.raises(InvalidInput, match="population = 0: expected at least 1 for rmia"):
        run_membership(plan, [Rmia()])
    with pytest.raises(InvalidInput, match=r"membership.references = 2: expected at least 4 for lira"):
        membership_from_dict({"membership": {"references": 2}}).study()
    with pytest.raises(InvalidInput, match="population = '1 features, 2 classes'"):
        replace(plan, population=numbered(4))


def test_classes_and_subgroups_have_intervals_that_hold_at_once() -> None:
    plan = small(records=600)
    found = run_membership(plan, [LossAttack()], subgroup=20).attack("loss")
    assert [one.name for one in found.by_class] == [str(label) for label in range(10)]
    assert {one.auc.confidence for one in found.by_class} == {1 - 0.05 / 10}
    assert len(found.by_subgroup) == 2
    total = [sum(one.members + one.others for one in part) for part in (found.by_class, found.by_subgroup)]
    assert total == [600, 600]
    with pytest.raises(InvalidInput, match="subgroup = 64: expected a whole number from 0 to 63"):
        run_membership(plan, [LossAttack()], subgroup=64)


def test_specs_say_what_is_wrong_with_them() -> None:
    for text, said in (
        ("[membership]\nrefrences = 3", "did you mean 'references'"),
        ("[membership]\nrecords = 1798", "membership.records = 1798"),
        ("[membership]\nseed = -1", "membership.seed = -1"),
        ("[settings.lira]\nvariance = 3", "settings.lira.variance = 3"),
        ("[settings.lira]\nvariance = ['fixed']", r"settings.lira.variance = \['fixed'\]: expected a text"),
        ("[settings.rmia]\nonline = 'no'", "settings.rmia.online = 'no': expected true or false"),
        ("[settings.loss]\na = 1\n[membership]\nattacks = ['rmia']", r"settings.loss = 'a section'"),
        ("[target]\nmembers = 'a.npz'", "target.predict is missing"),
        ("[training]\nbudget = 3.0", "training.budget = 3.0"),
        ("[model]\nname = 'resnet'", "model.name"),
    ):
        with pytest.raises(InvalidInput, match=said):
            parse_membership(text).study()


def test_specs_on_its_page_can_be_read() -> None:
    page = (Path(__file__).parents[2] / "docs" / "membership.md").read_text()
    specs = [parse_membership(text) for text in re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)]
    assert len(specs) == 4
    assert [attack.name for attack in specs[0]._attacks(BLACK_BOX)] == ["loss", "lira", "rmia", "white-box"]
    assert specs[3].defence.recipe().adversarial == 3.0
