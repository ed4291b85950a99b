import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from epsilometer import PairedRuns, PointClaim
from epsilometer.bounds import BestOnSame, Fixed, Kind, Split, UnionBound, epsilon_from_rates
from epsilometer.bounds.bayesian import bayesian
from epsilometer.errors import EvidenceMismatch, InvalidInput
from epsilometer.evidence import Counts, OneRun
from epsilometer.json_values import json_values

EXTREMES = [
    Counts(tp=1, fp=0, fn=0, tn=1),
    Counts(tp=0, fp=1, fn=1, tn=0),
    Counts(tp=1, fp=1, fn=0, tn=0),
    Counts(tp=100_000, fp=0, fn=0, tn=100_000),
    Counts(tp=0, fp=100_000, fn=100_000, tn=0),
    Counts(tp=100_000, fp=100_000, fn=0, tn=0),
    Counts(tp=1, fp=0, fn=0, tn=10**12),
    Counts(tp=10**12, fp=0, fn=0, tn=10**12),
]


def ends(counts: Counts, **settings: float) -> tuple[float, float]:
    proof = bayesian(counts, **settings).proof
    return proof.low, proof.high


def sampled(counts: Counts, delta: float, draws: int = 400_000) -> np.ndarray:
    """The posterior by Monte-Carlo: slow and obvious. A test and its opposite are both read."""
    rng = np.random.default_rng(1)
    fpr = rng.beta(0.5 + counts.fp, 0.5 + counts.tn, draws)
    fnr = rng.beta(0.5 + counts.fn, 0.5 + counts.tp, draws)
    size = counts.group_size
    return np.maximum(
        epsilon_from_rates(fpr, fnr, delta, size),
        epsilon_from_rates(1 - fpr, 1 - fnr, delta, size),
    )


@pytest.mark.parametrize(
    ("counts", "delta"),
    [
        (Counts(tp=970, fp=20, fn=30, tn=980), 1e-5),
        (Counts(tp=50, fp=50, fn=50, tn=50), 0.0),  # no leak: either sign
        (Counts(tp=60, fp=40, fn=40, tn=60), 0.1),
        (Counts(tp=3, fp=1, fn=2, tn=99_999), 0.0),  # one law far narrower than the other
        (Counts(tp=5, fp=80, fn=95, tn=20), 1e-3),  # a test to be read the other way
        (Counts(tp=1, fp=0, fn=0, tn=1), 0.0),
    ],
)
def test_interval_is_that_of_a_sampled_posterior(counts: Counts, delta: float) -> None:
    low, high = ends(counts, delta=delta, confidence=0.8)
    posterior = sampled(counts, delta)
    assert np.mean(posterior <= low) == pytest.approx(0.1, abs=3e-3)
    assert np.mean(posterior <= high) == pytest.approx(0.9, abs=3e-3)


@pytest.mark.parametrize("size", [2, 3])
def test_groups(size: int) -> None:
    counts = Counts(tp=60, fp=10, fn=40, tn=90, group_size=size)
    low, high = ends(counts, delta=1e-3, confidence=0.8)
    posterior = sampled(counts, 1e-3, 40_000)
    assert np.mean(posterior <= low) == pytest.approx(0.1, abs=6e-3)
    assert np.mean(posterior <= high) == pytest.approx(0.9, abs=6e-3)


@pytest.mark.parametrize(("delta", "size"), [(0.0, 1), (1e-3, 2)])
@pytest.mark.parametrize("counts", [(20, 3, 4, 25), (900, 2, 100, 998), (30, 0, 0, 40), (487, 512, 0, 1)])
def test_mass_outside_is_exact(counts: tuple[int, ...], delta: float, size: int) -> None:
    """The posterior mass above either end, by adaptive quadrature over FPR through `Claim.max_tpr`."""
    c = Counts(*counts, group_size=size)

    def mass_above(epsilon: float) -> float:
        claim = PointClaim(epsilon, delta)

        def section(level: float) -> float:
            x = special.betaincinv(0.5 + c.fp, 0.5 + c.tn, level)
            below = special.betainc(0.5 + c.fn, 0.5 + c.tp, claim.min_fnr(x, size))
            return float(below + special.betainc(0.5 + c.tp, 0.5 + c.fn, claim.min_fnr(1 - x, size)))

        return integrate.quad(section, 0, 1, limit=200, epsabs=1e-7)[0]

    low, high = ends(c, delta=delta, confidence=0.9)
    assert mass_above(high) == pytest.approx(0.05, abs=1e-5)
    if low > 0:
        assert mass_above(low) == pytest.approx(0.95, abs=1e-5)


