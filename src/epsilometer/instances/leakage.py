"""The empirical side: what an attack certifies of single records, beside what theory says they pay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import stats

from epsilometer import validate
from epsilometer.adversaries.record_gradient import AlongItsGradient, RecordGradient
from epsilometer.arrays import Floats
from epsilometer.auditing import Plan, claim_curve
from epsilometer.auditing.part import PartOfPlan
from epsilometer.bounds import LowerBound
from epsilometer.evidence import IN, OUT, Trial
from epsilometer.instances.result import InstanceResult
from epsilometer.rounding import down, up
from epsilometer.runs import Executor, Preparation, Progress, Results, Store, play
from epsilometer.runs.scores import require_scores
from epsilometer.seeds import Seeds, Stream, seed_of

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
    right_with: float  # the share of models with the record that get it right
    right_without: float
    trials: int  # trainings with the record, and as many without it

    @property
    def memorised(self) -> float:
        """By how much more often models with the record get it right: an estimate of memorisation (Feldman 2020)."""
        return self.right_with - self.right_without

    def __str__(self) -> str:
        sure = f"{100 * self.bound.confidence:.10g} % confidence"
        return (
            f"record {self.row}: {up(self.epsilon)} by theory; certified ε ≥ {down(self.bound.epsilon)} "
            f"({sure}), AUC {self.auc:.3f}; right in {100 * self.right_with:.3g} % of trainings with it, "
            f"{100 * self.right_without:.3g} % without"
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
            "right_with": self.right_with,
            "right_without": self.right_without,
            "memorised": self.memorised,
            "trials": self.trials,
        }


@dataclass(frozen=True, eq=False)
class LeaveOneOut(PartOfPlan):
    """An audit of one record as `Trials` that is part of another run."""

    @property
    def planned_trials(self) -> int:
        return self.plan.planned_trials

    @property
    def first_look(self) -> int:
        return self.plan.first_look

    def to_dict(self) -> dict[str, Any]:
        return {**self.plan.to_dict(), "part": "leakage"}

    def play(self, prepared: Preparation, trials: Sequence[Trial]) -> list[Floats]:
        """The adversary's score, and 1 if the model gets the record right."""
        plan, game = self.plan, self.plan.game(prepared)
        insertions = [game.insert(world, seed_of(plan.seed, Stream.INSERTING, index)) for world, index in trials]
        observers = [game.observe() for _ in trials]
        plan.subject.run(insertions, Seeds(plan.seed, trials), observers)
        seen = cast(list[AlongItsGradient], observers)
        return [np.array([one.score(), float(one.right)]) for one in seen]

    def accepted(self, results: Mapping[Trial, Any], **remedy: str) -> dict[Trial, Floats]:
        return require_scores(results, self.plan.adversary.name, 2, **remedy)

    def bound_so_far(self, results: Results, count: int) -> LowerBound:
        return self.plan.bound_so_far({trial: values[:1] for trial, values in results.items()}, count)

    def right(self, results: Results, world: int) -> float:
        """The share of this world's models that get the record right."""
        return float(np.mean([results[world, index][1] for index in range(self.planned_trials)]))

    def describe(self) -> str:
        return f"record {self.plan.to_dict()['adversary']['record']}, with and without it"


def ends(result: InstanceResult, count: int) -> tuple[int, ...]:
    """Rows of the `count` records with the lowest ε, and of as many with the highest; ties by the most costly training.

    They are chosen by theory alone, before any score is seen.
    """
    most = len(result.epsilons) // 2
    validate.whole("measure", count, least=1, most=most, remedy=f"of {len(result.epsilons)} records")
    order = result.from_least_to_most_exposed
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
        work = LeaveOneOut(audit)
        seen = play(work, store, executor, progress).results
        auc = audit.evidence({trial: values[:1] for trial, values in seen.items()}, trials).as_pairs().auc().value
        strength = float(np.sqrt(2.0) * stats.norm.ppf(np.clip(auc, 1e-9, 1 - 1e-9)))
        bound, rights = work.bound_so_far(seen, trials), (work.right(seen, IN), work.right(seen, OUT))
        found.append(Leakage(row, known[row], bound, auc, strength, *rights, trials))
    return tuple(found)
