"""Where scores have few values there are few different audits: no draw of our own may decide a good part of them.

A reviewer enumerated a law that is exactly (0, δ)-DP: without the record the score is always 0, with it x with
probability δ. One split drawn from the values was above the truth in 10 to 35 % of audits at 5 %, one shuffle in 11 %.
"""

import numpy as np
import pytest
from scipy import stats

from epsilometer import PairedRuns, PointClaim
from epsilometer.bounds import ClopperPearson, EProcess, Method, Split
from epsilometer.bounds.ties import Draws, Shuffles

ALPHA = 0.05


def exact_size(method: Method, n: int, m: int, x: float, delta: float) -> float:
    """The probability, over all outcomes but those that are next to impossible, that the truth is refuted."""
    probabilities = stats.binom.pmf(np.arange(m + 1), m, delta)
    size = 0.0
    for k in np.flatnonzero(probabilities > 1e-3):
        runs = PairedRuns(np.zeros(n), np.r_[np.zeros(m - k), np.full(k, x)])
        size += probabilities[k] * method.test(runs, PointClaim(0.0, delta)).refuted
    return float(size)


@pytest.mark.parametrize(
    ("n", "m", "x", "delta"), [(430, 23, 1.0, 0.15), (250, 5, 1.0, 0.25), (430, 23, 178.0, 0.69773)]
)
def test_no_split_decides_a_good_part_of_audits(n: int, m: int, x: float, delta: float) -> None:
    assert exact_size(ClopperPearson(Split()), n, m, x, delta) <= ALPHA


def test_no_shuffle_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert exact_size(EProcess(), 60, 60, 7930.0, 0.3) <= ALPHA
    # As it was: one shuffle, drawn from the values.
    monkeypatch.setattr("epsilometer.bounds.ties.DISTINCT", 0.0)
    assert exact_size(EProcess(), 60, 60, 7930.0, 0.3) > 2 * ALPHA


def test_one_draw_does_where_values_differ() -> None:
    rng = np.random.default_rng(0)
    runs = PairedRuns(rng.normal(size=50), rng.normal(size=50))
    assert Shuffles.of(runs).draws == Draws()
    rounded = PairedRuns(runs.out_scores.round(), runs.in_scores.round())
    assert Shuffles.of(rounded).draws == Draws(15, 10, 0.5)
    many = PairedRuns(rng.integers(0, 2, 10_000), rng.integers(0, 2, 10_000))
    assert Shuffles.of(many).draws == Draws(2, 2)


@pytest.mark.parametrize("method", [ClopperPearson(Split()), EProcess()], ids=["split", "eprocess"])
def test_bound_and_test_agree(method: Method) -> None:
    """What is refuted is what the bound exceeds, with several draws too."""
    rng = np.random.default_rng(1)
    runs = PairedRuns(rng.integers(0, 2, 80), np.minimum(rng.integers(0, 12, 80), 1))
    epsilon = method.bound(runs, delta=0.01).epsilon
    assert epsilon > 0
    assert method.test(runs, PointClaim(epsilon - 0.02, 0.01)).refuted
    assert not method.test(runs, PointClaim(epsilon + 0.02, 0.01)).refuted
