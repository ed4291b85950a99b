"""Published numbers of credible intervals and estimates; each with its source."""

import pytest

from epsilometer.bounds import clopper_pearson
from epsilometer.bounds.bayesian import bayesian
from epsilometer.bounds.cosine import gaussian_pair_epsilon
from epsilometer.bounds.ratio import bailey_limit, katz_log_limit
from epsilometer.claims import GaussianClaim
from epsilometer.evidence import Counts

LIMITS = {"katz-log": katz_log_limit, "bailey": bailey_limit}


def test_bayesian_interval() -> None:
    # Zanella-Béguelin et al. 2023: (0.145, 6.399) at α = .1, δ = 1e-5, found by integration to 5e-3 in probability
    # and 1e-2 in ε (authors' code, joint_density.py). Integrated to 1e-6 the same posterior has (0.1439, 6.4156).
    found = bayesian(Counts(tp=487, tn=1, fp=512, fn=0), delta=1e-5, confidence=0.9).proof
    assert (found.low, found.high) == pytest.approx((0.145, 6.399), abs=2e-2)
    assert (found.low, found.high) == pytest.approx((0.1439, 6.4156), abs=1e-4)
    # "where Clopper–Pearson gives (0, ∞)".
    assert clopper_pearson(Counts(tp=487, tn=1, fp=512, fn=0), delta=1e-5, confidence=0.9).epsilon == 0


def test_bayesian_bound_of_perfect_trials() -> None:
    # The authors' test_joint.py: 1000 perfect trials, one-sided α = .05, δ = 1e-5: 7.21 to 1e-2.
    found = bayesian(Counts(tp=1000, tn=1000, fp=0, fn=0), delta=1e-5, confidence=0.9)
    assert found.epsilon == pytest.approx(7.21, abs=5e-3)


@pytest.mark.parametrize(
    ("method", "limits"), [("bailey", [4.61953896, 6.87647915]), ("katz-log", [4.45958661, 6.39712581])]
)
def test_ratio_limits(method: str, limits: list[float]) -> None:
    # TensorFlow Privacy, epsilon_lower_bound.py, RatioBound's docstring: limits on TPR/FPR (not on ε), no δ.
    assert LIMITS[method]([100, 90], 110, [10, 5], 80, 0.05) == pytest.approx(limits, abs=5e-9)


@pytest.mark.parametrize(
    ("tp", "fn", "fp", "tn", "katz", "bailey"),
    [
        (473, 511, 755, 950, 1.01166194, 1.01148934),
        (2, 697, 213, 313, 0.00220470, 0.00162322),
        (1000, 10, 10, 10000, 589.27335593, 613.58766147),
        (0, 511, 755, 950, 0.0, 0.0),
        (2, 697, 0, 313, 0.13325535, 0.18481008),
        (473, 0, 755, 950, 2.15959024, 2.15787013),
        (2, 697, 213, 0, 0.00089568, 0.00066016),
        (1000, 0, 10, 0, 0.93375356, 0.93591485),
    ],
)
def test_ratio_limits_of_asbio(tp: int, fn: int, fp: int, tn: int, katz: float, bailey: float) -> None:
    # R package asbio, ci.prat, as quoted by TensorFlow Privacy's epsilon_lower_bound_test.py; α = .05.
    for method, expected in (("katz-log", katz), ("bailey", bailey)):
        assert LIMITS[method](tp, tp + fn, fp, fp + tn, 0.05).item() == pytest.approx(expected, abs=5e-8)


def test_ratio_limits_of_perfect_trials() -> None:
    # The same test: 500 of 500 and 0 of 500 at α = .01.
    assert katz_log_limit(500, 500, 0, 500, 0.01).item() == pytest.approx(37.31696140, abs=5e-8)
    assert bailey_limit(500, 500, 0, 500, 0.01).item() == pytest.approx(108.47420518, abs=5e-8)


@pytest.mark.parametrize(("sigma", "epsilon"), [(4.22, 1.0), (1.54, 3.0), (0.541, 10.0)])
def test_gaussian_mechanisms_of_the_one_shot_paper(sigma: float, epsilon: float) -> None:
    # Andrew et al. 2023: the noise for ε at δ = 1e-6, to three digits.
    assert gaussian_pair_epsilon(1e-6, 1 / sigma, 1.0).item() == pytest.approx(epsilon, abs=1e-2)
    assert GaussianClaim(1 / sigma).epsilon_at(1e-6) == pytest.approx(epsilon, abs=1e-2)


def test_epsilon_of_two_gaussians() -> None:
    # Authors' code (google-research/federated, one_shot_epe), test of d = 2000: mean and spread 1/√d, δ = 1e-2.
    assert gaussian_pair_epsilon(1e-2, 1.0, 1.0).item() == pytest.approx(2.317789, abs=5e-7)
