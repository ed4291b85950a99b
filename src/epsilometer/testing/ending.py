"""How an audit of a test ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from epsilometer.auditing import AuditResult

Property = str | int | float


@dataclass(frozen=True)
class Ending:
    """How an audit ended, whatever was audited: the verdict, all there is to say, and how to have it again."""

    outcome: str
    reason: str
    text: str
    again: Sequence[str]
    properties: Mapping[str, Property]
    result: AuditResult | None = None

    def __str__(self) -> str:
        """The first line is all that a summary of many tests shows."""
        again = (f"again{'':10}{line}" for line in self.again)  # below the labels of the text
        return "\n".join([f"{self.outcome}: {self.reason}", *filter(None, [self.text]), *again])
