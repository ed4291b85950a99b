"""Units and relations: what is said of different neighbours never meets silently, and nothing forgets its own."""

from __future__ import annotations

import json
import pickle
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsilometer import PairedRuns, Plan, PointClaim, Recipe, account, audit, claim_curve
from epsilometer.accounting import Budget, ClaimPromise, DpSgd, calibrate, compare, curve
from epsilometer.accounting.student import StudentDpSgd
from epsilometer.adversaries import Gradient
from epsilometer.auditing import judge, judge_evidence, methods_for, noise_for
from epsilometer.auditing.decision import decide
from epsilometer.auditing.mechanism_audit import mechanism_plan
from epsilometer.auditing.per_step import ComposedSteps, StepBets
from epsilometer.bounds import (
    METHODS,
    ClaimTest,
    ClopperPearson,
    Cosines,
    ExactRank,
    Simultaneous,
    bet_on_steps,
    clopper_pearson,
    cosine_canaries,
    default_method,
    pool_runs,
    refutation_power,
    refute_curve,
    refute_one_run,
)
from epsilometer.bounds.catalogue import Settings, bound_named
from epsilometer.bounds.strength import attacks_of_strength
from epsilometer.claims import CurveClaim, GaussianClaim, Neighbours, Relation, StepClaim
from epsilometer.data import digits
from epsilometer.errors import EvidenceMismatch, InvalidInput, NeighboursMismatch
from epsilometer.evidence import Counts, OneRun, PerStep
from epsilometer.mechanisms import MECHANISMS, CallableMechanism, Laplace, Sensitivity, mechanism_named
from epsilometer.neighbours import require_same_neighbours
from epsilometer.subjects import CallableTraining, DpSgdTraining, Releases
from epsilometer.testing import check_method

SAID = [Neighbours(unit, relation) for unit in ("record", "user", "author") for relation in Relation]
neighbours = st.sampled_from(SAID)
OUTS, INS = np.linspace(0.0, 1.0, 60), np.linspace(0.5, 1.5, 60)
COINS = np.arange(60) % 2
DP_SGD = DpSgd(0.1, 2.0, 6)


def claims(said: Neighbours) -> list[Any]:
    """One of every form."""
    word = {"relation": said.relation, "unit": said.unit}
    return [
        PointClaim(1.0, 1e-5, **word),
        GaussianClaim(1.0, **word),
        CurveClaim((0.0, 1.0), (0.3, 0.01), **word),
        curve(DP_SGD, said),
    ]


def evidence(said: Neighbours) -> list[Any]:
    """One of every kind that a claim is judged by."""
    return [PairedRuns(OUTS, INS, said), OneRun(INS * COINS, COINS, said), Counts(50, 5, 10, 55, said, 2)]  # type: ignore[arg-type]


def steps(said: Neighbours) -> PerStep:
    return PerStep(INS * COINS, COINS, said, steps=6, middle=0.5)


# ---------------------------------------------------------------------------------------- what is said
@given(neighbours)
def test_neighbours_are_read_as_they_are_written(said: Neighbours) -> None:
    assert Neighbours.of(str(said)) == Neighbours.of(said) == Neighbours.of(said.relation, said.unit) == said
    assert Neighbours.read(json.loads(json.dumps(said.to_dict()))) == Neighbours.read(said.identity()) == said


def test_texts_of_records_are_as_they_were() -> None:
    assert str(Neighbours()) == "add-remove"
    assert str(Neighbours("user", Relation.REPLACE)) == "user-level replace"
    assert Neighbours.read({"relation": "zero-out"}) == Neighbours("record", Relation.ZERO_OUT)
    assert PointClaim(1.0, 1e-5).describe() == "(ε = 1, δ = 1e-05), add-remove"
    assert PointClaim(1.0, 1e-5, unit="user").describe() == "(ε = 1, δ = 1e-05), user-level add-remove"
    assert Neighbours("user").counted(2) == "2 users"
    assert (
        str(PairedRuns(OUTS, INS, "user-level replace", 2))
        == "PairedRuns(60 out, 60 in, user-level replace, groups of 2)"
    )


@pytest.mark.parametrize(
    "unit", ["", " ", "two words", "User", "user\n", "x" * 31, "-user", "user/replace", "1", "a\x1b[31m"]
)
def test_a_unit_is_one_plain_word(unit: str) -> None:
    for make in (Neighbours, lambda one: PointClaim(1.0, unit=one), lambda one: PairedRuns(OUTS, INS, unit=one)):
        with pytest.raises(InvalidInput, match=r"unit = .*one word in lower case.*such as record, user"):
            make(unit)


