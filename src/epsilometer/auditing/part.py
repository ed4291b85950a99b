"""Trials that belongs to a plan: a control, how good its models are, an audit of one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from epsilometer.arrays import Floats
from epsilometer.auditing.plan import Plan
from epsilometer.evidence import Trial
from epsilometer.isolation import Isolation
from epsilometer.runs.identity import Fingerprinted
from epsilometer.runs.trials import Preparation, Results


@dataclass(frozen=True, eq=False)
class PartOfPlan(Fingerprinted):
    """What is the plan's own, unless a part says otherwise. It is `Trials` once it says its trials and how they go."""

    kind: ClassVar[str] = "audit"
    plan: Plan

    @property
    def worlds(self) -> tuple[int, ...]:
        return self.plan.worlds

    def about(self) -> dict[str, Any]:
        return {}

    def rehearsal(self) -> None:
        return None

    @property
    def safeguards(self) -> Isolation:
        return self.plan.safeguards

    def prepare(self) -> Preparation:
        return self.plan.prepare()

    def accepted(self, results: Mapping[Trial, Any], **remedy: str) -> dict[Trial, Floats]:
        return self.plan.accepted(results, **remedy)

    def is_enough(self, results: Results, count: int) -> bool:
        return False

    def so_far(self, results: Results, count: int) -> str:
        return ""

    def code(self) -> list[Any]:
        return self.plan.code()
