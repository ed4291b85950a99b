"""Private ridge regression on the same waist as every other subject."""

from __future__ import annotations

import functools
import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from epsilometer import Plan, PointClaim, run, summary
from epsilometer.adversaries import ClipBkd, LearnedScore, RidgeClipBkd
from epsilometer.auditing import AuditResult, Outcome, audit_ridge, parse_spec, ridge_plan
from epsilometer.claims import Relation
from epsilometer.data import RegressionData
from epsilometer.errors import EpsilometerError, InvalidInput
from epsilometer.evidence import IN, OUT
from epsilometer.mechanisms import PrivateRidge, example_records
from epsilometer.report import to_json
from epsilometer.runs import Inline, Local, MemoryStore, SqliteStore, play
from epsilometer.runs.executors.executor import Job, play_group
from epsilometer.subjects import DpSgdTraining, Faults, RidgeTraining
from epsilometer.testing import check_adversary
from epsilometer.testing.contracts import small_training

DELTA = 1e-5
# All records along one axis: the poison lies along another, and moves the optimum nearly as far as any record can.
TIGHT = RegressionData("one axis", [[1.0, 0.0]], [1.0])
PROVED = PrivateRidge(regularisation=10, epsilon=4, delta=DELTA, records=2, calibration="analytic")
# 400 small records: here one more moves the optimum by 4.1, not by the paper's 2/λ = 2.
SMALL = RegressionData("small records", np.full((400, 1), 0.0274), -np.ones(400))
PAPER = PrivateRidge(regularisation=1, epsilon=1, delta=DELTA)
TRIALS = [(OUT, 0), (IN, 0), (IN, 3), (OUT, 7)]


def plan_for(ridge: PrivateRidge, data: RegressionData, noise: float = 1.0, **settings: object) -> Plan:
    chosen = {"adversary": RidgeClipBkd(), "trials": 1000, **settings}
    return Plan(RidgeTraining(ridge, data, Faults(noise)), ridge.claim, DELTA, **chosen)  # type: ignore[arg-type]


def example(features: int = 5) -> RegressionData:
    return RegressionData("example", *example_records(20, features))


@functools.cache
def right_noise() -> AuditResult:
    return run(plan_for(PROVED, TIGHT))


@pytest.mark.parametrize("features", [1, 3, 4, 5, 9])
def test_the_adversary_keeps_to_the_contract(features: int) -> None:
    """Also: a trial is the same alone and in a group, whatever the number of random words that it needs."""
    check_adversary(RidgeClipBkd(), RidgeTraining(PAPER, example(features)))


def test_right_noise_is_not_accused_and_half_of_it_is() -> None:
    right, half = right_noise(), run(plan_for(PROVED, TIGHT, noise=0.5))
    assert right.verdict.outcome is not Outcome.VIOLATED
    assert half.verdict.outcome is Outcome.VIOLATED
    assert "FAULT INJECTED" in summary(half)
    assert to_json(half)["faults"] == {"noise_scale": 0.5}


def test_a_sensitivity_that_is_none_is_a_violation() -> None:
    assert run(plan_for(PAPER, SMALL)).verdict.outcome is Outcome.VIOLATED
    proved = replace(PAPER, records=401)
    assert run(plan_for(proved, SMALL)).verdict.outcome is not Outcome.VIOLATED


def test_theory_is_the_curve_of_the_noise() -> None:
    result = right_noise()
    assert result.upper_bound is not None
    assert result.upper_bound.epsilon == pytest.approx(PROVED.claim.epsilon_at(DELTA), rel=2e-3)
    assert result.noise_limit is not None
    assert result.family_bound is not None
    # The poison moves the optimum by 0.87 of the sensitivity, so the scores allow a little more noise than there is.
    assert 1 < result.noise_limit.noise_multiplier / result.plan.promise.noise_multiplier < 1.5  # type: ignore[union-attr]
    assert result.family_bound.epsilon <= result.upper_bound.epsilon


