"""Planning: what a number of trials can prove, and how many trials a proof needs."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from epsilometer import checks
from epsilometer.bounds.clopper_pearson import clopper_pearson
from epsilometer.bounds.curve import refute_curve
from epsilometer.bounds.rates import upper_limit
from epsilometer.bounds.thresholds import ThresholdStrategy
from epsilometer.claims import Claim, Floats, require_same_relation
from epsilometer.evidence import Counts, PairedRuns

MOST_TRIALS = 10**8


def eps_opt(trials: int, confidence: float = 0.95, delta: float = 0.0, k: int = 1) -> float:
    """The largest ε that `trials` perfect trials a world can prove, for worlds that differ in k records.

    Jagielski et al. (2020) call it ε_OPT; no attack can show more with as many trials.

    >>> round(eps_opt(500, confidence=0.99), 3)
    4.542
    """
    checks.whole("trials", trials, least=1)
    perfect = Counts(tp=trials, fp=0, fn=0, tn=trials, group_size=k)
    return clopper_pearson(perfect, delta=delta, confidence=confidence).epsilon


def refutation_power(
    claim: Claim,
    truth: Claim,
    trials: int,
    *,
    confidence: float = 0.95,
    candidates: int = 1,
    group_size: int = 1,
) -> float:
    """The probability that `trials` trials a world refute `claim` when the attacker attains the curve `truth`.

    For Clopper–Pearson limits at a fixed threshold, the best of a grid; with `candidates` thresholds under a
    union bound it is a lower limit, namely the power of the best of them. `group_size` is the number of records in
    which the worlds differ; `truth` is what the attacker attains between these worlds.

    >>> from epsilometer.claims import GaussianClaim
    >>> round(refutation_power(GaussianClaim(0.5), GaussianClaim(1.0), trials=250), 2)
    0.93
    """
    require_same_relation("the claim", claim.relation, "the truth", truth.relation)
    checks.whole("trials", trials, least=1)
    checks.whole("candidates", candidates, least=1)
    alpha = (1.0 - checks.confidence(confidence)) / candidates
    rates = np.unique(np.concatenate([_RATES, _corner(truth), _corner(claim)]))
    tprs = truth.max_tpr(rates)
    best = 0.0
    for i in _promising(claim, rates, tprs, trials, alpha, group_size):
        best = max(best, _power_at(claim, float(rates[i]), float(tprs[i]), trials, alpha, group_size))
    return best


def trials_to_refute(
    claim: Claim,
    truth: Claim,
    *,
    confidence: float = 0.95,
    power: float = 0.95,
    candidates: int = 1,
    group_size: int = 1,
) -> int | None:
    """The trials a world with which `truth` refutes `claim` with probability `power`; None if over 10^8.

    `truth` is the curve that the attacker attains: `PointClaim(ε', δ)` for a perfect attacker on a training
    that leaks exactly (ε', δ), `PointClaim(inf)` for one that is always right, `GaussianClaim(μ)` for one
    who sees Gaussian scores.

    >>> from epsilometer.claims import PointClaim
    >>> trials_to_refute(PointClaim(4.0, 1e-5), PointClaim(math.inf, 1e-5))
    204
    """
    checks.real("power", power, above=0, below=1)

    def enough(trials: int) -> bool:
        reached = refutation_power(
            claim, truth, trials, confidence=confidence, candidates=candidates, group_size=group_size
        )
        return reached >= power

    low, high = 0, 16
    while not enough(high):
        if high == MOST_TRIALS:
            return None
        low, high = high, min(2 * high, MOST_TRIALS)
    while high - low > max(1, low // 500):  # power is not quite monotone: a finer answer means nothing
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def simulated_power(
    claim: Claim,
    mu: float,
    *,
    out_trials: int,
    in_trials: int,
    confidence: float = 0.95,
    thresholds: ThresholdStrategy | None = None,
    group_size: int = 1,
    repetitions: int = 200,
    seed: int = 0,
) -> float:
    """The share of simulated audits (scores N(0, 1) and N(μ, 1)) in which `refute_curve` refutes the claim.

    For any threshold strategy, given on that scale (see `ThresholdStrategy.on_normal_scale`).

    >>> from epsilometer.claims import GaussianClaim
    >>> simulated_power(GaussianClaim(0.5), mu=1.5, out_trials=200, in_trials=200)
    1.0
    """
    checks.real("mu", mu, above=0, closed="[]")
    rng = np.random.default_rng(seed)
    refuted = 0
    for _ in range(checks.whole("repetitions", repetitions, least=1)):
        out_scores = rng.standard_normal(out_trials)
        in_scores = rng.standard_normal(in_trials) + mu
        evidence = PairedRuns(out_scores, in_scores, claim.relation, group_size)
        refuted += refute_curve(evidence, claim, confidence=confidence, thresholds=thresholds).refuted
    return refuted / repetitions


# False-positive rates from 0 to 1, dense at both ends.
_RATES: Floats = np.concatenate([[0.0], np.geomspace(1e-7, 0.5, 96), 1.0 - np.geomspace(1e-7, 0.5, 96)[-2::-1]])


def _corner(claim: Claim) -> Floats:
    """Where a point's two inequalities meet, FPR = FNR: a curve has its like, found by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if 1.0 - claim.max_tpr(middle) > middle else (low, middle)
    return np.array([low])


def _promising(
    claim: Claim, rates: Floats, tprs: Floats, trials: int, alpha: float, group_size: int, keep: int = 16
) -> list[int]:
    """Where the expected counts go furthest beyond the claim, in standard deviations: the places to look at."""
    fp, tp = np.rint(trials * rates), np.rint(trials * tprs)
    allowed = claim.max_tpr(upper_limit(fp, trials, alpha / 2), group_size)
    excess = 1.0 - upper_limit(trials - tp, trials, alpha / 2) - allowed
    slope = np.gradient(allowed, rates)  # of what is allowed, by the false-positive rate
    spread = np.sqrt((tprs * (1 - tprs) + slope**2 * rates * (1 - rates)) / trials) + 1.0 / trials
    return [int(i) for i in np.argsort(-excess / spread, kind="stable")[:keep]]


def _power_at(claim: Claim, fpr: float, tpr: float, trials: int, alpha: float, group_size: int) -> float:
    """P[limits on both rates refute the claim], summed over the number of false positives.

    Many counts are gathered in cells of which the worst, the last, stands for all.
    """
    spread = 9.0 * math.sqrt(trials * fpr * (1 - fpr)) + 9.0
    least, most = max(0.0, trials * fpr - spread), min(float(trials), trials * fpr + spread)
    fp = np.unique(np.rint(np.linspace(math.floor(least), math.ceil(most), 1001)))
    below = np.concatenate([[1.0], _upper_tail(fp[:-1] + 1.0, trials, fpr)])
    mass = below - _upper_tail(fp + 1.0, trials, fpr)
    allowed = claim.max_tpr(upper_limit(fp, trials, alpha / 2), group_size)
    # The fewest true positives whose lower limit is above what the claim allows.
    needed = _fewest_successes(allowed, trials, alpha / 2)
    return float(np.sum(mass * _upper_tail(needed, trials, tpr)))


def _fewest_successes(rate: Floats, trials: int, alpha: float) -> Floats:
    """The least k with P[Bin(trials, rate) ≥ k] < alpha, found by bisection; trials + 1 if there is none."""
    low, high = np.zeros_like(rate), np.full_like(rate, trials + 1.0)
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        rare = _upper_tail(middle, trials, rate) < alpha
        low, high = np.where(rare, low, middle), np.where(rare, middle, high)
    return high


def _upper_tail(k: Floats, trials: int, rate: Floats | float) -> Floats:
    """P[Bin(trials, rate) ≥ k]; 1 for k ≤ 0 and 0 for k > trials."""
    inner = np.clip(k, 1.0, trials)
    tail = special.betainc(inner, trials - inner + 1.0, rate)
    result: Floats = np.where(k <= 0, 1.0, np.where(k > trials, 0.0, tail))
    return result
