"""Mechanisms under audit: right ones are not accused, broken ones are found, bad input is refused."""

import functools
import math
import random
from pathlib import Path

import numpy as np
import pytest

from epsilometer.adversaries.density_ratio import fit_ratio, last_bit_scores, ratio_scores
from epsilometer.adversaries.distinguisher import Distinguisher, chosen
from epsilometer.adversaries.neighbours import candidates
from epsilometer.auditing import Outcome, audit_mechanism, mechanism_plan, run
from epsilometer.auditing.foreign import NotIndependent
from epsilometer.auditing.mechanism_audit import neighbours_of
from epsilometer.bounds import EProcess
from epsilometer.claims import PointClaim, Relation
from epsilometer.errors import InvalidInput
from epsilometer.evidence import PairedRuns
from epsilometer.mechanisms import MECHANISMS, CallableMechanism, Gaussian, Laplace, Sensitivity, mechanism_named
from epsilometer.runs import MemoryStore
from epsilometer.runs.executors import Inline, Local

BROKEN = [name for name, one in MECHANISMS.items() if one.fault and "gaussian" not in name]
QUICK = ("laplace-half", "laplace-float", "exponential-data-outputs", "sparse-vector-6")
RIGHT = [name for name, one in MECHANISMS.items() if not one.fault]


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.full) for name in BROKEN]
)
def test_broken_mechanisms_are_refuted(name: str) -> None:
    runs = 100_000 if name in QUICK else 400_000
    result = audit_mechanism(name, epsilon=1.0, runs=runs, executor=Inline())
    assert result.verdict.outcome is Outcome.VIOLATED
    assert result.lower_bound.epsilon > 1.2
    assert result.plan.subject.injected() == [MECHANISMS[name].fault]


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in RIGHT if "gaussian" not in name])
def test_right_mechanisms_are_not_and_what_they_leak_is_seen(name: str) -> None:
    """Seed 1 is a false alarm of input-perturbation, of which 160 seeds have 5."""
    result = audit_mechanism(name, epsilon=1.0, runs=50_000, executor=Inline(), seed=2)
    assert result.verdict.outcome is not Outcome.VIOLATED
    assert 0.3 < result.lower_bound.epsilon <= 1.0


def test_the_noise_that_gaussian_releases_allow() -> None:
    """Within 3 % of the true noise, from 40,000 releases of each world; half of it would be seen at once."""
    result = audit_mechanism(Gaussian(1.0), runs=40_000, executor=Inline())
    assert result.noise_limit is not None
    assert 1.0 <= result.noise_limit.noise_multiplier <= 1.03
    assert result.verdict.outcome is Outcome.CONSISTENT
    wrong = CallableMechanism(lambda value, rng, size: sum(value) + rng.normal(0, 0.5, size), Gaussian(1.0).claim)
    found = audit_mechanism(wrong, neighbours=([0.0], [0.0, 1.0]), runs=2000, executor=Inline(), score="value")
    assert found.verdict.outcome is Outcome.VIOLATED


def test_a_trial_is_a_block_of_independent_releases() -> None:
    plan = mechanism_plan("randomized-response", epsilon=1.0, runs=10_000)
    assert (plan.planned_trials, plan.adversary.scores_a_trial(plan.subject)) == (20, 500)
    store = MemoryStore()
    result = run(plan, store=store)
    assert isinstance(result.evidence, PairedRuns)
    assert result.evidence.sizes == {"out": 10_000, "in": 10_000}
    again = run(plan, executor=Local(2))
    np.testing.assert_array_equal(again.evidence.as_pairs().out_scores, result.evidence.out_scores)
    other = run(mechanism_plan("randomized-response", epsilon=1.0, runs=10_000, seed=1))
    assert not np.array_equal(other.evidence.as_pairs().out_scores, result.evidence.out_scores)


def test_early_stopping() -> None:
    result = audit_mechanism("laplace-half", epsilon=1.0, runs=200_000, method=EProcess(), executor=Inline())
    assert result.verdict.outcome is Outcome.VIOLATED
    assert result.stopped_early
    assert result.evidence.sizes["in"] < 100_000


