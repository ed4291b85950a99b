import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsilometer import PairedRuns
from epsilometer.bounds import (
    BestOnSame,
    Fixed,
    Kind,
    Split,
    UnionBound,
    clopper_pearson,
    epsilon_from_rates,
    method_named,
    upper_limit,
)
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Counts

STRATEGIES = [UnionBound(), Split(), Fixed(0.5), BestOnSame(), UnionBound(thresholds=(0.0, 1.0))]
scores = st.lists(
    st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, float("inf"), float("-inf")]), min_size=2, max_size=40
)


def gaussian_runs(n: int = 400, mu: float = 2.0, seed: int = 0) -> PairedRuns:
    rng = np.random.default_rng(seed)
    return PairedRuns(rng.normal(size=n), rng.normal(mu, size=n))


@given(scores, scores, st.sampled_from(STRATEGIES), st.sampled_from(["higher", "lower", "either"]), st.integers(1, 3))
def test_any_scores_give_a_finite_bound(outs, ins, strategy, direction: str, k: int) -> None:
    found = clopper_pearson(PairedRuns(outs, ins, group_size=k), delta=1e-5, thresholds=strategy, direction=direction)
    assert 0 <= found.epsilon < 20
    assert found.to_dict()["counts"].keys() == {"tp", "fp", "fn", "tn"}


@given(scores, scores)
def test_monotone_transformations_change_nothing(outs, ins) -> None:
    runs = PairedRuns(outs, ins)
    turned = PairedRuns(np.arctan(runs.out_scores), np.arctan(runs.in_scores))
    if len(np.unique(np.r_[turned.out_scores, turned.in_scores])) == len(np.unique(np.r_[outs, ins])):
        assert clopper_pearson(runs).epsilon == clopper_pearson(turned).epsilon


def test_fixed_is_the_textbook_formula() -> None:
    runs = gaussian_runs()
    found = clopper_pearson(runs, delta=1e-5, thresholds=Fixed(1.0))
    counts = runs.counts(1.0)
    fpr_high = upper_limit(counts.fp, 400, 0.025).item()
    fnr_high = upper_limit(counts.fn, 400, 0.025).item()
    expected = max(np.log((1 - 1e-5 - fnr_high) / fpr_high), np.log((1 - 1e-5 - fpr_high) / fnr_high))
    assert found.epsilon == pytest.approx(expected)
    assert found.kind is Kind.CERTIFIED


def test_best_on_same_is_labelled_an_estimate_and_is_the_largest() -> None:
    runs = gaussian_runs()
    best = clopper_pearson(runs, thresholds=BestOnSame())
    assert best.kind is Kind.ESTIMATE
    for t in np.unique(np.r_[runs.out_scores, runs.in_scores]):
        assert clopper_pearson(runs.counts(t)).epsilon <= best.epsilon + 1e-12


def test_split_certifies_on_scores_it_did_not_choose_on() -> None:
    found = clopper_pearson(gaussian_runs(401), thresholds=Split(0.25, seed=3))
    assert found.proof.counts.in_trials == found.proof.counts.out_trials == 401 - 100
    # Sorted files are split at random all the same.
    runs = gaussian_runs()
    in_order = PairedRuns(np.sort(runs.out_scores), np.sort(runs.in_scores))
    assert clopper_pearson(in_order, thresholds=Split()).epsilon > 1


def test_the_other_direction_is_found_and_paid_for() -> None:
    runs = gaussian_runs()
    turned = runs.flipped()
    assert clopper_pearson(turned).epsilon == 0
    lower = clopper_pearson(turned, direction="lower")
    assert lower.epsilon == clopper_pearson(runs).epsilon
    either = clopper_pearson(turned, direction="either")
    assert 0 < either.epsilon < lower.epsilon
    assert either.to_dict()["member_if"] == "score < threshold"
    fixed = clopper_pearson(turned, thresholds=Fixed(-1.0), direction="lower")
    assert fixed.epsilon == clopper_pearson(runs, thresholds=Fixed(1.0)).epsilon
    assert fixed.proof.threshold == -1.0


def test_ranks_limit_the_rate_even_with_ties() -> None:
    # 300 of 1000 out-scores are 1. A count beyond the threshold 0 of 300 would be a choice made on the scores.
    runs = PairedRuns(np.r_[np.ones(300), np.zeros(700)], np.r_[np.ones(900), np.zeros(100)])
    for pair in UnionBound().error_pairs(runs, 0.05, epsilon_from_rates):
        assert pair.fpr_high >= pair.counts.fpr
        assert pair.tpr_low <= 1 - pair.counts.fnr


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: clopper_pearson(Counts(1, 0, 0, 1), delta=1.0), "delta = 1.0"),
        (lambda: clopper_pearson(Counts(1, 0, 0, 1), confidence=1.0), "confidence = 1.0"),
        (lambda: clopper_pearson(Counts(1, 0, 0, 1), thresholds=Split()), "nothing of the kind with counts"),
        (lambda: clopper_pearson(gaussian_runs(), direction="up"), "direction = 'up'"),
        (lambda: clopper_pearson(PairedRuns([1.0], [2.0]), thresholds=Split()), "at least 2 to split"),
        (lambda: clopper_pearson(Counts(1, 0, 0, 1), direction="lower"), "direction = 'lower'"),
        (lambda: clopper_pearson(gaussian_runs(), thresholds=Split), "a strategy such as"),
        (lambda: clopper_pearson(gaussian_runs(), thresholds="split"), "a strategy such as"),
        (lambda: Counts(10**13, 0, 0, 1), "tp = 10000000000000"),
        (lambda: PairedRuns([1.0], [1.0], group_size=1001), "group_size = 1001"),
        (lambda: Split(fraction=1.0), "fraction = 1.0"),
        (lambda: UnionBound(candidates=1), "candidates = 1"),
        (lambda: UnionBound(thresholds=()), "at least one threshold"),
        (lambda: Fixed(float("nan")), "threshold = nan"),
        (lambda: method_named("splitt"), "did you mean 'split'"),
        (lambda: method_named("fixed"), "a number exactly when"),
    ],
)
def test_misuse_is_refused_in_words(call, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        call()