@pytest.mark.parametrize("counts", EXTREMES, ids=str)
def test_extremes_give_numbers(counts: Counts) -> None:
    for delta in (0.0, 1 - 1e-9):
        for confidence in (1e-6, 1 - 1e-9):
            low, high = ends(counts, delta=delta, confidence=confidence)
            assert 0 <= low <= high < 100


def test_delta_near_one_needs_no_epsilon() -> None:
    assert ends(Counts(tp=1, fp=0, fn=0, tn=1), delta=1 - 1e-9) == (0.0, 0.0)
    assert ends(Counts(tp=1000, fp=0, fn=0, tn=1000), delta=1 - 1e-9) == (0.0, 0.0)


@settings(max_examples=5)
@given(*[st.integers(0, 60)] * 4, st.sampled_from([0.0, 1e-5, 0.01]), st.integers(1, 2))
def test_symmetries_and_order(tp: int, fp: int, fn: int, tn: int, delta: float, size: int) -> None:
    if tp + fn == 0 or fp + tn == 0:
        return
    low, high = ends(Counts(tp, fp, fn, tn, group_size=size), delta=delta)
    assert 0 <= low <= high
    for turned in (Counts(tn, fn, fp, tp, group_size=size), Counts(fn, tn, tp, fp, group_size=size)):
        assert ends(turned, delta=delta) == pytest.approx((low, high), abs=1e-4)
    wider = ends(Counts(tp, fp, fn, tn, group_size=size), delta=delta, confidence=0.99)
    assert wider[0] <= low + 1e-5
    assert wider[1] >= high - 1e-5


def test_more_trials_narrow_it_to_the_truth() -> None:
    for n, width in ((100, 2.0), (10_000, 0.2), (1_000_000, 0.02)):
        low, high = ends(Counts(tp=n // 2, fp=n // 10, fn=n - n // 2, tn=n - n // 10))
        assert low < np.log(5) < high
        assert high - low < width


def test_scores_are_split_unless_the_threshold_is_fixed() -> None:
    rng = np.random.default_rng(0)
    runs = PairedRuns(rng.normal(size=400), rng.normal(2.0, size=400))
    found = bayesian(runs, delta=1e-5)
    assert found.method == "bayesian (split)"
    assert found.proof.counts.in_trials == 200
    assert found == bayesian(runs, delta=1e-5, thresholds=Split())
    fixed = bayesian(runs, delta=1e-5, thresholds=Fixed(1.0))
    assert fixed.proof.counts == runs.counts(1.0)
    assert fixed.epsilon == bayesian(runs.counts(1.0), delta=1e-5).epsilon
    assert "score > 1" in str(fixed.proof)


def test_result_is_credible_and_plain() -> None:
    found = bayesian(Counts(tp=90, fp=10, fn=10, tn=90), confidence=0.9)
    assert found.kind is Kind.CREDIBLE
    assert found.epsilon == found.proof.low
    assert json.loads(json.dumps(json_values(found.to_dict())))["interval"] == [found.proof.low, found.proof.high]


def test_all_ties_leave_nothing_to_see() -> None:
    found = bayesian(PairedRuns([1.0] * 20, [1.0] * 20), delta=1e-5)
    assert found.epsilon < 0.1
    assert np.isfinite(found.proof.high)


@pytest.mark.parametrize("strategy", [UnionBound(), BestOnSame(), Split, "split"])
def test_other_strategies_are_refused(strategy: object) -> None:
    with pytest.raises(InvalidInput, match="Split"):
        bayesian(PairedRuns([0.0, 1.0], [1.0, 2.0]), thresholds=strategy)


def test_misuse_is_refused() -> None:
    counts = Counts(tp=9, fp=1, fn=1, tn=9)
    for wrong in ({"delta": 1.0}, {"delta": -1e-9}, {"confidence": 1.0}, {"thresholds": Split()}):
        with pytest.raises(InvalidInput):
            bayesian(counts, **wrong)
    with pytest.raises(InvalidInput, match="at least 2 to split"):
        bayesian(PairedRuns([0.0], [1.0]))
    with pytest.raises(EvidenceMismatch):
        bayesian(OneRun([0.1, 0.2], [0, 1]))