def test_a_curve_can_be_claimed() -> None:
    result = audit_mechanism(Laplace(1.0), runs=10_000, executor=Inline())
    assert result.verdict.outcome is Outcome.CONSISTENT
    wrong = audit_mechanism(mechanism_named("laplace-half", 1.0), runs=4000, executor=Inline())
    assert wrong.verdict.outcome is Outcome.VIOLATED
    assert wrong.test.claim.statement == "its trade-off curve"


# ------------------------------------------------------------------------------------------------- what is searched
@pytest.mark.parametrize("name", MECHANISMS)
def test_all_pairs_that_are_tried_are_neighbours(name: str) -> None:
    mechanism = mechanism_named(name, 0.5, 1e-5 if "gaussian" in name else 0.0, 2.0)
    pairs = candidates(mechanism, MECHANISMS[name].entries, 0.5, np.random.default_rng(0))
    assert pairs
    for one, other in pairs:
        values = [np.atleast_1d(mechanism.accept(value)) for value in (one, other)]
        mechanism.sensitivity.require_neighbours(*values)
        low, high = mechanism.domain.low, mechanism.domain.high
        assert all(low <= number <= high for value in values for number in value)


def test_the_learned_ratio_is_that_of_the_densities() -> None:
    """Three numbers with Laplace noise, of which two move: the best score is known."""
    rng = np.random.default_rng(0)
    moved = np.array([1.0, 0.0, -1.0])
    outs, ins = (Laplace(1.0).release(value, rng, 40_000) for value in (0.0 * moved, moved))
    learned = fit_ratio(outs[:30_000], ins[:30_000])
    fresh = np.vstack([outs[30_000:], ins[30_000:]])
    best = (np.abs(fresh) - np.abs(fresh - moved)).sum(axis=1)
    assert np.corrcoef(best, ratio_scores(fresh, learned))[0, 1] > 0.99
    assert abs(np.corrcoef(best, last_bit_scores(fresh, learned))[0, 1]) < 0.2


def test_dependent_entries_are_learned_together() -> None:
    """Two fair coins that agree in one world and not in the other: no entry tells anything by itself."""
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, (2, 4000)).astype(float)
    outs, ins = np.column_stack([coins[0], coins[0]]), np.column_stack([coins[1], 1 - coins[1]])
    learned = fit_ratio(outs, ins)
    assert ratio_scores(ins, learned).min() > ratio_scores(outs, learned).max()


def test_neighbours_and_score_are_kept_with_the_run() -> None:
    plan = mechanism_plan("laplace-float", epsilon=1.0, runs=10_000)
    assert chosen(plan.prepare().arrays) == (0.0, 1.0, "last-bits")
    given = mechanism_plan("laplace", epsilon=1.0, neighbours=([1.0, 2.0], [1.5, 2.5]), runs=10_000)
    assert chosen(given.prepare().arrays)[:2] == ([1.0, 2.0], [1.5, 2.5])


# ------------------------------------------------------------------------------------------------- people's own
def noisy_sum(value: list[float], rng: np.random.Generator, size: int) -> np.ndarray:
    return np.rint(1024 * (np.sum(value) + rng.laplace(0, 1, size))) / 1024


def too_little(value: list[float], rng: np.random.Generator) -> float:
    return round(sum(value) + rng.laplace(0, 0.3), 3)


def measurement(value: list[float]) -> int:
    return int(sum(value) + round(random.expovariate(1.0) - random.expovariate(1.0)))


def always_the_same(value: list[float], rng: np.random.Generator, size: int) -> np.ndarray:
    return np.sum(value) + np.random.default_rng(0).laplace(0, 1, size)


def raises(value: list[float], rng: np.random.Generator) -> float:
    raise RuntimeError("no budget left")


DATA = {"neighbours": ([1.0, 1.0, 1.0], [1.0, 1.0]), "runs": 4000, "epsilon": 1.0}


