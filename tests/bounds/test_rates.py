import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from epsilometer.bounds import epsilon_from_rates, upper_limit
from epsilometer.claims import PointClaim
from epsilometer.errors import InvalidInput


@given(st.integers(1, 3000), st.data(), st.floats(1e-6, 0.5))
def test_limits_are_clopper_and_pearsons(trials: int, data, alpha: float) -> None:
    successes = data.draw(st.integers(0, trials))
    expected = stats.binomtest(successes, trials).proportion_ci(1 - 2 * alpha, method="exact").high
    assert upper_limit(successes, trials, alpha).item() == pytest.approx(expected, rel=1e-6)


def usual_group_epsilon(p_hi: float, p_lo: float, delta: float, k: int) -> float:
    """ln of the largest root of p_lo·x^{k+1} − (p_lo−δ)x^k − p_hi·x + (p_hi−δ), the larger of set and complement."""

    def of_set(hi: float, lo: float) -> float:
        if hi <= lo + k * delta:
            return 0.0
        coefficients = np.zeros(k + 2)
        coefficients[0] = lo
        coefficients[1] -= lo - delta
        coefficients[-2] -= hi
        coefficients[-1] += hi - delta
        roots = np.roots(coefficients)
        return math.log(max(r.real for r in roots if abs(r.imag) < 1e-9))

    return max(of_set(p_hi, p_lo), of_set(1 - p_lo, 1 - p_hi))


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01])
@pytest.mark.parametrize(("fpr", "tpr"), [(0.01, 0.2), (0.05, 0.4), (0.01, 0.99), (0.7, 0.95), (0.3, 0.5)])
def test_groups_prove_at_least_what_the_usual_formula_does(fpr: float, tpr: float, delta: float, k: int) -> None:
    usual = usual_group_epsilon(tpr, fpr, delta, k)
    found = epsilon_from_rates(fpr, 1 - tpr, delta, k).item()
    assert found >= usual - 1e-9
    crosses_the_middle = fpr < 0.5 < tpr
    if not crosses_the_middle and usual > 0:
        assert found == pytest.approx(usual, abs=1e-6)


@given(st.floats(1e-6, 1), st.floats(0, 1 - 1e-6), st.sampled_from([0.0, 1e-5, 0.1]), st.integers(1, 4))
def test_epsilon_is_the_smallest_that_allows_the_rates(fpr: float, tpr: float, delta: float, k: int) -> None:
    epsilon = epsilon_from_rates(fpr, 1 - tpr, delta, k).item()
    assert PointClaim(epsilon + 1e-6, delta).max_tpr(fpr, k) >= tpr - 1e-9
    if epsilon > 1e-6:
        assert PointClaim(epsilon * (1 - 1e-6), delta).max_tpr(fpr, k) < tpr


def test_extremes_are_numbers() -> None:
    assert epsilon_from_rates(0.0, 0.0).item() == math.inf
    assert epsilon_from_rates(0.0, 0.0, 1e-5, 3).item() > 0
    assert epsilon_from_rates(0.0, 1.0).item() == 0
    assert epsilon_from_rates(1.0, 0.0, 0.1, 2).item() == 0
    assert epsilon_from_rates(0.1, 1e-30).item() == pytest.approx(math.log(0.9e30))  # not lost in 1 − 1e-30
    assert upper_limit(1, 1, 0.05) == 1
    with pytest.raises(InvalidInput):
        upper_limit(3, 2, 0.05)