def test_other_values_are_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match="unit = 7"):
        Neighbours(7)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="relation = 7"):
        Neighbours.of(7)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="did you mean 'replace'"):
        Neighbours.of("user-level replaced")
    with pytest.raises(InvalidInput, match="unit = 'author': expected 'user', which is said already"):
        PairedRuns(OUTS, INS, Neighbours("user"), unit="author")


def test_errors_name_both_and_travel() -> None:
    with pytest.raises(NeighboursMismatch) as caught:
        require_same_neighbours("the claim", Neighbours("user"), "the evidence", "add-remove")
    assert str(caught.value) == (
        "the claim speaks of one user, the evidence of one record: "
        "epsilons of different units cannot be compared; state both for one unit"
    )
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_old_names_are_found_with_a_warning() -> None:
    from epsilometer import claims as room
    from epsilometer import errors

    with pytest.warns(DeprecationWarning, match="NeighboursMismatch"):
        assert errors.RelationMismatch is NeighboursMismatch
    with pytest.warns(DeprecationWarning, match="require_same_neighbours"):
        room.require_same_relation("a", Relation.REPLACE, "b", Relation.REPLACE)


# ---------------------------------------------------------------------------------------- nothing forgets it
@given(neighbours)
def test_claims_keep_their_neighbours(said: Neighbours) -> None:
    for claim in [*claims(said), GaussianClaim.through(1.0, 1e-5, said), StepClaim.of_noise(1.0, said)]:
        assert claim.neighbours == replace(claim).neighbours == pickle.loads(pickle.dumps(claim)).neighbours == said
        assert Neighbours.read(claim.to_dict()) == said
        assert ("unit" in claim.to_dict()) == (said.unit != "record")  # stored plans know no units
        assert str(said) in claim.describe()
    assert PointClaim(1.0, 1e-5, said.relation, said.unit).group(2).neighbours == said
    assert StepClaim((0.5, 1.0), said.relation, said.unit).strongest.neighbours == said
    assert all(claim.neighbours == said for claim in attacks_of_strength(1.0, 2.0, said))


@given(neighbours)
def test_evidence_keeps_its_neighbours(said: Neighbours) -> None:
    for seen in [*evidence(said), steps(said), Cosines([0.1, 0.2], 100, relation=said)]:
        assert seen.neighbours == replace(seen).neighbours == said
    runs, coins, _ = evidence(said)
    assert runs.counts(0.7).neighbours == runs.flipped().neighbours == coins.as_pairs().neighbours == said
    assert pool_runs([coins, coins]).neighbours == said
    for kind in (PairedRuns, OneRun, PerStep):
        assert kind.always_right(4, 10, said, 1).neighbours == said


@pytest.mark.parametrize("said", [Neighbours("user"), Neighbours("user", Relation.REPLACE)], ids=str)
def test_every_bound_keeps_the_neighbours_of_its_evidence(said: Neighbours) -> None:
    for seen in evidence(said):
        for name, entry in METHODS.items():
            if not entry.takes(seen):
                continue
            settings = Settings(
                delta=0.0 if "ratio" in name or "log" in name else 1e-5,
                threshold=0.7 if entry.needs_threshold else None,
            )
            try:
                bound = bound_named(name, seen, settings)
            except InvalidInput:  # some have no number for these scores or this δ
                continue
            assert bound.neighbours == said, name
            assert str(said) in str(bound)
            assert Neighbours.read(bound.to_dict()) == said
    for method in (StepBets(DP_SGD), ComposedSteps(DP_SGD)):
        assert method.bound(steps(said), delta=1e-5).neighbours == said
    assert cosine_canaries(Cosines([0.1, 0.2, 0.4], 100, relation=said), delta=1e-5).neighbours == said


@given(neighbours)
def test_theory_says_of_which_neighbours_it_is(said: Neighbours) -> None:
    for bound in (account(DP_SGD, 1e-5, said), Budget(5.0, 1e-5, said).spent, *compare(DP_SGD, 1e-5, said)):
        assert bound.neighbours == replace(bound, caveat="x").neighbours == said
        assert bound.to_dict()["unit"] == said.unit
        assert f"({said})" in str(bound)
    record = Neighbours("record", said.relation)
    assert account(DP_SGD, 1e-5, said).epsilon == account(DP_SGD, 1e-5, record).epsilon
    assert calibrate(epsilon=1.0, delta=1e-5, sample_rate=1.0, steps=1, relation=said) == noise_for(
        1.0, 1e-5, 1.0, 1, record
    )
    if said.relation is not Relation.REPLACE:
        assert StudentDpSgd(0.1, 2.0, 6, 5.0).claim(said).neighbours == said


