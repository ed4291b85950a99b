"""Claims judged by evidence that others have made: as an audit judges its own, and as the command line does."""

import dataclasses
import json
import re
from typing import Any

import numpy as np
import pytest

from epsilometer.accounting import DpSgd, curve
from epsilometer.auditing import Judgement, decide, judge_evidence, methods_for
from epsilometer.bounds import (
    ClopperPearson,
    EProcess,
    ExactRank,
    Fixed,
    OneRunPoint,
    Threshold,
    clopper_pearson,
    refute_curve,
)
from epsilometer.claims import Claim, PointClaim, Relation
from epsilometer.errors import EpsilometerError
from epsilometer.evidence import Counts, OneRun, PairedRuns, PerStep
from epsilometer.json_values import json_values
from epsilometer.report import headline_of

POINT, CURVE = PointClaim(1.0, 1e-5), curve(DpSgd(0.1, 1.4, 100))


def pairs(mu: float, n: int = 200) -> PairedRuns:
    rng = np.random.default_rng(0)
    return PairedRuns(rng.normal(size=n), rng.normal(mu, size=n))


def canaries(mu: float, n: int = 400, in_order: bool = False) -> OneRun:
    rng = np.random.default_rng(0)
    member = rng.random(n) < 0.5
    return OneRun(np.round(rng.normal(size=n) + mu * member, 1), member, in_order=in_order)


@pytest.mark.parametrize("claim", [POINT, CURVE], ids=["point", "curve"])
@pytest.mark.parametrize("mu", [0.3, 3.0])
@pytest.mark.parametrize("method", [ExactRank(), EProcess(), ClopperPearson(Fixed(0.5))], ids=lambda one: one.name)
def test_scores_are_judged_by_bound_test_and_decide(method: Any, mu: float, claim: Claim) -> None:
    evidence = pairs(mu)
    found = judge_evidence(evidence, claim, delta=1e-5, method=method)
    assert found.lower_bound == method.bound(evidence, delta=1e-5)
    test = method.test(evidence, claim)
    assert (found.test, found.verdict) == (test, decide(evidence, test, method))
    assert (found.evidence, found.claim) == (evidence, claim)
    assert (found.verdict.outcome == "violated") == (mu > 1)


def test_the_default_is_that_of_the_evidence() -> None:
    for evidence in (pairs(1.0), canaries(1.0)):
        named = judge_evidence(evidence, POINT, delta=1e-5, method=methods_for(evidence)[0])
        assert judge_evidence(evidence, POINT, delta=1e-5).to_dict() == named.to_dict()
    assert methods_for(pairs(1.0))[0] == PairedRuns.usual_method
    assert "one-run-point" not in methods_for(pairs(1.0))


def test_counts_are_judged_by_their_one_test() -> None:
    counts = Counts(970, 20, 30, 980)
    found = judge_evidence(counts, PointClaim(3.5, 1e-5), delta=1e-5)
    assert found.lower_bound == clopper_pearson(counts, delta=1e-5)
    assert found.test == refute_curve(counts, PointClaim(3.5, 1e-5))
    assert (found.verdict.outcome, found.verdict.power is not None) == ("consistent", True)
    huge = judge_evidence(Counts(970_000, 20_000, 30_000, 980_000), PointClaim(9.0), delta=0.0)
    assert (huge.verdict.outcome, huge.verdict.power) == ("inconclusive", None)
    assert judge_evidence(Counts(10**12, 0, 1, 10**12), PointClaim(9.0), delta=0.0).verdict.outcome == "violated"


