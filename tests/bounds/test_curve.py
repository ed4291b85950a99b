import numpy as np
import pytest

from epsilometer import PairedRuns, PointClaim
from epsilometer.bounds import (
    BestOnSame,
    ClopperPearson,
    ExactRank,
    Kind,
    UnionBound,
    clopper_pearson,
    largest_noise_multiplier,
    refute_curve,
)
from epsilometer.claims import GaussianClaim, Relation
from epsilometer.errors import EvidenceMismatch, InvalidInput, NeighboursMismatch
from epsilometer.evidence import Counts, Membership, OneRun


def runs(mu: float, n: int = 500, seed: int = 1) -> PairedRuns:
    rng = np.random.default_rng(seed)
    return PairedRuns(rng.normal(size=n), rng.normal(mu, size=n))


def test_a_curve_is_refuted_where_its_point_is_not() -> None:
    curve = GaussianClaim(1.0)
    point = PointClaim(curve.epsilon_at(1e-5), 1e-5)
    assert refute_curve(runs(2.0), curve).refuted
    assert not refute_curve(runs(2.0), point).refuted
    assert not refute_curve(runs(1.0), curve).refuted


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0, 4.0])
def test_a_point_is_refuted_exactly_when_the_bound_exceeds_it(epsilon: float) -> None:
    evidence = runs(3.0)
    bound = clopper_pearson(evidence, delta=1e-5).epsilon
    assert refute_curve(evidence, PointClaim(epsilon, 1e-5)).refuted == (bound > epsilon)


def test_the_noise_limit_separates_refuted_from_allowed() -> None:
    evidence = runs(1.0, n=2000)
    limit = largest_noise_multiplier(evidence, lambda sigma: GaussianClaim(1 / sigma)).noise_multiplier
    assert 1.0 < limit < 1.3
    same = ExactRank().for_family(None)
    assert refute_curve(evidence, GaussianClaim(1 / limit), method=same).refuted
    assert not refute_curve(evidence, GaussianClaim(1.002 / limit), method=same).refuted
    blind = largest_noise_multiplier(PairedRuns([0.0], [0.0]), lambda sigma: GaussianClaim(1 / sigma))
    assert blind.noise_multiplier == np.inf
    best = largest_noise_multiplier(
        evidence, lambda sigma: GaussianClaim(1 / sigma), method=ClopperPearson(BestOnSame())
    )
    assert best.kind is Kind.ESTIMATE
    assert "not a limit" in str(best)


def test_an_estimate_says_so() -> None:
    assert refute_curve(runs(1.0), GaussianClaim(0.5), method=ClopperPearson(BestOnSame())).kind is Kind.ESTIMATE


@pytest.mark.parametrize("evidence", [OneRun([1.0], [1]), Membership([1.0], [0]), None])
def test_other_evidence_is_refused_by_name(evidence) -> None:
    with pytest.raises(EvidenceMismatch, match="refute_curve needs independent trials"):
        refute_curve(evidence, PointClaim(1.0))
    with pytest.raises(EvidenceMismatch, match="largest_noise_multiplier needs"):
        largest_noise_multiplier(evidence, lambda s: GaussianClaim(1 / s))
    with pytest.raises(InvalidInput, match=r"claim = 1\.0"):
        refute_curve(runs(1.0), 1.0)


def test_relations_must_agree() -> None:
    with pytest.raises(NeighboursMismatch):
        refute_curve(Counts(1, 0, 0, 1, Relation.REPLACE), PointClaim(1.0))
    with pytest.raises(NeighboursMismatch):
        largest_noise_multiplier(runs(1.0), lambda s: GaussianClaim(1 / s, Relation.REPLACE))


def test_the_shown_pair_comes_nearest_to_refuting() -> None:
    test = refute_curve(runs(1.5), GaussianClaim(1.4), method=ClopperPearson(UnionBound(thresholds=(-5.0, 0.7, 5.0))))
    assert test.proof.threshold == 0.7
    assert test.to_dict()["claim"]["mu"] == 1.4