@pytest.mark.parametrize("name", list(MECHANISMS))
def test_mechanisms_promise_for_the_neighbours_of_their_sensitivity(name: str) -> None:
    made: Any = mechanism_named(name, 1.0, 1e-5)
    assert "unit" not in repr(made)  # plans are known by it, and stored ones know no units
    if "sensitivity" not in {field.name for field in fields(made)}:
        return
    of_users = replace(made, sensitivity=replace(made.sensitivity, unit="user"))
    assert of_users.claim.neighbours == of_users.neighbours == Neighbours("user", made.relation)
    assert "unit='user'" in repr(of_users)


# ---------------------------------------------------------------------------------------- nothing meets silently
@given(neighbours, neighbours)
def test_different_neighbours_never_meet(one: Neighbours, other: Neighbours) -> None:
    """Wherever two statements about neighbours come together: fine if they are the same, and refused else."""

    def meeting(call: Any) -> None:
        if one == other:
            call()
            return
        with pytest.raises(NeighboursMismatch):
            call()

    runs, coins, counts = evidence(one)
    point, *_ = claims(other)
    meeting(lambda: require_same_neighbours("a", one, "b", other))
    meeting(lambda: refute_curve(runs, point))
    meeting(lambda: refute_curve(counts, point))
    meeting(lambda: refute_one_run(coins, point))
    meeting(lambda: bet_on_steps(steps(one), StepClaim(1.0, other.relation, other.unit)))
    meeting(lambda: ComposedSteps(DP_SGD).test(steps(one), point))
    meeting(lambda: StepBets(DP_SGD).test(steps(one), point))
    meeting(lambda: pool_runs([coins, OneRun(INS * COINS, COINS, other)]))
    meeting(lambda: refutation_power(GaussianClaim(1.0, one.relation, one.unit), claims(other)[1], trials=20))
    meeting(lambda: CallableMechanism(print, point, Sensitivity(1.0, "l1", one.relation, one.unit)))
    meeting(lambda: judge_evidence(counts, point, delta=1e-5))
    test = ClaimTest(False, point, 0.95, "mine", ExactRank().kind, runs.counts(0.7))  # type: ignore[arg-type]
    meeting(lambda: decide(runs, test, ClopperPearson()))


@pytest.mark.parametrize("name", methods_for(PairedRuns(OUTS, INS)))
def test_no_method_tests_a_claim_about_another_unit(name: str) -> None:
    method = METHODS[name].method(Settings(threshold=0.7 if METHODS[name].needs_threshold else None))
    for claim in claims(Neighbours("user")):
        with pytest.raises(NeighboursMismatch, match=r"one user, .* one record"):
            method.test(PairedRuns(OUTS, INS), claim)
        with pytest.raises(NeighboursMismatch, match=r"one user, .* one record"):
            judge_evidence(PairedRuns(OUTS, INS), claim, delta=1e-5, method=method)
    for claim in claims(Neighbours("user")):
        with pytest.raises(NeighboursMismatch):
            default_method(OneRun).test(OneRun(INS * COINS, COINS), claim)


class Forgetful(ExactRank):
    """As a method that is older than units makes its bounds."""

    def bound(self, evidence: PairedRuns, **settings: Any) -> Any:
        return replace(super().bound(evidence, **settings), unit="record")


def test_a_bound_that_forgets_its_unit_is_noticed() -> None:
    with pytest.raises(NeighboursMismatch, match="the claim speaks of one user, the bound by exact-rank of one record"):
        judge_evidence(PairedRuns(OUTS, INS, unit="user"), PointClaim(1.0, unit="user"), delta=0.0, method=Forgetful())
    with pytest.raises(AssertionError, match="relation and unit of its evidence"):
        check_method(Forgetful())


# ---------------------------------------------------------------------------------------- plans
def trained(data: Any, seed: int) -> Any:
    weights = data.x.sum(axis=0) + np.random.default_rng(seed).normal(size=(2, 4))
    return lambda x: x @ weights.T


DATA = (np.eye(8, 4), np.arange(8) % 2)


def own(**settings: Any) -> Plan:
    data = digits().subset(classes=[0, 1], per_class=10)
    recipe = Recipe(records=len(data), steps=2)
    return Plan(DpSgdTraining(recipe, data), claim_curve(recipe, **settings), 1e-5, Gradient(), trials=2)


def test_a_claim_about_another_unit_than_the_subjects_is_refused() -> None:
    with pytest.raises(NeighboursMismatch, match="the claim speaks of one user, the training of one record"):
        own(relation=Neighbours("user"))
    with pytest.raises(NeighboursMismatch, match="the claim speaks of one record, the training of one user"):
        audit(trained, data=DATA, claim=PointClaim(1.0, 1e-5), unit="user", trials=2)
    with pytest.raises(NeighboursMismatch, match="the claim speaks of one user, the training of one record"):
        audit(trained, data=DATA, claim=PointClaim(1.0, 1e-5, unit="user"), trials=2)
    with pytest.raises(NeighboursMismatch, match="the claim speaks of one user, the mechanism of one record"):
        mechanism_plan(Laplace(1.0), claim=PointClaim(1.0, unit="user"), runs=100)
    for odd in ("two words", ""):
        with pytest.raises(InvalidInput, match=f"unit = '{odd}'"):
            audit(trained, data=DATA, claim=1.0, unit=odd, trials=2)