def test_a_direction_counts_for_bound_test_and_verdict() -> None:
    higher, lower = pairs(1.0), pairs(1.0).flipped()
    expected = judge_evidence(higher, PointClaim(4.0, 1e-5), delta=1e-5)
    turned = judge_evidence(lower, PointClaim(4.0, 1e-5), delta=1e-5, direction="lower")
    assert turned.lower_bound.epsilon == expected.lower_bound.epsilon
    assert turned.verdict == expected.verdict
    for evidence in (higher, lower):
        either = judge_evidence(evidence, PointClaim(4.0, 1e-5), delta=1e-5, direction="either")
        assert either.lower_bound.epsilon <= expected.lower_bound.epsilon
    fixed = judge_evidence(lower, PointClaim(9.0), delta=0.0, direction="lower", method=ClopperPearson(Fixed(-0.5)))
    mirrored = judge_evidence(higher, PointClaim(9.0), delta=0.0, method=ClopperPearson(Fixed(0.5)))
    assert fixed.verdict.power == mirrored.verdict.power


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("guesses", [None, 50])
def test_canaries_read_the_other_way_are_the_same_canaries(in_order: bool, guesses: int | None) -> None:
    """Many scores are equal: whether their order may decide must not get lost where their sign is turned."""
    run = canaries(1.5, in_order=in_order)
    turned = dataclasses.replace(run, scores=-run.scores)
    method = OneRunPoint(guesses)
    expected = judge_evidence(run, POINT, delta=1e-5, method=method)
    found = judge_evidence(turned, POINT, delta=1e-5, method=method, direction="lower")
    assert found.to_dict() == expected.to_dict()
    assert found.evidence is turned
    threshold = OneRunPoint(Threshold(0.5))
    assert judge_evidence(run, POINT, delta=1e-5, method=threshold).test == threshold.test(run, POINT)


@pytest.mark.parametrize(
    "evidence", [pairs(3.0), canaries(3.0), Counts(97, 2, 3, 98)], ids=lambda one: type(one).__name__
)
def test_it_can_be_told(evidence: Any) -> None:
    found = judge_evidence(evidence, POINT, delta=1e-5)
    short = headline_of(found)
    assert short.verdict == found.verdict.outcome
    assert str(short).startswith(f"{found.verdict.outcome}: ")
    assert repr(found).startswith(f"Judgement({found.verdict.outcome}: ")
    document = json.loads(json.dumps(json_values(found.to_dict()), allow_nan=False))
    assert document["claim"]["epsilon"] == found.claimed_epsilon == 1.0
    assert (document["verdict"], document["reason"]) == (short.verdict, found.verdict.reason)
    assert isinstance(found, Judgement)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.delta = 1.0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("evidence", "settings", "words"),
    [
        (pairs(1.0), {"method": "bayesian"}, "expected a method that can test a claim: exact-rank"),
        (pairs(1.0), {"method": "one-run-point"}, "a method that can test a claim"),
        (pairs(1.0), {"method": "fixed"}, "say ClopperPearson"),
        (pairs(1.0), {"method": ExactRank}, "a method such as ExactRank"),
        (pairs(1.0), {"method": OneRunPoint()}, "one-run-point needs OneRun, got PairedRuns"),
        (pairs(1.0), {"direction": "left"}, "direction"),
        (pairs(1.0), {"delta": 2.0}, "delta"),
        (pairs(1.0), {"confidence": 1.0}, "confidence"),
        (pairs(1.0), {"claim": 3.0}, "claim = 3.0: expected a claim such as PointClaim"),
        (pairs(1.0), {"claim": PointClaim(1.0, 1e-5, Relation.REPLACE)}, "replace"),
        (canaries(1.0), {"direction": "either"}, "higher or lower with one run"),
        (canaries(1.0), {"method": "exact-rank"}, "a method that can test a claim: one-run-point"),
        (Counts(9, 1, 1, 9), {"method": "katz-log"}, "a method that can test a claim: clopper-pearson"),
        (Counts(9, 1, 1, 9), {"method": ExactRank()}, "a method that can test a claim: clopper-pearson"),
        (Counts(9, 1, 1, 9), {"direction": "lower"}, "direction = 'lower'"),
        (PerStep([0.3, 1.5], [0, 1]), {}, "PairedRuns, OneRun or Counts, got PerStep"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_refused(evidence: Any, settings: dict[str, Any], words: str) -> None:
    given = {"claim": POINT, "delta": 1e-5, **settings}
    with pytest.raises(EpsilometerError, match=re.escape(words)):
        judge_evidence(evidence, given.pop("claim"), **given)
