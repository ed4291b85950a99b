"""Collaborations → scores → what they show. What is stored is not played again."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from epsilometer import validate
from epsilometer.accounting import UpperBound
from epsilometer.bounds import exact_rank
from epsilometer.claims import GaussianClaim
from epsilometer.collaborative.plan import CONTROL, NEIGHBOURS, PropertyPlan
from epsilometer.collaborative.result import ByRounds, PropertyResult
from epsilometer.evidence import IN, OUT, PairedRuns
from epsilometer.metrics import area
from epsilometer.runs import Executor, Inline, MemoryStore, Progress, Results, Store, play

BY = "Gaussian DP, exact"


def run_property(
    plan: PropertyPlan,
    progress: Progress | None = None,
    *,
    delta: float = 1e-5,
    confidence: float = 0.95,
    store: Store | None = None,
    executor: Executor | None = None,
) -> PropertyResult:
    """Play what is missing of the plan's collaborations, and tell how well the property was seen.

    One score a collaboration, and worlds that differ in one participant's whole data: where the noise promises to hide
    a participant, the scores are evidence against that promise, and certify an ε for it (`exact_rank`). Where it does
    not, no ε is stated.
    """
    validate.delta(delta)
    validate.confidence(confidence)
    store = MemoryStore() if store is None else store
    results = play(plan, store, executor or Inline(), progress).results
    started = time.perf_counter()
    begun = store.begin(plan)
    found = _judged(plan, results, delta, confidence)
    end = {"verdict": None, "lower_bound": None if found.bound is None else found.bound.to_dict()}
    store.conclude(begun.fingerprint, {**end, "stopped_early": False, "judged": plan.trials})
    return replace(found, seconds=begun.seconds + time.perf_counter() - started)


def _judged(plan: PropertyPlan, results: Results, delta: float, confidence: float) -> PropertyResult:
    without, having = plan.scores(results, OUT), plan.scores(results, IN)
    evidence = PairedRuns(without[:, -1], having[:, -1], NEIGHBOURS)
    control = None
    if plan.control:
        both = plan.scores(results, CONTROL)[:, -1]
        control = PairedRuns(both[::2], both[1::2], NEIGHBOURS)
    promise = plan.promise
    return PropertyResult(
        plan=plan,
        evidence=evidence,
        auc=evidence.auc(confidence),
        balanced_accuracy=evidence.balanced_accuracy(confidence=confidence),
        by_rounds=tuple(
            ByRounds(rounds, area(without[:, place], having[:, place], confidence))
            for place, rounds in enumerate(plan.looks)
        ),
        control=control,
        control_auc=None if control is None else control.auc(confidence),
        accuracy=float(np.mean([one[-1] for one in results.values()])),
        bound=None if promise is None else exact_rank(evidence, delta=delta, confidence=confidence),
        theory=None if promise is None else _theory(promise, delta),
        confidence=confidence,
    )


def _theory(promise: GaussianClaim, delta: float) -> UpperBound:
    return UpperBound(promise.epsilon_at(delta), delta, promise.relation, BY, promise, unit=promise.unit)
