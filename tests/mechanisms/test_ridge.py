"""How far one record moves the optimum, and what the noise keeps."""

import numpy as np
import pytest

from epsilometer.claims import GaussianClaim
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms import PrivateRidge, example_records, norm_limit, paper_sensitivity, proved_sensitivity


def ridge(regularisation: float = 1.0, **settings: object) -> PrivateRidge:
    return PrivateRidge(**{"regularisation": regularisation, "epsilon": 1.0, "delta": 1e-5, **settings})


def moved(regularisation: float, x, y, point, label) -> float:
    """The distance between the optima without and with a record, by two real fits."""
    mechanism = ridge(regularisation)
    more = mechanism.fit(np.vstack([x, point]), np.append(y, label))
    return float(np.linalg.norm(more - mechanism.fit(x, y)))


def stretched(records: int, square: float) -> tuple[np.ndarray, np.ndarray]:
    """The data that pull hardest: all along one axis, with that squared singular value, and labels of -1."""
    x = np.zeros((records, 2))
    x[:, 0] = np.sqrt(square / records)
    return x, -np.ones(records)


def neighbours(regularisation: float, records: int, rng: np.random.Generator):
    """Random data with a random record, and data of the worst kind with a record in the worst direction."""
    features = int(rng.integers(1, 5))
    x, y = example_records(records, features, seed=int(rng.integers(2**31)))
    point = rng.standard_normal(features)
    yield x, np.sign(y), point / np.linalg.norm(point), rng.choice([-1.0, 1.0])
    angle = rng.uniform(0, np.pi / 2)
    square = min(regularisation * np.exp(rng.normal()), records)
    yield *stretched(records, square), [np.cos(angle), np.sin(angle)], 1.0


@pytest.mark.parametrize("regularisation", [0.3, 3.0, 30.0])
def test_no_neighbours_are_further_apart_than_proved(regularisation: float) -> None:
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(300):
        records = int(rng.integers(1, 200))
        for pair in neighbours(regularisation, records, rng):
            distance = moved(regularisation, *pair)
            assert distance <= proved_sensitivity(regularisation, records + 1)
            if records <= 4 * regularisation:
                largest = max(largest, distance * regularisation / 2)
                assert distance < paper_sensitivity(regularisation)
    assert largest > 0.15  # the search is not among harmless pairs only


@pytest.mark.parametrize("regularisation", [0.01, 1.0, 7.3, 1000.0])
def test_the_proved_sensitivity_is_below_the_papers_for_up_to_4_lambda_records(regularisation: float) -> None:
    for records in range(1, int(4 * regularisation) + 2):
        assert proved_sensitivity(regularisation, records) < paper_sensitivity(regularisation)


def test_the_papers_sensitivity_is_false_for_many_records() -> None:
    x, y = stretched(1600, 40.0)
    distance = moved(100.0, x, y, [np.cos(0.5), np.sin(0.5)], 1.0)
    assert paper_sensitivity(100.0) < distance < proved_sensitivity(100.0, 1601)


def test_the_papers_sensitivity_is_false_under_replace_with_few_records() -> None:
    """λ = 100, 51 records of which one is replaced."""
    rng, mechanism, largest = np.random.default_rng(0), ridge(100.0), 0.0
    x, y = stretched(50, 50.0)
    for angles in rng.uniform(0, 2 * np.pi, size=(2000, 2)):
        worlds = [np.vstack([x, [np.cos(a), np.sin(a)]]) for a in angles]
        first, second = (mechanism.fit(world, np.append(y, 1.0)) for world in worlds)
        largest = max(largest, float(np.linalg.norm(first - second)))
    assert 2 / 100 < largest <= (2 + norm_limit(100.0, 51)) / 100


def test_the_limit_on_the_norm_is_attained() -> None:
    for records, square in ((400, 100.0), (25, 25.0)):  # s² = λ, or all that unit rows allow
        attained = np.linalg.norm(ridge(100.0).fit(*stretched(records, square)))
        assert attained == pytest.approx(norm_limit(100.0, records), rel=1e-12)


def test_classic_noise_is_the_papers() -> None:
    mechanism = ridge(5.0, epsilon=0.5, delta=1e-6)
    assert mechanism.noise_std**2 == pytest.approx(2 * np.log(1.25e6) * (2 / 5) ** 2 / 0.5**2, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 30.0])
def test_analytic_noise_keeps_the_point_exactly(epsilon: float) -> None:
    analytic = ridge(epsilon=epsilon, calibration="analytic")
    assert analytic.claim.epsilon_at(1e-5) == pytest.approx(epsilon, rel=1e-9)


def test_classic_noise_keeps_small_epsilons_and_not_large_ones() -> None:
    kept = {epsilon: ridge(epsilon=epsilon).claim.epsilon_at(1e-5) <= epsilon for epsilon in (0.5, 1.0, 8.0, 10.0)}
    assert kept == {0.5: True, 1.0: True, 8.0: True, 10.0: False}


def test_the_optimum_has_no_slope() -> None:
    x, y = example_records(50, 4, seed=1)
    w = ridge(3.0).fit(x, y)
    assert np.abs(x.T @ (x @ w - y) + 3.0 * w).max() < 1e-13


def test_releases_are_the_optimum_and_noise() -> None:
    x, y = example_records(50, 3)
    mechanism = ridge(100.0)
    models = mechanism.releases(x, y, 20_000, np.random.default_rng(0))
    error = mechanism.noise_std / np.sqrt(20_000)
    assert np.abs(models.mean(axis=0) - mechanism.fit(x, y)).max() < 4 * error
    assert models.std(axis=0) == pytest.approx(np.full(3, mechanism.noise_std), rel=0.03)
    one = mechanism.release(x, y, np.random.default_rng(0))
    assert one.tolist() == models[0].tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"regularisation": 0.0}, "regularisation = 0.0: expected a number in [1e-09, 1e+12]; without it"),
        ({"regularisation": -1.0}, "regularisation = -1.0"),
        ({"epsilon": 0.0}, "epsilon = 0.0"),
        ({"delta": 0.0}, "delta = 0.0: expected a number in (0, 1); Gaussian noise has no ε at δ = 0"),
        ({"records": 0}, "records = 0"),
        ({"calibration": "analitic"}, "did you mean 'analytic'?"),
    ],
)
def test_settings_that_promise_nothing_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ridge(**settings)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (
            [[0.6, 0.6], [0.9, 0.9]],
            [0, 1],
            "x = '1.27279 in record 1': expected rows of norm at most 1; clip each to 1",
        ),
        ([[0.5]], [-2.0], "y = '2 in record 0': expected numbers of size at most 1"),
        ([[np.nan]], [0.0], "expected finite numbers"),
        ([0.5, 0.5], [0.0, 1.0], "expected a table"),
        ([[0.5]], [0.0, 1.0], "one number for each of 1 rows"),
        ([["a"]], [0.0], "expected numbers"),
    ],
)
def test_records_out_of_the_domain_are_refused(x, y, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ridge().fit(x, y)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_more_records_than_the_public_limit_are_refused() -> None:
    x, y = example_records(11, 2)
    ridge(records=11).fit(x, y)
    with pytest.raises(InvalidInput, match="at most records = 10"):
        ridge(records=10).fit(x, y)


def test_the_claim_is_the_curve_of_the_noise() -> None:
    mechanism = ridge(10.0, records=30)
    assert mechanism.claim == GaussianClaim(mechanism.sensitivity / mechanism.noise_std)
