"""Lower bound on ε from the error rates of a threshold test (Jagielski et al. 2020, Nasr et al. 2021)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from epsilometer import checks
from epsilometer.bounds.rates import epsilon_from_rates
from epsilometer.bounds.result import ErrorPair, Kind, LowerBound
from epsilometer.bounds.thresholds import Objective, ThresholdStrategy, UnionBound, certified_pair
from epsilometer.claims import Floats
from epsilometer.errors import EvidenceMismatch, InvalidInput, unknown_name
from epsilometer.evidence import Counts, PairedRuns

DIRECTIONS = ("higher", "lower", "either")
_MEANING = {"lower": "lower scores mean member", "either": "both directions tried"}


def clopper_pearson(
    evidence: PairedRuns | Counts,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    thresholds: ThresholdStrategy | None = None,
    direction: str = "higher",
) -> LowerBound:
    """The certified ε of the best error pair: limits on FPR and FNR, then the region of (ε, δ)-DP.

    `thresholds` says how the test was or is to be chosen from scores (default `UnionBound()`); counts come
    from a test chosen beforehand. `direction` says which scores mean "member": "either" tries both and pays
    for it. The set and its complement cost nothing extra: both use the same two limits.

    >>> print(clopper_pearson(Counts(tp=1000, fp=0, fn=0, tn=1000), delta=1e-5))
    ε ≥ 5.601 at δ = 1e-05 (add-remove), certified, 0.95 confidence, clopper-pearson (counts)
    """
    checks.delta(delta)
    require_independent_trials("clopper_pearson", evidence)
    size = evidence.group_size

    def epsilons(fpr_high: Floats, fnr_high: Floats) -> Floats:
        return epsilon_from_rates(fpr_high, fnr_high, delta, size)

    pairs, kind, method = error_pairs(evidence, confidence, thresholds, direction, epsilons)
    values = epsilons(*limits(pairs))
    best = int(np.argmax(values))
    return LowerBound(
        epsilon=float(values[best]),
        delta=delta,
        confidence=confidence,
        relation=evidence.relation,
        method=method,
        kind=kind,
        proof=pairs[best],
        group_size=size,
    )


def limits(pairs: list[ErrorPair]) -> tuple[Floats, Floats]:
    """The limits of several pairs, as arrays: on FPR and on FNR."""
    return np.array([p.fpr_high for p in pairs]), np.array([p.fnr_high for p in pairs])


def require_independent_trials(method: str, evidence: object) -> None:
    """Refuse evidence of another kind."""
    if not isinstance(evidence, PairedRuns | Counts):
        raise EvidenceMismatch(
            f"{method} needs independent trials (PairedRuns or Counts), got {type(evidence).__name__}: canaries of "
            f"one run and natural records are not independent; use a bound made for them"
        )


def error_pairs(
    evidence: PairedRuns | Counts,
    confidence: float,
    thresholds: ThresholdStrategy | None,
    direction: str,
    objective: Objective,
) -> tuple[list[ErrorPair], Kind, str]:
    """Error pairs whose limits hold at once with `confidence`, their kind, and the method's name."""
    alpha = 1.0 - checks.confidence(confidence)
    if direction not in DIRECTIONS:
        raise unknown_name("direction", direction, DIRECTIONS)
    if isinstance(evidence, Counts):
        if thresholds is not None or direction != "higher":
            argument, value = ("direction", direction) if thresholds is None else ("thresholds", thresholds)
            expected = "nothing of the kind with counts"
            raise InvalidInput(argument, value, expected, "counts already come from a chosen test")
        return [certified_pair(None, evidence, alpha)], Kind.CERTIFIED, "clopper-pearson (counts)"
    strategy = UnionBound() if thresholds is None else thresholds
    if isinstance(strategy, type) or not hasattr(strategy, "error_pairs"):
        raise InvalidInput("thresholds", strategy, "a strategy such as Split() or UnionBound()")
    share = alpha / 2 if direction == "either" else alpha
    pairs: list[ErrorPair] = []
    if direction != "lower":
        pairs += strategy.error_pairs(evidence, share, objective)
    if direction != "higher":
        turned = strategy.mirrored().error_pairs(evidence.flipped(), share, objective)
        pairs += [replace(p, threshold=-p.threshold, higher=False) for p in turned if p.threshold is not None]
    note = "" if direction == "higher" else f", {_MEANING[direction]}"
    return pairs, strategy.kind, f"clopper-pearson ({strategy.name}{note})"
