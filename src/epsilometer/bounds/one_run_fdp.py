"""Tests of whole curves, and lower bounds on ε, from one training (Mahloujifar, Melis & Chaudhuri 2024)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from scipy import special

from epsilometer import validate
from epsilometer.bounds.one_run import Plan, check_counts, guessed, strategy_name
from epsilometer.bounds.result import ClaimTest, Guesses, Kind, LowerBound
from epsilometer.claims import Claim, CurveClaim, GaussianClaim, PointClaim, require_claim
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.evidence import OneRun
from epsilometer.neighbours import require_same_neighbours

Family = Callable[[float], Claim]  # a larger parameter promises less

FAMILIES = ("gaussian", "point")
LEAST, MOST = 2.0**-13, 2.0**13  # parameters searched; what refutes none of them proves nothing


def one_run_fdp(
    evidence: OneRun,
    *,
    delta: float,
    confidence: float = 0.95,
    guesses: Plan = None,
    family: str | Family = "gaussian",
) -> LowerBound:
    """The ε at δ of the weakest claim of a family that one run refutes (Algorithm 3).

    `family` gives the claim of a parameter: "gaussian" (default) is μ-Gaussian DP, "point" is (ε, δ) itself, and a
    function may give any other, in which a larger parameter must promise less. A bound by a family rests on the
    training belonging to it (kind `family`), except for "point": every training belongs to that one, so its bound
    is certified. It often exceeds Theorem 5.2's (`one_run`), whose price for δ grows with the number of canaries.
    `guesses` is as in `one_run`.

    >>> run = OneRun(scores=np.arange(1000.0), member=np.arange(1000) >= 500)
    >>> print(one_run_fdp(run, delta=1e-5, guesses=100))
    ε ≥ 5.549 at δ = 1e-05 (add-remove), family, 0.95 confidence, one-run f-DP (gaussian, fixed)
    >>> print(one_run_fdp(run, delta=1e-5, guesses=100, family="point"))
    ε ≥ 3.492 at δ = 1e-05 (add-remove), certified, 0.95 confidence, one-run f-DP (point, fixed)
    """
    alpha = 1.0 - validate.confidence(confidence)
    name, claims = _family(family, delta)
    found = guessed("one_run_fdp", evidence, guesses)
    size = evidence.group_size
    values = [_epsilon(claims, g, delta, share * alpha, size) for g, share in found]
    best = int(np.argmax(values))
    return LowerBound(
        epsilon=values[best],
        delta=delta,
        confidence=confidence,
        relation=evidence.relation,
        unit=evidence.unit,
        method=f"one-run f-DP ({name}, {strategy_name(guesses)})",
        kind=Kind.CERTIFIED if family == "point" else Kind.FAMILY,
        proof=found[best][0],
        group_size=size,
    )


def refute_one_run(evidence: OneRun, claim: Claim, *, confidence: float = 0.95, guesses: Plan = None) -> ClaimTest:
    """Test a claim (a point or a whole curve) with one run, assuming nothing but fair, independent coins.

    >>> run = OneRun(scores=np.arange(1000.0), member=np.arange(1000) >= 500)
    >>> refute_one_run(run, GaussianClaim(1.0), guesses=100).refuted
    True
    """
    alpha = 1.0 - validate.confidence(confidence)
    require_claim(claim)
    found = guessed("refute_one_run", evidence, guesses)
    require_same_neighbours("the claim", claim.neighbours, "the evidence", evidence.neighbours)
    needed = [_needed_probability(claim, g, share * alpha, evidence.group_size) for g, share in found]
    best = int(np.argmax(needed))
    return ClaimTest(
        refuted=needed[best] > 1.0,
        claim=claim,
        confidence=confidence,
        method=f"one-run f-DP ({strategy_name(guesses)})",
        kind=Kind.CERTIFIED,
        proof=found[best][0],
    )


def one_run_fdp_epsilon(
    canaries: int,
    guesses: int,
    correct: int,
    delta: float,
    alpha: float = 0.05,
    family: str | Family = "gaussian",
    group_size: int = 1,
) -> float:
    """The ε at δ of the weakest claim of the family that this many right guesses refute at level `alpha`.

    >>> round(one_run_fdp_epsilon(canaries=100_000, guesses=1500, correct=1429, delta=1e-5), 3)
    3.299
    """
    counts = check_counts(canaries, guesses, correct)
    validate.real("alpha", alpha, above=0, below=1, remedy="0.05 means one false alarm in 20")
    _, claims = _family(family, delta)
    return _epsilon(claims, counts, delta, alpha, validate.group_size(group_size))


def _family(family: str | Family, delta: float) -> tuple[str, Family]:
    """The name of a family and its claims."""
    validate.delta(delta)
    if callable(family):
        name, claims = "a given family", family
    elif family == "gaussian":
        name, claims = family, GaussianClaim
    elif family == "point":
        name, claims = family, functools.partial(PointClaim, delta=delta)
    else:
        raise unknown_name("family", family, FAMILIES)
    if math.isinf(claims(1.0).epsilon_at(delta)):
        raise InvalidInput("delta", delta, "a δ at which the family has a finite ε", "a common choice is 1e-5")
    return name, claims


def _epsilon(claims: Family, counts: Guesses, delta: float, alpha: float, size: int) -> float:
    def refuted(parameter: float) -> bool:
        return _needed_probability(claims(parameter), counts, alpha, size) > 1.0

    low, high = LEAST, 1.0
    if not refuted(low):
        return 0.0
    while refuted(high):
        low, high = high, high * 2
        if high > MOST:
            expected = "claims that promise less and less as the parameter grows"
            raise InvalidInput("family", f"refuted up to the parameter {low:g}", expected)
    while high - low > 1e-8 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return claims(low).epsilon_at(delta)


def _needed_probability(claim: Claim, counts: Guesses, alpha: float, size: int) -> float:
    """The total probability that the claim needs if so many right guesses have probability `alpha`; over 1 refutes it.

    Let n of m canaries be guessed and p_l be the probability that l guesses are right. Take a random canary, and the
    event that it is guessed right together with at least i others: its probability is R = Σ_{l>i} (l/m)·p_l. After
    turning its coin the same output has it wrong, with at least i others right: H = Σ_{l≥i} ((n−l)/m)·p_l. The claim
    says R ≤ g(H), g = `max_tpr` (averages over canaries and coins are allowed, since g is concave; the coins are fair,
    and g holds in either direction). So H ≥ g⁻¹(R) for each i: what lies above i forces p_i to be large enough.
    Starting with all of α at l = `correct`, which demands least, p_i is made as small as it can be, downwards to 0.
    """
    if claim.is_vacuous:
        return alpha
    m, n, c = counts.canaries, counts.guesses, counts.correct
    least_fpr = _least_fpr(claim)
    everything = n / m
    right, wrong = alpha * c / m, alpha * (n - c) / m  # R and H with all l ≥ i; they sum to (n/m)·P[l ≥ i]
    for i in range(c - 1, -1, -1):
        forced = right
        for _ in range(size):  # a group of records: the claim acts once for each of them
            forced = least_fpr(forced)
        if forced <= wrong:  # nothing is demanded of p_i, nor of any below
            break
        right += i / (n - i) * (forced - wrong)
        wrong = forced
        if right + wrong > everything:
            break
    return (right + wrong) / everything


@functools.singledispatch
def _least_fpr(claim: Claim) -> Callable[[float], float]:
    """g⁻¹: the least false-positive rate at which the claim allows a true-positive rate.

    A claim holds for the worlds in either order, so its curve is its own mirror image: g⁻¹(x) = 1 − g(1 − x). What
    follows says the same in plain floats, because it is called up to a million times for one bound.
    """
    return lambda tpr: 1.0 - float(claim.max_tpr(1.0 - tpr))


@_least_fpr.register
def _(claim: GaussianClaim) -> Callable[[float], float]:
    ndtr, ndtri, mu = special.ndtr, special.ndtri, claim.mu
    return lambda tpr: float(ndtr(ndtri(tpr) - mu))


@_least_fpr.register
def _(claim: PointClaim) -> Callable[[float], float]:
    delta, grow = claim.delta, math.exp(min(claim.epsilon, 700.0))
    return lambda tpr: max(0.0, (tpr - delta) / grow, 1.0 - delta - grow * (1.0 - tpr))


@_least_fpr.register
def _(claim: CurveClaim) -> Callable[[float], float]:
    finite = np.isfinite(claim.epsilons)  # the others promise nothing
    delta, grow = np.asarray(claim.deltas)[finite], np.exp(np.minimum(claim.epsilons, 700.0))[finite]
    rest = 1.0 - delta

    def least(tpr: float) -> float:
        return max(0.0, float(((tpr - delta) / grow).max()), float((rest - grow * (1.0 - tpr)).max()))

    return least
