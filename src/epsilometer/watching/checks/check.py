"""The answer of one check."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from epsilometer.errors import one_line
from epsilometer.statements import Basis, Statement
from epsilometer.watching.checks.names import UNMENDED

CHANCE = 1e-6  # with which a check that looks at random numbers may accuse a training that is right


class Status(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    IGNORED = "ignored"  # failed, and its user accepts that


@dataclass(frozen=True)
class Check:
    """What one check found, in one plain line: what was found, what was expected and what to do. It is evidence about a
    statement, of which one that failed is a counterexample, a test or a hint."""

    name: str
    status: Status
    reason: str
    statement: Statement
    basis: Basis = Basis.HINT
    needed: bool = False  # must pass before the statement counts as held
    step: int | None = None  # the first at which it failed, where that is known

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", one_line(self.reason, limit=600))

    @property
    def is_limit(self) -> bool:
        """Does it fail in every training of this kind? What has happened in this one is more than that."""
        return self.name in UNMENDED and self.basis is Basis.HINT

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "status": self.status.value,
            "reason": self.reason,
            "statement": self.statement.value,
            "basis": self.basis.value,
            "needed": self.needed,
            "step": self.step,
        }


@dataclass(frozen=True)
class Finding:
    """What a check's function says; the catalogue knows its name."""

    status: Status
    reason: str
    meant: bool = False  # failed, and perhaps on purpose: a mechanism that is not the stated one, and may be right
    basis: Basis | None = None  # where it is another one than the check's usual
    step: int | None = None  # the first at which it failed, where that is known


def passed(reason: str) -> Finding:
    return Finding(Status.PASSED, reason)


def failed(
    found: str,
    expected: str,
    remedy: str,
    *,
    meant: bool = False,
    basis: Basis | None = None,
    step: int | None = None,
) -> Finding:
    """
    >>> failed("50 steps accounted", "60, which were taken", "call attach_step_hook no more").reason
    '50 steps accounted; expected 60, which were taken; call attach_step_hook no more'
    """
    return Finding(Status.FAILED, f"{found}; expected {expected}; {remedy}", meant, basis, step)


def not_applicable(reason: str) -> Finding:
    return Finding(Status.NOT_APPLICABLE, reason)


def worst(checks: Iterable[Check]) -> Status:
    """`failed` if one has failed, else `passed` if one has passed."""
    found = {check.status for check in checks}
    return next((s for s in (Status.FAILED, Status.PASSED) if s in found), Status.NOT_APPLICABLE)