def test_theory_has_a_caveat_where_the_sensitivity_is_not_proved() -> None:
    result = run(plan_for(PAPER, SMALL, trials=50))
    assert result.upper_bound is not None
    assert "sensitivity 2 is not proved for 401 records" in str(result.upper_bound)
    assert result.noise_limit is None
    assert not RidgeTraining(PROVED, TIGHT).promise.caveat
    assert not RidgeTraining(replace(PAPER, regularisation=100), SMALL).promise.caveat  # 4λ + 1 = 401 records


def test_a_learned_score_sees_it() -> None:
    """Each of three records has a coefficient of its own, which moves by 1/(1 + λ) if it is there."""
    data = RegressionData("own coefficients", np.eye(3), np.ones(3))
    ridge = PrivateRidge(regularisation=1, epsilon=2, delta=DELTA, records=3, calibration="analytic")
    found = {noise: run(plan_for(ridge, data, noise, adversary=LearnedScore(), trials=400)) for noise in (1.0, 0.1)}
    assert found[1.0].verdict.outcome is not Outcome.VIOLATED
    assert found[0.1].verdict.outcome is Outcome.VIOLATED


def test_the_worlds_are_the_optimum_without_and_with_the_poison() -> None:
    plan = plan_for(PROVED, TIGHT, noise=1e-9)
    poison = plan.prepare()
    scores = plan.play(poison, TRIALS)
    apart = 1 / 11  # 1/(λ + s² + 1), with s = 0
    assert [float(score[0]) for score in scores] == pytest.approx([-apart / 2, apart / 2, apart / 2, -apart / 2])


def test_memory_is_bounded_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_for(PAPER, example())
    job, trials = Job.of(plan), [(world, index) for index in range(100) for world in (OUT, IN)]
    whole = play_group(job, trials).scores
    monkeypatch.setattr("epsilometer.subjects.private_ridge.BLOCK", 64)
    assert np.array_equal(play_group(job, trials).scores, whole)
    sent = pickle.loads(pickle.dumps(plan))
    assert np.array_equal(sent.play(job.prepared, trials[::-1]), whole[::-1])


def test_a_stored_audit_goes_on(tmp_path: Path) -> None:
    x, y = example_records(20, 5)
    plan = ridge_plan(PAPER, x, y, trials=200)
    results = play(plan, MemoryStore(), Inline()).results
    with SqliteStore(tmp_path / "store.sqlite") as store:
        key = store.begin(plan).fingerprint
        store.add(key, plan.accepted({trial: results[trial] for trial in TRIALS}), 0.0)
        found = audit_ridge(PAPER, x, y, trials=200, store=store, executor=Local(1))
        kept = store.results(key)
    assert {trial: scores.tobytes() for trial, scores in kept.items()} == {
        trial: scores.tobytes() for trial, scores in results.items()
    }
    assert found.counts == audit_ridge(PAPER, x, y, trials=200).counts


def test_a_plan_knows_mechanism_data_and_faults() -> None:
    plan = plan_for(PAPER, TIGHT)
    others = [
        plan_for(replace(PAPER, regularisation=2), TIGHT),
        plan_for(PAPER, TIGHT.plus([0.0, 0.5], 0.25)),
        plan_for(PAPER, TIGHT, noise=0.5),
        plan_for(PAPER, TIGHT, adversary=LearnedScore()),
    ]
    assert len({one.fingerprint() for one in (plan, *others)}) == 5
    assert plan.to_dict()["adversary"] == {"name": "ridge-clipbkd"}  # ours, though no spec can name it
    assert plan.code() == []
    assert json.loads(plan.canonical_json())["subject"]["kind"] == "private-ridge"


def test_who_needs_more_than_a_release_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"it also needs predictions; these would work: learned"):
        plan_for(PAPER, TIGHT, adversary=ClipBkd())
    with pytest.raises(EpsilometerError, match="replace"):
        Plan(RidgeTraining(PAPER, TIGHT), PointClaim(1.0, DELTA, Relation.REPLACE), DELTA, RidgeClipBkd())
    own: DpSgdTraining = small_training()
    with pytest.raises(InvalidInput, match="it needs private ridge regression"):
        Plan(own, PointClaim(1.0, DELTA), DELTA, RidgeClipBkd()).prepare()


