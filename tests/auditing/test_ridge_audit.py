"""What the audit measures is what Appendix B derives, with s_d² where a version of it has σ_d."""

import json
import math

import numpy as np
import pytest

from epsilometer.auditing import audit_ridge
from epsilometer.errors import InvalidInput
from epsilometer.json_values import json_values
from epsilometer.mechanisms import PrivateRidge, craft_poison, example_records, midpoint_epsilon

DELTA = 1e-5
SETTINGS = [(0.5, 1000.0), (1.0, 100.0), (2.0, 400.0), (4.0, 50.0), (8.0, 200.0)]
X, Y = example_records(records=200, features=5)


def ridge(epsilon: float = 1.0, regularisation: float = 100.0, **settings: object) -> PrivateRidge:
    return PrivateRidge(**{"regularisation": regularisation, "epsilon": epsilon, "delta": DELTA, **settings})


def rank_deficient() -> tuple[np.ndarray, np.ndarray]:
    x = X.copy()
    x[:, 2] = 0.5 * x[:, 1]
    return x / np.linalg.norm(x, axis=1).max(), Y


@pytest.mark.parametrize(
    ("x", "y"),
    [(X, Y), (X[:, :1], Y), (X[:3], Y[:3]), (X[:1], Y[:1]), rank_deficient(), (np.zeros((4, 2)), np.ones(4))],
    ids=["full rank", "one feature", "fewer records than features", "one record", "rank-deficient", "all zero"],
)
@pytest.mark.parametrize("regularisation", [0.1, 10.0])
def test_the_poison_moves_the_optimum_as_derived(x, y, regularisation: float) -> None:
    mechanism = ridge(regularisation=regularisation)
    poison = craft_poison(mechanism, x, y)
    before, after = mechanism.fit(x, y), mechanism.fit(*poison.added_to(x, y))
    assert after - before == pytest.approx(poison.separation * poison.point, abs=1e-12)
    assert poison.point @ (before + after) / 2 == pytest.approx(poison.midpoint, abs=1e-12)
    assert poison.point @ before <= 1e-15
    singular = np.linalg.svd(x, compute_uv=False)
    smallest = singular.min() if len(x) >= x.shape[1] else 0.0
    assert poison.singular_value**2 == pytest.approx(smallest**2, abs=1e-12)


@pytest.mark.parametrize(("seed", "setting"), list(enumerate(SETTINGS)), ids=str)
def test_simulation_agrees_with_the_closed_form(seed: int, setting: tuple[float, float]) -> None:
    found = audit_ridge(ridge(*setting), X, Y, trials=100_000, seed=seed)
    low, high = found.interval
    assert 0 < low <= found.closed_form <= high < 1.25 * low + 0.05
    assert found.agrees
    assert 0 < found.lower_bound.epsilon <= found.reachable < found.closed_form
    assert found.rank_bound.epsilon <= found.theory < found.claimed.epsilon
    assert found.paper_floor <= found.paper_form <= found.closed_form


def test_simulation_disagrees_with_a_wrong_closed_form() -> None:
    """σ_d in place of s_d² is seen, and so is the whole separation in place of half of it."""
    epsilon, regularisation = SETTINGS[3]
    found = audit_ridge(ridge(epsilon, regularisation), X, Y, trials=100_000, seed=3)
    reach, noise = found.separation / 2, found.mechanism.noise_std
    right = regularisation + found.singular_value**2 + 1
    wrong = {"σ_d": reach * right / (regularisation + found.singular_value + 1), "2c": 2 * reach}
    for name, distance in wrong.items():
        assert not found.interval[0] <= midpoint_epsilon(distance, noise) <= found.interval[1], name


def test_the_papers_last_inequality_is_a_share_of_epsilon() -> None:
    epsilon, regularisation = 2.0, 100.0
    poison = craft_poison(ridge(epsilon, regularisation), X, Y)
    stiffness = regularisation + poison.singular_value**2 + 1
    shrink = math.exp(-((0.5 / stiffness / poison.mechanism.noise_std) ** 2) / 2)
    share = regularisation / stiffness / (2 * math.sqrt(math.pi * math.log(1.25 / DELTA)))
    assert poison.paper_floor == pytest.approx(epsilon * share * shrink, rel=1e-12)


@pytest.mark.parametrize("ratio", [0.0, 1e-6, 0.3, 2.0, 30.0, 50.0])
def test_the_midpoint_formula_in_any_range(ratio: float) -> None:
    found = midpoint_epsilon(ratio, 1.0)
    assert math.isfinite(found)
    inside = math.erf(ratio / math.sqrt(2)) / 2
    if inside < 0.49:
        assert found == pytest.approx(math.log((0.5 + inside) / (0.5 - inside)), abs=1e-12)
    assert midpoint_epsilon(ratio, 1.0, DELTA) <= found


def test_the_proved_mechanism_is_audited_alike() -> None:
    mechanism = ridge(4.0, 50.0, records=201, calibration="analytic")
    found = audit_ridge(mechanism, X, Y, trials=50_000)
    assert found.agrees
    assert found.theory <= found.claimed.epsilon == pytest.approx(mechanism.claim.epsilon_at(DELTA))
    with pytest.raises(InvalidInput, match="'201 rows': expected at most records = 200"):
        audit_ridge(ridge(records=200), X, Y, trials=10)


def test_an_audit_refutes_the_papers_claim_where_its_sensitivity_is_false() -> None:
    """400 small records of one feature and λ = 1: the poison moves the optimum by 4.1, not by 2/λ = 2 at most."""
    x, y = np.full((400, 1), 0.0274), -np.ones(400)
    found = audit_ridge(ridge(1.0, 1.0), x, y, trials=100_000)
    assert found.separation > 2 * found.mechanism.sensitivity
    assert found.rank_bound.epsilon > 1.1 > found.claimed.epsilon
    proved = audit_ridge(ridge(1.0, 1.0, records=401), x, y, trials=100_000)
    assert proved.agrees
    assert proved.theory < proved.claimed.epsilon


def test_an_audit_is_its_seed() -> None:
    first, again, other = (audit_ridge(ridge(), X, Y, trials=1000, seed=seed).counts for seed in (1, 1, 2))
    assert first == again != other


def test_two_trials_prove_nothing() -> None:
    found = audit_ridge(ridge(), X, Y, trials=2)
    assert found.lower_bound.epsilon == 0
    assert found.interval[0] == 0
    assert found.agrees


def test_the_result_is_plain_data() -> None:
    found = audit_ridge(ridge(), X, Y, trials=1000).to_dict()
    assert json.loads(json.dumps(json_values(found)))["at_delta"]["claimed"]["epsilon"] == 1.0


@pytest.mark.parametrize("setting", [{"trials": 1}, {"seed": -1}, {"confidence": 1.0}, {"interval_confidence": 0.0}])
def test_audits_of_nothing_are_refused(setting: dict[str, float]) -> None:
    with pytest.raises(
        InvalidInput, match="confidence" if "confidence" in next(iter(setting)) else next(iter(setting))
    ):
        audit_ridge(ridge(), X, Y, **{"trials": 10, **setting})
