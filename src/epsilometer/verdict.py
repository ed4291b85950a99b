"""What an audit says in the end, of whatever kind it is."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

ENOUGH_POWER = 0.8
DOUBTFUL = 0.2  # a claim that would show as much as was seen no oftener than this is not called consistent
FAULT = 2.0  # the leak an audit must be able to see: an attack twice as strong (μ of a Gaussian, or ε, doubled)


class Outcome(enum.StrEnum):
    """What an audit can say."""

    VIOLATED = "violated"  # a certified test refutes the claim
    CONSISTENT = "consistent"  # it does not, and it would have seen an attack twice as strong
    INCONCLUSIVE = "inconclusive"  # it does not, but could not have seen such an attack, or cannot exclude a violation


@dataclass(frozen=True)
class Verdict:
    """The outcome and why; the probability that this audit sees an attack twice as strong as the one it saw (`power`:
    the lower of those for Gaussian and for randomized-response scores); and the share of trainings in which everything
    must leak to be seen (`blind_spot`)."""

    outcome: Outcome
    reason: str
    power: float | None = None
    blind_spot: float | None = None
    refuted: str | None = None  # which statement: the point (ε, δ), the curve, or what is stated of steps

    def __str__(self) -> str:
        return f"{self.outcome}: {self.reason}"

    @property
    def unseen(self) -> str:
        """Which leaks this audit could not have seen; empty where that is not known."""
        return unseen_leaks(self.blind_spot)

    def to_dict(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome.value,
            "reason": self.reason,
            "power": self.power,
            "blind_spot": self.blind_spot,
            "refuted": self.refuted,
        }


def unseen_leaks(blind_spot: float | None) -> str:
    """A blind spot in words."""
    if blind_spot is None:
        return ""
    if blind_spot >= 1.0:
        return "leaks that happen in some trainings only: so few trials cannot refute the claim by them"
    return f"a leak in fewer than {100 * blind_spot:.2g} % of trainings"
