"""How well scores tell worlds apart: against scipy and scikit-learn, and limits that hold as often as they say."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from epsilometer import metrics
from epsilometer.errors import InvalidInput
from epsilometer.evidence import PairedRuns


@pytest.mark.parametrize(("count", "trials"), [(0, 10), (3, 10), (10, 10), (499, 500)])
def test_a_share_has_the_exact_interval(count: int, trials: int) -> None:
    found = metrics.share(count, trials, 0.9)
    oracle = stats.binomtest(count, trials).proportion_ci(0.9, "exact")
    assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high))


def test_the_area_is_that_of_scikit_learn_ties_included() -> None:
    rng = np.random.default_rng(0)
    outs, ins = rng.integers(0, 9, 300).astype(float), rng.integers(2, 11, 200).astype(float)
    truth = roc_auc_score(np.r_[np.zeros(300), np.ones(200)], np.r_[outs, ins])
    found = PairedRuns(outs, ins).auc()
    assert found.value == pytest.approx(truth)
    assert found.low < truth < found.high
    assert PairedRuns([0.0, 1.0], [2.0, 3.0]).auc().low < 0.9  # perfect, of few trials


def test_intervals_of_the_area_hold_as_often_as_they_say() -> None:
    rng = np.random.default_rng(1)
    truth = stats.norm.cdf(1 / np.sqrt(2))
    found = [PairedRuns(rng.normal(size=60), rng.normal(1, size=60)).auc(0.9) for _ in range(400)]
    assert 0.86 < np.mean([one.low <= truth <= one.high for one in found]) < 0.96


def test_balanced_accuracy_pays_for_its_threshold() -> None:
    """Scores that say nothing: the best threshold on the same scores would look better than guessing."""
    rng = np.random.default_rng(2)
    covered, means = [], []
    for _ in range(300):
        runs = PairedRuns(rng.normal(size=40), rng.normal(size=40))
        found = runs.balanced_accuracy(confidence=0.9)
        covered.append(found.low <= 0.5 <= found.high)
        means.append(found.value)
    assert np.mean(covered) >= 0.9
    assert np.mean(means) == pytest.approx(0.5, abs=0.02)
    naive = [metrics._best(runs.out_scores, runs.in_scores)]
    assert runs.balanced_accuracy(naive[0]).value > 0.5
    with pytest.raises(InvalidInput, match="threshold"):
        PairedRuns([0.0], [1.0]).balanced_accuracy()
    assert PairedRuns(range(200), range(100, 300)).balanced_accuracy().value == pytest.approx(0.75, abs=0.02)  # sorted


def test_true_positives_at_a_false_positive_rate() -> None:
    outs = np.arange(1000.0)
    found = PairedRuns(outs, outs + 500).tpr_at(0.01)
    assert (found.threshold, found.fpr_seen) == (989.0, 0.01)
    assert found.tpr.value == pytest.approx(np.mean(outs + 500 > 989))
    assert found.fpr_high == pytest.approx(stats.beta.ppf(0.975, 11, 990))  # half of the error; the TPR has the rest
    oracle = stats.binomtest(510, 1000).proportion_ci(0.975, "exact")
    assert (found.tpr.low, found.tpr.high) == pytest.approx((oracle.low, oracle.high))
    few = PairedRuns(outs[:100], outs[:100]).tpr_at(0.001)
    assert (few.fpr_seen, few.threshold) == (0.0, 99.0)
    assert few.fpr_high == pytest.approx(1 - 0.025 ** (1 / 100))  # a hundred trials show no rate of 0.1 %
    everything = PairedRuns(outs, outs).tpr_at(1.0)
    assert everything.threshold == 0.0


def test_the_limits_on_both_rates_hold_together_as_often_as_they_say() -> None:
    """Uniform scores: the true rates at a threshold t are 1 − t and 1.2 − t. Two limits of 90 % hold less often."""
    rng = np.random.default_rng(3)
    found = [PairedRuns(rng.random(40), rng.random(400) + 0.2).tpr_at(0.1, 0.9) for _ in range(1000)]
    true_fpr = np.array([1.0 - one.threshold for one in found])
    true_tpr = np.minimum(true_fpr + 0.2, 1.0)
    below = np.array([fpr <= one.fpr_high for one, fpr in zip(found, true_fpr, strict=True)])
    within = np.array([one.tpr.low <= tpr <= one.tpr.high for one, tpr in zip(found, true_tpr, strict=True)])
    assert np.mean(below) == pytest.approx(0.95, abs=0.02)
    assert np.mean(below & within) >= 0.9
    apart = [share.low <= tpr <= share.high for share, tpr in (
        (metrics.share(round(400 * one.tpr.value), 400, 0.9), tpr) for one, tpr in zip(found, true_tpr, strict=True)
    )]  # fmt: skip
    alone = true_fpr <= stats.beta.ppf(0.9, 5, 36)
    assert np.mean(alone & np.array(apart)) < 0.86
