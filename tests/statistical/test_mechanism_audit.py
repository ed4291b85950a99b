"""Audits of mechanisms whose ε is known: how often a bound exceeds it, and how near it comes."""

import numpy as np
import pytest
from scipy import stats

from epsilometer.auditing import mechanism_plan, run
from epsilometer.auditing.plan import Plan
from epsilometer.bounds import ClopperPearson, exact_rank
from epsilometer.bounds.thresholds import BestOnSame
from epsilometer.evidence import PairedRuns
from epsilometer.mechanisms import MECHANISMS
from epsilometer.runs.executors import Inline

ALPHA = 0.05
KNOWN = ("laplace", "randomized-response", "exponential")


def played(plan: Plan) -> PairedRuns:
    prepared = plan.prepare()
    trials = [(world, index) for index in range(plan.planned_trials) for world in (0, 1)]
    evidence = plan.evidence(dict(zip(trials, plan.play(prepared, trials), strict=True)), plan.planned_trials)
    assert isinstance(evidence, PairedRuns)
    return evidence


def share_beyond(name: str, epsilon: float, repetitions: int, runs: int = 2000) -> tuple[float, float]:
    """How often the bound exceeds ε, and how often the best threshold on the same scores does."""
    beyond = np.zeros(2)
    for seed in range(repetitions):
        seen = played(mechanism_plan(name, epsilon=epsilon, runs=runs, seed=seed))
        naive = ClopperPearson(BestOnSame()).bound(seen, confidence=0.5).epsilon  # about the point estimate
        beyond += [exact_rank(seen).epsilon > epsilon, naive > epsilon]
    share, naive_share = beyond / repetitions
    return float(share), float(naive_share)


def most(repetitions: int) -> float:
    """A share that an honest test exceeds once in a thousand."""
    return float(stats.binom.ppf(0.999, repetitions, ALPHA)) / repetitions


def test_a_slice_of_the_coverage() -> None:
    share, naive = share_beyond("randomized-response", 1.0, 60, 6000)  # so many that two orders of ties do
    assert share <= most(60)
    assert naive > most(60)


@pytest.mark.full
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("name", KNOWN)
def test_bounds_exceed_epsilon_in_at_most_alpha_of_400(name: str, epsilon: float) -> None:
    assert share_beyond(name, epsilon, 400)[0] <= most(400)


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name, one in MECHANISMS.items() if not one.fault and "gaussian" not in name])
def test_right_mechanisms_are_accused_in_at_most_alpha_of_200(name: str) -> None:
    assert share_beyond(name, 1.0, 200, 1000)[0] <= most(200)


@pytest.mark.full
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("name", KNOWN)
def test_a_million_runs_prove_nine_tenths(name: str, epsilon: float) -> None:
    """The exponential mechanism at ε = .1 cannot: log-probabilities move within a range of ε, so an output with ratio
    e^{ε(1 − p)} has probability p, and no test of a million runs shows more than .085 of it. Nor can learning runs tell
    there which neighbours are best: seeds differ much."""
    result = run(mechanism_plan(name, epsilon=epsilon), executor=Inline())
    reachable = 0.4 if (name, epsilon) == ("exponential", 0.1) else 0.9
    assert result.lower_bound.epsilon >= reachable * epsilon
    assert result.lower_bound.epsilon <= 1.01 * epsilon
