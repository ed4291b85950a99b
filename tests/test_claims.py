import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from epsilometer import PointClaim
from epsilometer.claims import CurveClaim, GaussianClaim, Relation
from epsilometer.errors import InvalidInput, NeighboursMismatch
from epsilometer.neighbours import require_same_neighbours

epsilons = st.floats(0, 20)
deltas = st.floats(0, 0.5)
rates = st.floats(0, 1)


@given(epsilons, deltas, rates, st.integers(1, 4))
def test_a_point_obeys_both_inequalities(epsilon: float, delta: float, fpr: float, k: int) -> None:
    claim = PointClaim(epsilon, delta)
    tpr = claim.max_tpr(fpr).item()
    assert fpr <= tpr <= 1
    assert tpr <= math.exp(epsilon) * fpr + delta + 1e-12
    assert (1 - fpr - delta) * math.exp(-epsilon) <= 1 - tpr + 1e-12 or tpr == fpr
    # Group privacy by composition is never looser than the usual (kε, δΣe^{iε}).
    assert claim.max_tpr(fpr, k).item() <= claim.group(k).max_tpr(fpr).item() + 1e-12


@given(st.floats(0.01, 5), rates, rates)
@example(0.125, 1.0, 2.2250738585e-313)
def test_curves_are_monotone_and_above_chance(mu: float, a: float, b: float) -> None:
    claim = GaussianClaim(mu)
    low, high = sorted((a, b))
    assert low <= claim.max_tpr(low) <= claim.max_tpr(high) <= 1


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_groups_of_a_gaussian_curve_are_gaussian(k: int) -> None:
    fprs = np.linspace(0.001, 0.999, 50)
    np.testing.assert_allclose(GaussianClaim(0.4).max_tpr(fprs, k), GaussianClaim(0.4 * k).max_tpr(fprs), rtol=1e-9)


@pytest.mark.parametrize("point", [(math.inf, 0.1), (400.0, 1e-305), (1.0, 0.0), (0.0, 0.1)])
def test_groups_of_extreme_points_are_points(point) -> None:
    group = PointClaim(*point).group(3)
    assert 0 <= group.delta < 1
    if point == (400.0, 1e-305):
        assert group.delta > 0.99  # e^800·1e-305 is over 1


def test_vacuous_claims_know_it() -> None:
    assert PointClaim(math.inf).is_vacuous
    assert not PointClaim(1.0, 0.5).is_vacuous


def test_a_curve_is_as_sharp_as_its_sharpest_point() -> None:
    points = [(0.0, 0.3), (1.0, 0.05), (3.0, 1e-4)]
    curve = CurveClaim(*map(tuple, zip(*points, strict=True)))
    fprs = np.linspace(0, 1, 101)
    sharpest = np.min([PointClaim(e, d).max_tpr(fprs) for e, d in points], axis=0)
    np.testing.assert_allclose(curve.max_tpr(fprs), sharpest, rtol=0, atol=1e-15)
    assert curve.epsilon_at(0.05) == 1.0
    assert curve.epsilon_at(1e-9) == math.inf


@given(st.floats(0.3, 3), st.floats(1e-6, 0.1))
def test_between_its_points_a_profile_implies_what_convexity_allows(mu: float, delta: float) -> None:
    gaussian = GaussianClaim(mu)
    epsilons = tuple(np.linspace(0, gaussian.epsilon_at(1e-8), 60).tolist())
    curve = CurveClaim(epsilons, tuple(gaussian.delta_at(e) for e in epsilons))
    exact = gaussian.epsilon_at(delta)
    assert exact - 1e-6 <= curve.epsilon_at(delta) <= exact + 0.1


@pytest.mark.parametrize("claim", [PointClaim(1.0, 0.1), GaussianClaim(0.7), CurveClaim((0.5, 2.0), (0.2, 0.01))])
def test_claims_hold_for_the_worlds_in_either_order(claim) -> None:
    """(FPR, TPR) is allowed iff (1 − TPR, 1 − FPR) is: the same test seen from the other world."""
    fpr = np.linspace(0.01, 0.6, 30)
    turned = claim.max_tpr(1 - claim.max_tpr(fpr))
    np.testing.assert_allclose(turned, 1 - fpr, atol=1e-9)


