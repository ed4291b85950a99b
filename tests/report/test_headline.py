"""The headline: one number to quote, never more than is certified; reprs in one line."""

from dataclasses import replace

import numpy as np
import pytest

from epsilometer.accounting import DpSgd, account, curve
from epsilometer.auditing import Plan, decide, judge, spec_from_dict
from epsilometer.bounds import ExactRank, Kind, NoiseLimit
from epsilometer.bounds.strength import area_under_curve
from epsilometer.claims import Claim, GaussianClaim, PointClaim
from epsilometer.evidence import Counts, PairedRuns
from epsilometer.report import finding_of, headline_of, summary, to_json
from epsilometer.report.headline import Headline, headline, quoted, theory_of
from epsilometer.rounding import down, up


def runs(mu: float, n: int = 400) -> PairedRuns:
    rng = np.random.default_rng(0)
    return PairedRuns(rng.normal(size=n), rng.normal(mu, size=n))


def told(evidence: PairedRuns, claim: Claim, **more: object) -> Headline:
    test = ExactRank().test(evidence, claim)
    bound = ExactRank().bound(evidence, delta=1e-5)
    return headline(bound, verdict=decide(evidence, test, ExactRank()), claim=claim, evidence=evidence, **more)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return spec_from_dict({"training": {"steps": 5}, "audit": {"trials": 60}}).plan()


def test_consistent_says_what_was_tested_how_strongly_and_what_to_quote() -> None:
    evidence = runs(1.0)
    found = told(evidence, GaussianClaim(1.0), theory=theory_of(account(DpSgd(0.1, 1.4, 100), 1e-5)))
    first, second = found.sentences
    assert first.startswith("consistent: no violation of the claimed curve (ε = 4.377 at δ = 1e-05) was found")
    share = 100 * area_under_curve(evidence)
    assert f"picks the member out of two {share:.0f} % of the time (guessing: 50 %, the claim allows 76 %)" in first
    assert found.quote in second
    assert second.endswith("theory promises ε ≤ 3.937.")
    assert str(found) == f"{first} {second}"


def test_the_old_numpy_that_is_allowed_tells_what_a_claim_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy 1.26 has no `trapezoid`: every audit ended with an internal error."""
    monkeypatch.delattr(np, "trapezoid", raising=False)
    assert "the claim allows 76 %" in str(told(runs(1.0), GaussianClaim(1.0)))  # Φ(1/√2)
    assert "the claim allows 73 %" in str(told(runs(0.5), PointClaim(1.0)))  # e/(1 + e)


def test_a_refuted_curve_is_not_said_to_refute_its_point() -> None:
    """500 trials certify ε ≥ 2.6, where ε = 4 was claimed: newcomers took that for a contradiction."""
    found = told(runs(1.5), GaussianClaim(1.0))
    assert found.verdict == "violated"
    assert "is refuted with 95 % confidence, though its point alone is not" in found.sentences[0]
    point = told(runs(3.0), PointClaim(1.0, 1e-5))
    assert "the claimed ε = 1 is refuted with 95 % confidence, by an attack" in point.sentences[0]


def test_what_proves_little_is_no_sign_of_privacy() -> None:
    weak = told(runs(0.0), GaussianClaim(1.0))
    assert weak.verdict == "inconclusive"
    assert "run more trials or a stronger adversary" in str(weak)
    assert weak.quote == (
        "nothing: no ε above 0 is certified at δ = 1e-05 (add-remove) with 95 % confidence, which is no sign of privacy"
    )
    alone = headline(ExactRank().bound(runs(1.0), delta=1e-5))
    assert alone.verdict is None
    assert "no proof of privacy" in str(alone)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Kind.CERTIFIED, "certified with 95 % confidence"),
        (Kind.FAMILY, "if the training is as it states, else nothing"),
        (Kind.CREDIBLE, "under its prior"),
        (Kind.ESTIMATE, "nothing: ε ≈"),
    ],
)
def test_only_what_is_certified_is_called_so(kind: Kind, words: str) -> None:
    text = quoted(replace(ExactRank().bound(runs(1.0), delta=1e-5), kind=kind))
    assert words in text
    assert ("certified" in text) is (kind is Kind.CERTIFIED)


def test_the_family_s_number_stands_apart_from_the_certified_one() -> None:
    low = ExactRank().bound(runs(1.0), delta=1e-5)
    family = replace(low, epsilon=low.epsilon + 1.0, kind=Kind.FAMILY)
    found = headline(low, family=family)
    assert f"if it is DP-SGD as stated, whatever its noise, ε ≥ {down(family.epsilon)}" in str(found)
    assert down(family.epsilon) not in found.quote
    assert "DP-SGD" not in str(headline(low, family=replace(family, epsilon=low.epsilon)))  # it adds nothing


def test_numbers_are_rounded_to_the_side_on_which_they_stay_true() -> None:
    rng = np.random.default_rng(3)
    for value in (*rng.uniform(0, 10, 200), 0.7079999, 3.99993, 1e-9, 12345.678):
        assert float(down(value)) <= value <= float(up(value))
        assert float(up(value)) <= value * 1.0011
    low = replace(ExactRank().bound(runs(1.0)), epsilon=0.70799)
    assert str(low).startswith("ε ≥ 0.707 ")
    assert quoted(low).startswith("ε ≥ 0.707 ")


def test_a_family_bound_is_never_certified_in_json(plan: Plan) -> None:
    """The proof's kind had taken the place of the bound's."""
    result = judge(plan, runs(1.0, 60), noise_limit=False)
    limit = NoiseLimit(1.7, 0.95, "exact-rank", Kind.CERTIFIED)
    result = replace(result, family_bound=replace(result.lower_bound, epsilon=9.0, kind=Kind.FAMILY, proof=limit))
    document = to_json(result)
    assert document["family_bound"]["kind"] == "family"
    assert document["lower_bound"]["kind"] == "certified"
    assert (document["headline"], document["quote"]) == (str(headline_of(result)), headline_of(result).quote)
    assert summary(result).startswith(f"{result.verdict.outcome}: ")
    assert finding_of(result).headline == headline_of(result)


def test_reprs_stay_on_one_line(plan: Plan) -> None:
    """A curve's had 16,780 characters."""
    evidence = runs(1.0, 60)
    result = judge(plan, evidence, noise_limit=False)
    claims = [PointClaim(1.0, 1e-5), GaussianClaim(1.0), curve(DpSgd(0.1, 1.4, 100))]
    bounds = [result.lower_bound, result.test, account(DpSgd(0.1, 1.4, 100), 1e-5), result.upper_bound]
    for one in (*claims, evidence, Counts(1, 2, 3, 4), *bounds, result, plan, headline_of(result), finding_of(result)):
        text = repr(one)
        assert "\n" not in text
        assert len(text) < 2500, type(one)
    assert all(len(repr(one)) < 300 for one in (*claims, evidence, *bounds[:3]))
