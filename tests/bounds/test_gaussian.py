"""Family bounds: what they assume, what they refuse, and numbers that can be checked by hand."""

import math

import numpy as np
import pytest

from epsilometer import PairedRuns
from epsilometer.bounds import (
    BestOnSame,
    ClopperPearson,
    EProcess,
    ExactRank,
    Kind,
    exact_rank,
    gaussian_bound,
    gaussian_strength_limit,
    one_run,
    refute_curve,
    refute_step,
)
from epsilometer.claims import GaussianClaim, Relation
from epsilometer.errors import EvidenceMismatch, InvalidInput
from epsilometer.evidence import Counts, OneRun, PerStep

RNG = np.random.default_rng(0)
RUNS = PairedRuns(RNG.normal(size=400), RNG.normal(1.0, size=400))
STEPS = PerStep(np.concatenate([RUNS.out_scores, RUNS.in_scores]), np.arange(800) >= 400)


def test_the_limit_is_where_curves_stop_being_refuted() -> None:
    limit = gaussian_strength_limit(RUNS)
    assert 0.6 < limit.mu < 1.0
    same = ExactRank().for_family(None)
    assert refute_curve(RUNS, GaussianClaim(limit.mu * 0.998), method=same).refuted
    assert not refute_curve(RUNS, GaussianClaim(limit.mu * 1.002), method=same).refuted
    assert limit.kind is Kind.CERTIFIED  # about curves, nothing is assumed


def test_epsilon_follows_from_the_family() -> None:
    bound = gaussian_bound(RUNS, delta=1e-5)
    assert bound.kind is Kind.FAMILY
    assert bound.epsilon == pytest.approx(GaussianClaim(gaussian_strength_limit(RUNS).mu).epsilon_at(1e-5))
    assert bound.epsilon > exact_rank(RUNS, delta=1e-5).epsilon
    assert "family" in str(bound)


def test_perfect_trials_have_the_published_ceiling() -> None:
    """REFERENCE.md §4: 1000 perfect trials, α/2 a rate: μ = 5.360, ε(1e-5) = 36.49."""
    bound = gaussian_bound(Counts(tp=1000, fp=0, fn=0, tn=1000), delta=1e-5)
    assert gaussian_strength_limit(Counts(tp=1000, fp=0, fn=0, tn=1000)).mu == pytest.approx(5.360, rel=2e-3)
    assert bound.epsilon == pytest.approx(36.49, rel=4e-3)


def test_single_steps_speak_of_one_step_until_they_are_composed() -> None:
    limit = gaussian_strength_limit(STEPS)
    assert limit.mu == gaussian_strength_limit(RUNS, method=ExactRank(rank=120, calibrated=False)).mu
    assert limit.kind is Kind.FAMILY  # that steps are alike is assumed
    bound = gaussian_bound(STEPS, delta=1e-5, composed=lambda mu: 10 * mu)
    assert bound.epsilon == pytest.approx(10 * limit.mu)
    with pytest.raises(InvalidInput, match="composed"):
        gaussian_bound(STEPS, delta=1e-5)
    with pytest.raises(InvalidInput, match="composed"):
        gaussian_bound(RUNS, delta=1e-5, composed=lambda mu: mu)


def test_a_step_can_be_refuted_but_never_accused() -> None:
    test = refute_step(STEPS, GaussianClaim(0.5))
    assert test.refuted
    assert test.kind is Kind.FAMILY
    assert not refute_step(STEPS, GaussianClaim(1.0)).refuted


def test_each_kind_of_evidence_goes_where_it_is_valid() -> None:
    """Coins of single steps say nothing certified about the training: its steps are subsampled, and many."""
    for refused in (
        lambda: one_run(STEPS),
        lambda: exact_rank(STEPS),
        lambda: gaussian_strength_limit(OneRun([1, 2], [0, 1])),
    ):
        with pytest.raises(EvidenceMismatch):
            refused()
    with pytest.raises(InvalidInput, match="method = 'eprocess': expected a method whose refutations are nested"):
        gaussian_strength_limit(RUNS, method=EProcess())


def test_nothing_seen_is_no_strength() -> None:
    same = PairedRuns(np.zeros(50), np.zeros(50))
    assert gaussian_strength_limit(same).mu == 0
    assert gaussian_bound(same, delta=1e-5).epsilon == 0
    assert gaussian_bound(PerStep(np.zeros(9), np.arange(9) % 2), delta=0.0, composed=lambda mu: 7 * mu).epsilon == 0
    assert gaussian_strength_limit(PerStep([0.1, 0.2], [1, 1])).mu == 0  # all coins fell on one side


def test_the_relation_and_an_unpaid_choice_are_kept() -> None:
    replaced = PairedRuns(RUNS.out_scores, RUNS.in_scores, Relation.REPLACE)
    assert gaussian_bound(replaced, delta=1e-5).relation is Relation.REPLACE
    estimate = gaussian_bound(RUNS, delta=1e-5, method=ClopperPearson(BestOnSame()))
    assert estimate.kind is Kind.ESTIMATE


def test_extremes_give_numbers() -> None:
    perfect = PairedRuns(np.zeros(30), np.ones(30))
    with pytest.raises(InvalidInput, match="has no ε at δ = 0"):
        gaussian_bound(perfect, delta=0.0)
    for evidence in (perfect, PairedRuns([0.0], [1.0]), PairedRuns([-math.inf], [math.inf])):
        bound = gaussian_bound(evidence, delta=1e-9, method=ExactRank(calibrated=False))
        assert not math.isnan(bound.epsilon)
        assert bound.epsilon >= 0
