"""Private principal components: what a record can change, what noise hides it, and what an audit sees."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from scipy import stats

from epsilometer.accounting import Composition, DpSgd, account
from epsilometer.arrays import Floats
from epsilometer.auditing import Outcome, audit_mechanism, parse_spec
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms import CallableMechanism, DpPca, mechanism_named
from epsilometer.mechanisms.pca import normalised
from epsilometer.runs.executors import Inline

PCA = DpPca(components=2, noise_multiplier=3.0)
ABOVE = np.triu_indices(4)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def records_of_every_kind() -> Floats:
    """Axes, the diagonal, random directions; of norms from tiny to huge."""
    directions = np.vstack([np.eye(4), np.ones(4), rng().normal(size=(200, 4))])
    return np.vstack([directions * scale for scale in (1e-3, 1.0, 50.0)])


def test_a_record_changes_the_triangle_by_1_at_most() -> None:
    """And by exactly 1 if it is an axis, so that no smaller sensitivity holds; without scaling it can be anything."""
    base = rng().normal(size=(30, 4))
    moved = [PCA.accept(np.vstack([base, record])) - PCA.accept(base) for record in records_of_every_kind()]
    lengths = np.linalg.norm(moved, axis=1)
    assert lengths.max() == pytest.approx(1.0, abs=1e-12)
    assert lengths[0] == pytest.approx(1.0, abs=1e-12)
    assert (lengths >= math.sqrt(0.5) - 1e-12).all()
    plain = [np.outer(record, record)[ABOVE] for record in records_of_every_kind()]
    assert np.linalg.norm(plain, axis=1).max() > 1000
    assert np.array_equal(PCA.accept(np.vstack([base, np.zeros(4)])), PCA.accept(base))


def worst(deviations: Floats) -> float:
    """How many standard deviations apart a record can move the noisy triangle."""
    changes = [np.outer(x, x)[ABOVE] for x in normalised(records_of_every_kind())]
    return max(float(np.linalg.norm(change / deviations)) for change in changes)


def test_noise_is_mirrored_and_hides_any_record() -> None:
    drawn = PCA.noisy_covariances(np.zeros(10), rng(), 40_000)
    np.testing.assert_array_equal(drawn, drawn.swapaxes(1, 2))
    triangles = drawn[:, ABOVE[0], ABOVE[1]]
    np.testing.assert_allclose(np.cov(triangles.T), 9.0 * np.eye(10), atol=0.3)
    assert worst(triangles.std(axis=0)) == pytest.approx(1 / 3.0, rel=0.02)
    assert stats.kstest(triangles[:, 1] / 3.0, "norm").pvalue > 0.001
    # A mistake that is easily made: entries off the diagonal stand there twice, so half of the variance would do.
    assert worst(triangles.std(axis=0) / math.sqrt(2)) > 1.3 / 3.0


def test_components_are_the_first_eigenvectors() -> None:
    data = rng().normal(size=(20_000, 4)) * [1.0, 8.0, 3.0, 0.5]
    found = PCA.release(data, rng())
    assert found.shape == (2, 4)
    np.testing.assert_allclose(found, [[0, 1, 0, 0], [0, 0, 1, 0]], atol=0.05)
    np.testing.assert_allclose(found @ found.T, np.eye(2), atol=1e-12)
    np.testing.assert_array_equal(found, PCA.release(data, rng()))
    assert PCA.release(data, rng(), 5).shape == (5, 2, 4)
    drowned = DpPca(2, 1e6).release(data, rng())
    assert np.abs(drowned[0, 1]) < 0.9


def test_a_sample_is_what_is_said() -> None:
    """With q = .25, a quarter of the records; the accountants are told so."""
    sampled = DpPca(1, 3.0, sample_rate=0.25)
    seen: list[float] = []

    class Counting(DpPca):
        def noisy_covariances(self, triangle: Floats, generator: np.random.Generator, size: int) -> Floats:
            seen.append(triangle[0] + triangle[2])
            return super().noisy_covariances(triangle, generator, size)

    Counting(1, 3.0, sample_rate=0.25).release(np.ones((400, 2)), rng(), 30)
    assert np.mean(seen) == pytest.approx(100, abs=7)
    assert np.std(seen) > 4
    assert sampled.event == PoissonSampledDpEvent(0.25, GaussianDpEvent(3.0))
    assert sampled.claim.epsilon_at(1e-5) == pytest.approx(account(DpSgd(0.25, 3.0, 1), 1e-5).epsilon, rel=0.02)
    assert sampled.claim.epsilon_at(1e-5) < 0.5 * PCA.claim.epsilon_at(1e-5)


def test_it_composes_with_a_training() -> None:
    """PCA and then 29 epochs of Abadi et al.: more than either, less than the sum."""
    pca, sgd = DpPca(60, 16.0), DpSgd(0.01, 8.0, 2900)
    assert pca.claim.epsilon_at(1e-5) == pytest.approx(account(Composition.of(pca.event), 1e-5).epsilon)
    for accountant, most in (("moments", 0.5), ("pld", 0.312)):
        parts = [account(one, 1e-5, accountant=accountant).epsilon for one in (Composition.of(pca.event), sgd)]
        both = account(Composition.of(pca.event).plus(sgd.event, sgd.steps), 1e-5, accountant=accountant).epsilon
        assert max(parts) < both < sum(parts)
        assert both == pytest.approx(most, abs=1e-3)


# ------------------------------------------------------------------------------------------------------- under audit
def outcome(name: str) -> Outcome:
    claimed = mechanism_named("gaussian-pca", 1.0, 1e-5).claim
    return audit_mechanism(
        name, epsilon=1.0, delta=1e-5, claim=claimed, runs=20_000, executor=Inline()
    ).verdict.outcome  # fmt: skip


def test_half_of_the_noise_is_found_and_all_of_it_is_not() -> None:
    assert outcome("gaussian-pca-half") is Outcome.VIOLATED
    assert outcome("gaussian-pca") is not Outcome.VIOLATED


def test_records_that_are_not_normalised_are_found() -> None:
    many = [[1.0, 1.0]] * 100
    given = {"neighbours": (many, [*many, [5.0, 0.0]]), "runs": 4000, "executor": Inline()}
    right = DpPca(1, 3.0)
    assert audit_mechanism(right, **given).verdict.outcome is not Outcome.VIOLATED

    def wrong(value: list[list[float]], generator: np.random.Generator, size: int) -> Floats:
        table = np.array(value)
        return right._releases((table.T @ table)[np.triu_indices(2)], generator, size)

    found = audit_mechanism(CallableMechanism(wrong, right.claim), **given)
    assert found.verdict.outcome is Outcome.VIOLATED


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: DpPca(0, 1.0), "components = 0"),
        (lambda: DpPca(1, -1.0), r"noise_multiplier = -1\.0"),
        (lambda: DpPca(1, 1.0, 0.0), r"sample_rate = 0\.0"),
        (lambda: PCA.release(np.ones((5, 1)), rng()), "components = 2: expected at most the 1 features"),
        (lambda: PCA.release([[1.0, math.nan]], rng()), "records = nan: expected finite numbers"),
        (lambda: PCA.release([1.0, 2.0], rng()), "upper triangle of 1, 3, 6"),
        (lambda: DpPca(1, 1.0, 0.5).release([1.0, 2.0, 3.0], rng()), "of which a sample is drawn"),
        (lambda: audit_mechanism(PCA, neighbours=([[1.0, 0.0]] * 3, [[1.0, 0.0]]), runs=100), "distance of neighbours"),
    ],
)
def test_bad_input(make, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make()


def test_the_pages_spec_ends_at_its_budget() -> None:
    text = (Path(__file__).parents[2] / "docs" / "abadi.md").read_text()
    (spec,) = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    assert 0.9 < parse_spec(spec).plan().claim.epsilon_at(1e-5) <= 1.0
