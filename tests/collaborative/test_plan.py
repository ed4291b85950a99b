"""Collaborations as trials: pure functions of plan, world and index; what they certify, and where they say no ε."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from epsilometer.claims import Relation
from epsilometer.collaborative import (
    PROPERTIES,
    Marked,
    PropertyPlan,
    parse_property,
    property_from_dict,
    property_named,
    property_of_feature,
    run_property,
)
from epsilometer.collaborative.plan import CONTROL
from epsilometer.data import Dataset, digits
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, OUT
from epsilometer.report import property_summary, property_to_json
from epsilometer.runs import Local, MemoryStore

SMALL = {"data": {"name": "digits", "classes": [0, 1]}, "property": {"trials": 6}}


def plan(collaboration: dict[str, Any] | None = None, **changed: Any) -> PropertyPlan:
    settings = {"rounds": 8, "hidden": [4], **(collaboration or {})}
    asked = {**SMALL["property"], **changed}
    return property_from_dict({**SMALL, "collaboration": settings, "property": asked}).study().plan


def test_a_trial_is_a_function_of_plan_world_and_index() -> None:
    one = plan()
    trials = [(world, index) for world in one.worlds for index in range(3)]
    together = dict(zip(trials, one.play(one.prepare(), trials), strict=True))
    copy = pickle.loads(pickle.dumps(one))
    assert copy.fingerprint() == one.fingerprint()
    for trial in reversed(trials):
        (alone,) = copy.play(copy.prepare(), [trial])
        assert alone.tobytes() == together[trial].tobytes()
    assert len({found.tobytes() for found in together.values()}) == len(trials)


def test_who_plays_changes_nothing() -> None:
    here, there = MemoryStore(), MemoryStore()
    first, second = run_property(plan(), store=here), run_property(plan(), store=there, executor=Local(2))
    np.testing.assert_array_equal(first.evidence.in_scores, second.evidence.in_scores)
    np.testing.assert_array_equal(first.control.in_scores, second.control.in_scores)


def test_more_trials_have_the_first_ones() -> None:
    few, many = (run_property(plan(trials=trials)) for trials in (4, 6))
    np.testing.assert_array_equal(many.evidence.out_scores[:4], few.evidence.out_scores)


def test_updates_as_they_are_show_it_and_the_control_shows_nothing() -> None:
    found = run_property(plan({"rounds": 20}, trials=40))
    assert found.auc.low > 0.7
    assert found.control_auc.low < 0.5 < found.control_auc.high
    assert found.auc.value == found.by_rounds[-1].auc.value
    assert [one.rounds for one in found.by_rounds] == [1, 2, 5, 10, 20]
    assert found.accuracy > 0.9
    assert found.bound is None
    assert found.theory is None
    document = property_to_json(found)
    assert document["lower_bound"] is None
    assert "noise that hides a record need not hide" in document["no_epsilon"]
    assert "No ε is stated" in property_summary(found)
    assert "rounds of one collaboration are not" in document["assumes"]


def test_records_may_be_hidden_and_still_no_epsilon_is_stated() -> None:
    found = run_property(plan({"level": "record", "noise_multiplier": 1.0}))
    assert found.bound is None
    assert found.theory is None


def test_a_hidden_participant_has_a_bound_and_a_promise() -> None:
    found = run_property(plan({"level": "participant", "noise_multiplier": 2.0}), delta=1e-6)
    assert found.theory.delta == found.bound.delta == 1e-6
    assert found.bound.relation is found.theory.relation is Relation.REPLACE
    assert found.plan.promise.mu == pytest.approx(2 * math.sqrt(8) / 2.0)
    document = property_to_json(found)
    assert document["unit"] == "participant"
    assert document["plan"]["claim"] == {"kind": "none", "relation": "replace", "unit": "participant"}
    assert document["no_epsilon"] is None


def test_clipping_without_noise_promises_nothing() -> None:
    assert plan({"level": "participant"}).promise is None
    assert math.isinf(plan({"level": "participant", "noise_multiplier": 1e-300}).promise.mu)


def test_what_is_certified_is_below_what_is_promised() -> None:
    """Clipped means of unlike batches are up to 2C apart in every round: noise for ε ≤ 1 leaves little to be seen."""
    noisy = {"level": "participant", "noise_multiplier": 20.0}
    found = [run_property(plan(noisy, trials=30, control=False, seed=seed)) for seed in range(5)]
    for one in found:
        assert one.theory.epsilon < 1.4
        assert one.bound.epsilon <= one.theory.epsilon


def test_a_property_that_shows_in_nothing_certifies_nothing() -> None:
    rng, data = np.random.default_rng(0), digits().subset([0, 1])
    faint = plan({"level": "participant", "noise_multiplier": 1e-3})
    tossed = replace(faint, marked=Marked(data, rng.random(len(data)) < 0.5, "a coin"), trials=40)
    assert run_property(tossed).bound.epsilon < 0.2


def test_the_worlds_are_what_they_say() -> None:
    """Batches of the victim: all without, all with, or as they come."""
    one = plan()
    theirs, _ = one._parties
    marked = dict(zip(map(bytes, one.marked.data.x), one.marked.has, strict=True))
    labels, rng = np.array([0, 1] * 20), np.random.default_rng(0)
    shares = {}
    for world, kind in ((OUT, False), (IN, True), (CONTROL, None)):
        x, y = theirs.batch(labels, kind, rng)
        assert y.tolist() == labels.tolist()
        shares[world] = np.mean([marked[bytes(record)] for record in x])
    assert shares[OUT] == 0
    assert shares[IN] == 1
    assert 0.2 < shares[CONTROL] < 0.8
    assert plan(control=False).worlds == (OUT, IN)


def test_properties_by_name_and_by_feature() -> None:
    data = digits()
    ink = property_named("ink", data)
    assert ink.data is data
    shares = [ink.has[data.y == label].mean() for label in range(10)]
    assert max(shares) <= 0.5 < min(shares) + 0.02  # in every class alike: it has nothing to do with the label
    feature = property_of_feature(20, data, 0.5)
    assert feature.data.x.shape == (1797, 63)
    np.testing.assert_array_equal(feature.has, data.x[:, 20] > 0.5)
    np.testing.assert_array_equal(feature.data.x[:, 20], data.x[:, 21])
    assert set(PROPERTIES) == {"ink", "sex", "race"}
    census = Dataset("adult", np.eye(108)[np.arange(40) % 108], np.arange(40) % 2, 2)
    assert property_named("sex", census).data.x.shape == (40, 106)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ('[property]\nname = "sex"', "property.name = 'sex': expected a property of digits: ink; or the number of"),
        ('[property]\nname = "inc"', "property.name = 'inc': expected one of ink, race, sex; did you mean 'ink'"),
        ("[property]\nfeature = 64", "property.feature = 64: expected a whole number from 0 to 63"),
        ("[property]\nthreshold = 0.5", "property.threshold = 0.5: expected nothing without property.feature"),
        ('[property]\nname = "ink"\nfeature = 3', "property.name = 'ink': expected nothing beside property.feature"),
        ("[property]\nfeature = 20\nthreshold = 99.0", "victim_has = '0 of 899': expected records with the property"),
        ("[property]\ntrials = 3", "property.trials = 3: expected a whole number from 4 to"),
        ("[property]\nconfidence = 1.0", "property.confidence = 1.0"),
        ("[collaboration]\nrounds = 7", "collaboration.rounds = 7: expected a whole number ≥ 8"),
        ("[collaboration]\nhidden = []", r"collaboration.hidden = \[\]: expected at least one hidden layer"),
        ('[collaboration]\nlevel = "user"', "collaboration.level = 'user': expected one of none, participant, record"),
        ("[collaboration]\nnoise_multiplier = 1.0", "collaboration.noise_multiplier = 1.0: expected 0, as nothing is"),
        ("[collaboration]\ntrials = 1", r"collaboration.trials = 1: .*; it belongs to \[property\]"),
    ],
)
def test_what_cannot_be_played_is_refused(spec: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        parse_property(spec).study()


def test_trainings_that_diverge_are_refused() -> None:
    for odd in ({"learning_rate": 1e308}, {"level": "record", "noise_multiplier": 1e308, "clip_norm": 1e3}):
        with np.errstate(all="ignore"), pytest.raises(InvalidInput, match="one with which updates stay finite"):
            run_property(plan(odd))