def test_functions_of_ones_own() -> None:
    """As they are, in this process; the last by name, in processes of its own."""
    right = audit_mechanism(functools.partial(noisy_sum), **DATA)
    assert right.verdict.outcome is Outcome.CONSISTENT
    no_generator = audit_mechanism(functools.partial(measurement), **DATA)
    assert no_generator.verdict.outcome is not Outcome.VIOLATED
    assert audit_mechanism(f"{Path(__file__)}:too_little", **DATA).verdict.outcome is Outcome.VIOLATED
    own = CallableMechanism(lambda value: measurement(value) * 1.0, PointClaim(0.1))  # far too little noise for that
    assert audit_mechanism(own, neighbours=DATA["neighbours"], runs=4000).verdict.outcome is Outcome.VIOLATED


def test_functions_that_play_no_fair_game_are_refused() -> None:
    with pytest.raises(NotIndependent, match="exactly the same numbers"):
        audit_mechanism(functools.partial(always_the_same), **DATA)
    with pytest.raises(Exception, match="raised RuntimeError: no budget left"):
        audit_mechanism(functools.partial(raises), **DATA)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0.0}, r"epsilon = 0\.0"),
        ({"epsilon": math.nan}, "epsilon = nan"),
        ({}, "epsilon is missing"),
        ({"epsilon": 1.0, "sensitivity": 0.0}, r"sensitivity = 0\.0"),
        ({"epsilon": 1.0, "sensitivity": -1.0}, r"sensitivity = -1\.0"),
        ({"epsilon": 1.0, "delta": 1.0}, r"delta = 1\.0"),
        ({"epsilon": 1.0, "runs": 10}, "runs = 10"),
        ({"epsilon": 1.0, "score": "best"}, "score = 'best'"),
        ({"epsilon": 1.0, "neighbours": (0.0, 2.0)}, "distance of neighbours = 2.0"),
        ({"epsilon": 1.0, "neighbours": (0.0, 0.0)}, "two equal values"),
        ({"epsilon": 1.0, "neighbours": (0.0, math.nan)}, "value = nan"),
    ],
)
def test_bad_input(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        mechanism_plan("laplace", **settings)  # type: ignore[arg-type]


def test_data_sets_must_be_neighbours() -> None:
    with pytest.raises(InvalidInput, match=r"2 records gone and 1 new': expected one to be added or removed"):
        mechanism_plan(noisy_sum, epsilon=1.0, neighbours=([1, 2, 3], [1, 4]))
    replaced = PointClaim(1.0, 0.0, Relation.REPLACE)
    mechanism_plan(noisy_sum, claim=replaced, neighbours=([1, 2], [4, 1]))
    with pytest.raises(InvalidInput, match="0 records gone and 1 new': expected one to be replaced"):
        mechanism_plan(noisy_sum, claim=replaced, neighbours=([1], [1, 2]))
    with pytest.raises(InvalidInput, match="two lists of records"):
        mechanism_plan(noisy_sum, epsilon=1.0, neighbours=(1.0, 2.0))
    with pytest.raises(InvalidInput, match="give two neighbours, or a sensitivity"):
        mechanism_plan(noisy_sum, epsilon=1.0).prepare()
    mechanism_plan(noisy_sum, epsilon=1.0, sensitivity=Sensitivity(1.0, "linf"), entries=3, runs=1000).prepare()


def test_values_are_read_from_files(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[1, 2]")
    assert neighbours_of(str(tmp_path / "a.json"), "[1]") == ([1, 2], [1])
    with pytest.raises(InvalidInput, match="a value in JSON"):
        neighbours_of("x", "1")
    with pytest.raises(InvalidInput, match="No such file"):
        neighbours_of(str(tmp_path / "b.json"), "1")


def test_the_distinguisher_is_for_mechanisms() -> None:
    from epsilometer.auditing import Spec

    with pytest.raises(InvalidInput, match="it needs releases of any value"):
        Distinguisher().scores_a_trial(Spec().plan().subject)