def test_an_infinite_epsilon_allows_everything() -> None:
    assert PointClaim(math.inf).max_tpr([0.0, 0.5, 1.0]).tolist() == [1, 1, 1]
    assert GaussianClaim(math.inf).max_tpr(0.0) == 1


@given(st.floats(0.05, 6), st.floats(1e-9, 0.2))
def test_gaussian_epsilon_and_mu_are_inverse(mu: float, delta: float) -> None:
    epsilon = GaussianClaim(mu).epsilon_at(delta)
    if 0 < epsilon < 50:
        assert GaussianClaim.through(epsilon, delta).mu == pytest.approx(mu, rel=1e-6)


def test_point_epsilon_at_another_delta_is_the_worst_mechanisms() -> None:
    # Randomized response with ε has δ(ε') = (e^ε − e^ε')/(1 + e^ε).
    epsilon, smaller = 2.0, 1.2
    delta = (math.exp(epsilon) - math.exp(smaller)) / (1 + math.exp(epsilon))
    assert PointClaim(epsilon).epsilon_at(delta) == pytest.approx(smaller)
    assert PointClaim(1.0, 1e-5).epsilon_at(1e-6) == math.inf


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PointClaim(-1), "epsilon = -1"),
        (lambda: PointClaim(math.nan), "epsilon = nan"),
        (lambda: PointClaim(1, 1.0), "delta = 1.0"),
        (lambda: PointClaim(1, 0, "replaced"), "did you mean 'replace'"),  # type: ignore[arg-type]
        (lambda: GaussianClaim(-0.1), "mu = -0.1"),
        (lambda: CurveClaim((1.0,), ()), "sequences of one length"),
        (lambda: PointClaim(1).max_tpr(1.5), "fpr = 1.5"),
        (lambda: PointClaim(1).max_tpr(0.5, group_size=0), "group_size = 0"),
        (lambda: PointClaim(10**400), "epsilon = 1000"),
        (lambda: PointClaim(1.0).epsilon_at(math.nan), "delta = nan"),
        (lambda: PointClaim(1.0).allows(0.5, 7.0), "fnr = 7"),
        (lambda: GaussianClaim(1.0).delta_at(math.nan), "epsilon = nan"),
        (lambda: GaussianClaim(1e200), "mu = 1e"),
    ],
)
def test_bad_claims_are_refused_in_words(make, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make()


def test_relations_never_meet_silently() -> None:
    with pytest.raises(
        NeighboursMismatch, match=r"the claim speaks of the replace relation, the evidence of add-remove"
    ):
        require_same_neighbours("the claim", Relation.REPLACE, "the evidence", Relation.ADD_REMOVE)


@given(epsilons, deltas, st.integers(1, 30), st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_groups_in_closed_form_are_steps_one_after_another(epsilon: float, delta: float, size: int, fprs) -> None:
    claim, rates = PointClaim(epsilon, delta), np.array(fprs)
    for _ in range(size):
        rates = np.maximum(claim._max_tpr(rates), rates)
    np.testing.assert_allclose(claim.max_tpr(fprs, size), rates, rtol=1e-9, atol=1e-13)


@given(
    st.lists(st.tuples(st.floats(0, 40) | st.just(0.0), st.floats(0, 1) | st.just(0.0)), min_size=1, max_size=12),
    st.lists(st.floats(0, 1), min_size=1, max_size=20),
)
def test_the_envelope_of_a_curve_is_the_least_of_its_points(points, fprs) -> None:
    """Less than that would accuse a training of what its points allow."""
    curve = CurveClaim(*map(tuple, zip(*points, strict=True)))
    sharpest = np.min([PointClaim(e, min(d, 1 - 1e-16)).max_tpr(fprs) for e, d in points], axis=0)
    np.testing.assert_allclose(curve.max_tpr(fprs), sharpest, rtol=1e-12, atol=4e-15)


def test_groups_of_a_gaussian_claim_are_gaussian() -> None:
    rates = np.linspace(0, 1, 41)
    one_by_one = rates
    for _ in range(3):
        one_by_one = GaussianClaim(0.4).max_tpr(one_by_one)
    np.testing.assert_allclose(GaussianClaim(0.4).max_tpr(rates, 3), one_by_one, atol=1e-12)
    assert GaussianClaim(math.inf).max_tpr([0.0, 0.5], 2).tolist() == [1.0, 1.0]