def test_records_are_frozen_and_known_by_what_they_hold() -> None:
    data = example()
    with pytest.raises(ValueError, match="read-only"):
        data.x[0, 0] = 1.0
    one_more = data.plus(data.x[3], float(data.y[3]))
    assert len(one_more) == 21
    assert one_more.without(20).fingerprint() == data.fingerprint() != one_more.fingerprint()
    with pytest.raises(InvalidInput, match="rows of norm at most 1"):
        data.plus(np.ones(5), 0.0)


SPEC = '[subject]\nname = "private-ridge"\n[audit]\ntrials = 400\n'


@pytest.mark.parametrize(("scale", "outcome"), [("1.0", "consistent"), ("0.5", "violated")])
def test_a_spec_can_name_it(scale: str, outcome: str) -> None:
    """What is claimed is what is audited: the noise's whole curve, which passes through the claimed ε."""
    plan = parse_spec(SPEC + f"[faults]\nnoise_scale = {scale}\n[claim]\nepsilon = 3.0").plan()
    assert plan.claimed_epsilon == pytest.approx(3.0)
    assert plan.promise.caveat == ""
    assert run(plan).verdict.outcome == outcome


def test_a_spec_may_have_data_for_it(tmp_path: Path) -> None:
    x, y = example_records(50, 3)
    np.savez(tmp_path / "d.npz", x=x, y=y)
    rows = [",".join(map(repr, [*record.tolist(), float(value)])) for record, value in zip(x, y, strict=True)]
    (tmp_path / "d.csv").write_text("\n".join(["a,b,c,y", *rows]))
    plans = [parse_spec(SPEC + f'[data]\npath = "{tmp_path / name}"').plan() for name in ("d.npz", "d.csv")]
    assert {plan.subject.data.fingerprint() for plan in plans} == {RegressionData("d", x, y).fingerprint()}
    assert plans[0].subject.ridge.records == 51
    learned = parse_spec(SPEC + f'[data]\npath = "{tmp_path / "d.npz"}"\n[adversary]\nname = "learned"').plan()
    assert isinstance(learned.adversary, LearnedScore)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('[adversary]\nname = "gradient"', "adversary.name = 'gradient': expected one of learned, ridge-clipbkd"),
        ("[training]\nsteps = 5", "training = 'a section': expected nothing where"),
        ('[data]\nname = "mnist"', "data.name = 'mnist': expected nothing"),
        ('[claim]\nrelation = "replace"', "claim.relation = 'replace': expected add-remove"),
        ("[claim]\nepsilon = -1.0", "claim.epsilon = -1.0: expected a number in"),
        ('[data]\npath = "nosuch.npz"', "data.path = 'nosuch.npz': expected a readable file"),
    ],
)
def test_what_does_not_fit_it_is_refused(more: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        parse_spec(SPEC + more).plan()


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        ('name = "private-ridge"\nrecords = 2', "subject.records = 2: expected more than the 2 records"),
        ('name = "private-ridge"\nregularisation = 0.0', "subject.regularisation = 0.0"),
        ('name = "private-ridge"\ncalibration = "x"', "subject.calibration = 'x': expected one of"),
        ('name = "private-ridge"\ntrain = "a:b"', "subject.train = 'a:b': expected nothing beside subject.name"),
        ('name = "privat-ridge"', "did you mean 'private-ridge'"),
        ("regularisation = 2.0", "subject.name is missing: expected private-ridge, which has regularisation"),
        ('train = "a:b"\nrecords = 7', "subject.name is missing: expected private-ridge, which has records"),
    ],
)
def test_settings_that_do_not_fit_are_refused(subject: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        parse_spec(f"[subject]\n{subject}").plan()
