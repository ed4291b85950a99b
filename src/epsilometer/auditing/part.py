"""Work that belongs to a plan: a control, how good its models are, an audit of one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epsilometer.auditing.plan import Plan
from epsilometer.auditing.work import Fingerprinted, Preparation, Results
from epsilometer.bounds import LowerBound
from epsilometer.claims import Floats
from epsilometer.evidence import Trial
from epsilometer.subjects import Precautions


@dataclass(frozen=True, eq=False)
class PartOfPlan(Fingerprinted):
    """What is the plan's own, unless a part says otherwise. It is `Work` once it says its trials and how they go."""

    plan: Plan

    @property
    def worlds(self) -> tuple[int, ...]:
        return self.plan.worlds

    @property
    def claimed_epsilon(self) -> float:
        return self.plan.claimed_epsilon

    @property
    def precautions(self) -> Precautions:
        return self.plan.precautions

    def prepare(self) -> Preparation:
        return self.plan.prepare()

    def accepted(self, results: Mapping[Trial, Any], **remedy: str) -> dict[Trial, Floats]:
        return self.plan.accepted(results, **remedy)

    def is_enough(self, results: Results, count: int) -> bool:
        return False

    def bound_so_far(self, results: Results, count: int) -> LowerBound:
        return self.plan.bound_so_far(results, count)

    def code(self) -> list[Any]:
        return self.plan.code()
