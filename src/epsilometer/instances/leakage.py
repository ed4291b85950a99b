"""The empirical side: what an adversary can prove to leak of single records, beside what theory says they pay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from epsilometer import checks
from epsilometer.adversaries.record_gradient import RecordGradient
from epsilometer.auditing import Executor, Plan, Preparation, Progress, Store, claim_curve, play
from epsilometer.auditing.part import PartOfPlan
from epsilometer.bounds import LowerBound
from epsilometer.claims import Floats
from epsilometer.evidence import Trial
from epsilometer.instances.result import InstanceResult
from epsilometer.rounding import down, up

USUAL_TRIALS = 200  # trainings with a record, and as many without it


@dataclass(frozen=True)
class Leakage:
    """What was measured of one record: `bound` is certified, `strength` an estimate of how far apart both worlds are
    (μ of a Gaussian with this AUC), by which records can be put in order where bounds are 0."""

    row: int
    epsilon: float  # what it pays, by theory
    bound: LowerBound
    auc: float
    strength: float
    trials: int  # trainings with the record, and as many without it

    def __str__(self) -> str:
        sure = f"{100 * self.bound.confidence:.10g} % confidence"
        return (
            f"record {self.row}: ε ≤ {up(self.epsilon)} by theory; certified ε ≥ {down(self.bound.epsilon)} "
            f"({sure}), AUC {self.auc:.3f}"
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "row": self.row,
            "epsilon": self.epsilon,
            "certified_at_least": self.bound.epsilon,
            "auc": self.auc,
            "strength": self.strength,
            "confidence": self.bound.confidence,
            "within": self.bound.epsilon <= self.epsilon,
            "trials": self.trials,
        }


@dataclass(frozen=True, eq=False)
class LeaveOneOut(PartOfPlan):
    """An audit of one record as `Work` that is part of another run."""

    @property
    def planned_trials(self) -> int:
        return self.plan.planned_trials

    @property
    def first_look(self) -> int:
        return self.plan.first_look

    def to_dict(self) -> dict[str, Any]:
        return {**self.plan.to_dict(), "part": "leakage"}

    def play(self, prepared: Preparation, trials: Sequence[Trial]) -> list[Floats]:
        return self.plan.play(prepared, trials)

    def describe(self) -> str:
        return f"record {self.plan.to_dict()['adversary']['record']}, with and without it"


def ends(result: InstanceResult, count: int) -> tuple[int, ...]:
    """Rows of the `count` records with the lowest ε, and of as many with the highest; ties in the order of the data.

    They are chosen by theory alone, before any score is seen.
    """
    most = len(result.epsilons) // 2
    checks.whole("measure", count, least=1, most=most, remedy=f"of {len(result.epsilons)} records")
    order = np.argsort(result.epsilons, kind="stable")
    return tuple(int(result.plan.records[i]) for i in (*order[:count], *order[-count:]))


def measure(
    result: InstanceResult,
    rows: Sequence[int],
    *,
    trials: int = USUAL_TRIALS,
    store: Store,
    executor: Executor,
    progress: Progress | None = None,
) -> tuple[Leakage, ...]:
    """Trainings with and without each of these records, told apart by `RecordGradient`. All bounds hold at once with
    the plan's confidence."""
    plan = result.plan
    known = dict(zip(plan.records, result.epsilons.tolist(), strict=True))
    found = []
    for row in rows:
        audit = Plan(
            subject=plan.subject,
            claim=claim_curve(plan.recipe, plan.relation),
            delta=plan.delta,
            adversary=RecordGradient(row),
            trials=trials,
            confidence=1.0 - (1.0 - plan.confidence) / len(rows),
            seed=plan.seed,
        )
        tally = play(LeaveOneOut(audit), store, executor, progress)
        evidence = audit.evidence(tally.results, trials)
        auc = evidence.as_pairs().auc().value
        strength = float(np.sqrt(2.0) * stats.norm.ppf(np.clip(auc, 1e-9, 1 - 1e-9)))
        found.append(Leakage(row, known[row], audit.bound_so_far(tally.results, trials), auc, strength, trials))
    return tuple(found)
