"""The Student-t mechanism: its law, its curve, and what an audit says of it and of one with half of its noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from epsilometer.auditing import Outcome, audit_mechanism
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms import CallableMechanism, Student
from epsilometer.runs.executors import Inline


def test_noise_is_students_and_shares_one_scale() -> None:
    releases = Student(2.0, freedom=5.0, entries=2).release([1.0, -1.0], np.random.default_rng(0), 20_000)
    for entry, centre in zip(releases.T, (1.0, -1.0), strict=True):
        assert stats.kstest((entry - centre) / 2.0, stats.t(5.0).cdf).pvalue > 0.01
    sizes = np.abs(releases - [1.0, -1.0])
    assert stats.spearmanr(*sizes.T).statistic > 0.1  # entries with scales of their own would have none
    with pytest.raises(InvalidInput, match="value = '3 numbers': expected 2: the promise depends on it"):
        Student(2.0, entries=2).release([1.0, 2.0, 3.0], np.random.default_rng(0))


def test_the_curve_of_one_number_is_exact() -> None:
    """Against integrals of (p − e^ε q)⁺ on a fine grid."""
    mechanism, z = Student(0.7, freedom=3.0), np.linspace(-4000.0, 4000.0, 2_000_001)
    p, q = stats.t(3.0).pdf(z - 1.0 / 0.7), stats.t(3.0).pdf(z)
    epsilons = np.array([0.0, 0.4, 1.0, 0.98 * mechanism.pure_epsilon])
    slow = [np.maximum(p - np.exp(epsilon) * q, 0.0).sum() * (z[1] - z[0]) for epsilon in epsilons]
    assert mechanism._exact(epsilons) == pytest.approx(slow, rel=1e-3, abs=1e-6)
    assert np.log(p / q).max() == pytest.approx(mechanism.pure_epsilon, rel=1e-6)
    smaller = Student(1.4, freedom=3.0)  # half of the shift tells less everywhere
    assert (smaller._exact(epsilons) <= mechanism._exact(epsilons)).all()


def test_of_more_entries_the_curve_is_no_smaller() -> None:
    one, many = Student(2.0), Student(2.0, entries=40)
    for rate in (0.01, 0.1, 0.5):
        assert many.claim.max_tpr(rate) > one.claim.max_tpr(rate) - 1e-9
    assert many.claim.epsilon_at(0.0) == pytest.approx(many.pure_epsilon)
    assert Student.pure(0.7).pure_epsilon == pytest.approx(0.7)


def test_an_audit_finds_half_of_the_noise_and_accuses_nobody_else() -> None:
    right = Student.pure(1.0)
    found = audit_mechanism(right, runs=40_000, executor=Inline())
    assert found.verdict.outcome is not Outcome.VIOLATED
    assert 0.4 < found.lower_bound.epsilon <= 1.0

    def half(value: list[float], rng: np.random.Generator, size: int) -> np.ndarray:
        return sum(value) + 0.5 * right.scale * rng.standard_t(right.freedom, size)

    wrong = CallableMechanism(half, right.claim)
    caught = audit_mechanism(wrong, neighbours=([0.0], [0.0, 1.0]), runs=10_000, executor=Inline(), score="value")
    assert caught.verdict.outcome is Outcome.VIOLATED