def test_a_game_about_another_unit_is_refused() -> None:
    class OfUsers(Gradient):
        def craft(self, *given: Any) -> Any:
            return replace(super().craft(*given), unit="user")

    plan = replace(own(), adversary=OfUsers())
    with pytest.raises(NeighboursMismatch, match="the claim speaks of one record, the game of one user"):
        plan.game(plan.prepare())


def test_evidence_of_another_unit_is_not_judged_by_a_plan() -> None:
    with pytest.raises(NeighboursMismatch, match="the claim speaks of one record, the evidence of one user"):
        judge(own(), PairedRuns(OUTS, INS, unit="user"))


def test_the_unit_goes_from_subject_to_result() -> None:
    result = audit(trained, data=DATA, claim=DpSgd(1.0, 1.0, 1), trials=20, unit="user", isolation="here")
    assert "(8 users)" in result.plan.subject.describe()
    said = Neighbours("user")
    assert result.plan.neighbours == result.evidence.neighbours == result.lower_bound.neighbours == said
    assert result.upper_bound is not None
    assert result.upper_bound.neighbours == said
    assert result.plan.to_dict()["claim"]["unit"] == "user"


def test_counts_behind_a_band_keep_their_neighbours() -> None:
    """Counts that forgot their unit could be judged against a claim about records."""
    scores = np.arange(60.0)
    user = PairedRuns(scores - 40.0, scores, "user-level replace", 3)
    pair = clopper_pearson(user, delta=1e-5, thresholds=Simultaneous()).proof
    assert (pair.counts.neighbours, pair.counts.group_size) == (user.neighbours, 3)


def test_a_claim_promises_no_number_of_other_neighbours() -> None:
    promise = ClaimPromise(PointClaim(1.0, 0.0))
    assert promise.epsilon_at(0.0) == 1.0
    assert promise.epsilon_at(0.0, Relation.REPLACE) is None


def test_an_upper_bound_of_another_unit_is_refused() -> None:
    class Careless(CallableTraining):
        @property
        def promise(self) -> ClaimPromise:
            return ClaimPromise(PointClaim(1.0, 1e-5))

    from epsilometer.data import own_data

    plan = Plan(Careless(trained, own_data(DATA), unit="user"), PointClaim(1.0, 1e-5, unit="user"), 1e-5, clipbkd(), 2)
    with pytest.raises(NeighboursMismatch, match="one user, what it promises of one record"):
        _ = plan.upper_bound


def clipbkd() -> Any:
    from epsilometer.adversaries import ClipBkd

    return ClipBkd()


def test_a_mechanism_of_users_is_audited_as_such() -> None:
    def noisy(value: Any, rng: np.random.Generator, size: int) -> Any:
        return np.sum(value) + rng.laplace(0.0, 1.0, size)

    claim = PointClaim(1.0, unit="user")
    plan = mechanism_plan(noisy, claim=claim, sensitivity=1.0, neighbours=(0.0, 1.0), runs=200)
    assert isinstance(plan.subject, Releases)
    assert plan.subject.unit == "user"
    assert "unit='user'" in plan.subject.identity()["subject"]["sensitivity"]
    with pytest.raises(
        InvalidInput, match=r"2 users gone and 0 new': expected one to be added or removed \(user-level"
    ):
        mechanism_plan(noisy, claim=claim, neighbours=([1, 2], []), runs=200)


def test_plans_about_records_are_known_by_what_they_were_known_by() -> None:
    """Fingerprints of the version before units: stored runs go on."""
    plan = own()
    known = {
        "add-remove": "fbfa268b7eb6e97da4ec18fc03a226a3ff60906e452c8b5037c35755741d3fc9",
        "replace": "62173cd3d97f1332305469f24c4797ec6d314997867ed5db6de389059132ee95",
        "zero-out": "3d1c56fdc81a61307f172eaefe5d7c0e6439775172113d1e5ef6f6ec56d65b58",
    }
    for relation, fingerprint in known.items():
        claim = PointClaim(1.0, 1e-5, Relation.of(relation))
        assert replace(plan, claim=claim, adversary=clipbkd()).fingerprint() == fingerprint


def test_single_steps_are_not_judged_as_runs() -> None:
    with pytest.raises(EvidenceMismatch):
        judge_evidence(steps(Neighbours()), PointClaim(1.0), delta=1e-5)  # type: ignore[arg-type]
