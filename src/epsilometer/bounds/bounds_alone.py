"""Bounds of the table that are no methods of audits: each from its evidence and settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from epsilometer.bounds.clopper_pearson import clopper_pearson
from epsilometer.bounds.exact_rank import ExactRank
from epsilometer.bounds.gaussian import gaussian_bound
from epsilometer.bounds.named_method import Settings
from epsilometer.bounds.one_run import one_run
from epsilometer.bounds.one_run_fdp import one_run_fdp
from epsilometer.bounds.result import LowerBound
from epsilometer.bounds.thresholds import Fixed, Split, ThresholdStrategy
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Counts, OneRun, PairedRuns


def of_counts(evidence: Counts, settings: Settings) -> LowerBound:
    return clopper_pearson(evidence, delta=settings.delta, confidence=settings.confidence)


def of_one_test(function: Callable[..., LowerBound]) -> Callable[[PairedRuns | Counts, Settings], LowerBound]:
    """A bound from the counts of one test; of scores, at a threshold that is given or chosen on a random half."""

    def compute(evidence: PairedRuns | Counts, settings: Settings) -> LowerBound:
        if settings.direction != "higher":
            raise InvalidInput("direction", settings.direction, "higher with this bound", "turn the scores' sign")
        chosen: ThresholdStrategy | None = None
        if evidence.has_scores:
            chosen = Split(seed=settings.seed) if settings.threshold is None else Fixed(settings.threshold)
        return function(evidence, delta=settings.delta, confidence=settings.confidence, thresholds=chosen)

    return compute


def of_the_family(evidence: PairedRuns | Counts, settings: Settings) -> LowerBound:
    return gaussian_bound(
        evidence,
        delta=settings.delta,
        confidence=settings.confidence,
        direction=settings.direction,
        method=ExactRank(seed=settings.seed) if evidence.has_scores else None,
    )


def of_one_run(family: str | None) -> Callable[[OneRun, Settings], LowerBound]:
    """Right guesses in one run: against a family of curves, or by Theorem 5.2 of Steinke et al."""

    def compute(evidence: OneRun, settings: Settings) -> LowerBound:
        if settings.direction == "either":
            raise InvalidInput("direction", "either", "higher or lower with one run", "say which scores mean member")
        if settings.direction == "lower":
            evidence = replace(evidence, scores=-evidence.scores)
        shared = {"delta": settings.delta, "confidence": settings.confidence, "guesses": settings.guesses}
        return one_run(evidence, **shared) if family is None else one_run_fdp(evidence, family=family, **shared)  # type: ignore[arg-type]

    return compute
