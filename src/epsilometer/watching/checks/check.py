"""The answer of one check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from epsilometer.errors import one_line

STATED_MECHANISM = "the stated mechanism"
CHANCE = 1e-6  # with which a check that looks at random numbers may accuse a training that is right


class Status(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Check:
    """What one check found: one plain line with what was found, what was expected and what to do; and whether that
    refutes the mechanism which the training states."""

    name: str
    status: Status
    reason: str
    refutes: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", one_line(self.reason, limit=600))

    def to_dict(self) -> dict[str, str]:
        found = {"name": self.name, "status": self.status.value, "reason": self.reason}
        return {**found, "refutes": STATED_MECHANISM} if self.refutes else found

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Check:
        return cls(str(document["name"]), Status(document["status"]), str(document["reason"]), "refutes" in document)


@dataclass(frozen=True)
class Finding:
    """What a check's function says; the catalogue knows its name."""

    status: Status
    reason: str
    meant: bool = False  # failed, and perhaps on purpose: a mechanism that is not the stated one, and may be right


def passed(reason: str) -> Finding:
    return Finding(Status.PASSED, reason)


def failed(found: str, expected: str, remedy: str, *, meant: bool = False) -> Finding:
    """
    >>> failed("50 steps accounted", "60, which were taken", "call attach_step_hook no more").reason
    '50 steps accounted; expected 60, which were taken; call attach_step_hook no more'
    """
    return Finding(Status.FAILED, f"{found}; expected {expected}; {remedy}", meant)


def not_applicable(reason: str) -> Finding:
    return Finding(Status.NOT_APPLICABLE, reason)


def worst(checks: Iterable[Check]) -> Status:
    """`failed` if one has failed, else `passed` if one has passed."""
    found = {check.status for check in checks}
    return next((s for s in (Status.FAILED, Status.PASSED) if s in found), Status.NOT_APPLICABLE)
