"""Attack models that are learned, labels that survive noise, and defences."""

from __future__ import annotations

import numpy as np
import pytest
from noisy_bits import NoisyBits, numbered

from epsilometer.data import Dataset, load
from epsilometer.errors import InvalidInput
from epsilometer.membership import (
    DEFENCES,
    LabelOnlyAttack,
    Lira,
    LossAttack,
    MembershipPlan,
    Queries,
    Rmia,
    ShadowAttack,
    defence_named,
    membership_from_dict,
    run_membership,
)
from epsilometer.runs.trials import one_thread
from epsilometer.subjects import Insertion, Observer, PlainRecipe, PlainTraining

OVERFIT = {
    "model": {"hidden": [32]},
    "training": {"steps": 400, "learning_rate": 0.05},
    "membership": {"records": 500, "references": 8, "attacks": ["loss", "shadow", "white-box", "label-only"]},
}


def blobs(records: int, seed: int = 0) -> Dataset:
    """Two classes that overlap: a network learns who has which label by heart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=records)
    return Dataset("blobs", rng.standard_normal((records, 20)) + 0.3 * y[:, None], y, 2)


def test_learned_attacks_say_nothing_where_there_is_nothing_to_say() -> None:
    """Models that have nothing to do with their data: an attack that saw the target's coins would be right."""
    plan = MembershipPlan(NoisyBits(numbered(2000), epsilon=0.0), numbered(20), references=8)
    found = run_membership(plan, [LossAttack(), ShadowAttack(), Lira(), Rmia()], confidence=0.999)
    networks = run_membership(plan, [ShadowAttack("network")], confidence=0.999)
    for one in (*found.attacks, *networks.attacks):
        assert one.auc.low < 0.5 < one.auc.high, one
        assert one.bound is not None
        assert one.bound.epsilon == 0.0


def test_a_learned_attack_finds_what_is_there_and_looks_at_classes() -> None:
    plan = MembershipPlan(NoisyBits(numbered(2000), epsilon=2.0), numbered(20), references=4)
    best = 1 / (1 + np.exp(-2.0))
    for model in ("logistic", "network"):
        found = run_membership(plan, [ShadowAttack(model)]).attack("shadow")
        assert found.balanced_accuracy.low < best < found.balanced_accuracy.high, model


def test_inside_a_model_there_is_at_least_as_much_as_outside() -> None:
    study = membership_from_dict(OVERFIT).study()
    found = run_membership(study.plan, study.attacks)
    shadow, white, label = (found.attack(name).auc for name in ("shadow", "white-box", "label-only"))
    assert white.high > shadow.low
    assert white.value > 0.55
    assert label.high > 0.5
    assert "robust" in study.plan.signal_names


def test_copies_are_turned_or_moved_and_the_same_for_every_model() -> None:
    asked: list[np.ndarray] = []

    class Model:
        def logits(self, x: np.ndarray) -> np.ndarray:
            asked.append(x)
            return np.stack([x[:, 0], 1 - x[:, 0]], axis=1)

    bits = np.ones((400, 3), np.float32)
    shares = Queries(copies=20, noise=0.25).robust(Model(), bits, np.zeros(400, int))
    assert np.isin(asked[0], (0, 1)).all()
    assert abs(np.mean([x.mean() for x in asked]) - 0.75) < 0.01
    assert abs(shares.mean() - 0.75) < 0.02
    again = Queries(copies=20, noise=0.25).robust(Model(), bits, np.zeros(400, int))
    assert np.array_equal(shares, again)
    moved = np.linspace(0, 5, 1200, dtype=np.float32).reshape(400, 3)
    Queries(copies=1, noise=0.5).robust(Model(), moved, np.zeros(400, int))
    assert abs((asked[-1] - moved).std() - 0.5 * moved.std()) < 0.05
    with pytest.raises(InvalidInput, match="queries is missing: expected noisy copies for label-only"):
        run_membership(MembershipPlan(NoisyBits(numbered(9), 1.0), numbered(2), references=0), [LabelOnlyAttack()])


class Looking(Observer):
    def finish(self, model: object) -> None:
        self.model = model

    def score(self) -> float:
        return 0.0


def trained(recipe: PlainRecipe, seed: int = 0) -> tuple[np.ndarray, float, float]:
    """Parameters, and accuracies on members and others."""
    data, other = blobs(300), blobs(1000, 1)
    training, looking = PlainTraining(recipe, data, blobs(300, 2)), Looking()
    with one_thread():
        training.run([Insertion(data)], [np.random.SeedSequence(seed)], [looking])
    right = [float(np.mean(looking.model.logits(one.x).argmax(axis=1) == one.y)) for one in (data, other)]
    return looking.model.parameters, *right


def test_defences_do_what_they_are_called() -> None:
    small = {"hidden": (64,), "epochs": 60, "batch": 50, "learning_rate": 5e-3}
    found = {name: trained(defence_named(name, small)) for name in DEFENCES}
    plain, train, test = found["none"]
    assert train > 0.99
    assert train - test > 0.2
    assert np.array_equal(plain, trained(defence_named("none", small))[0])  # it follows from its seed
    assert not np.array_equal(plain, trained(defence_named("none", small), 1)[0])
    for name in set(DEFENCES) - {"none"}:
        assert not np.array_equal(plain, found[name][0]), name
    assert found["early-stopping"][1] - found["early-stopping"][2] < train - test
    penalty = trained(defence_named("l2", small | {"l2": 0.05}))
    assert np.linalg.norm(penalty[0]) < np.linalg.norm(plain)
    game = trained(defence_named("adversarial", small | {"adversarial": 5.0}))
    assert game[1] < train


def test_defences_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidInput, match="held_out = 0: expected records that are in no model, for early stopping"):
        PlainTraining(defence_named("early-stopping"), blobs(10))
    with pytest.raises(InvalidInput, match="l2 = 1: expected nothing with the defence 'none'"):
        defence_named("none", {"l2": 1})
    with pytest.raises(InvalidInput, match=r"defence.name = 'adversary': .*did you mean 'adversarial'"):
        membership_from_dict({"defence": {"name": "adversary"}}).study()
    plan = membership_from_dict({"defence": {"name": "adversarial", "held_out": 200, "hidden": [8]}}).study().plan
    assert isinstance(plan.training, PlainTraining)
    assert len(plan.training.held_out) == 200
    assert len(plan.data) + len(plan.population) + 200 == len(load("digits"))
