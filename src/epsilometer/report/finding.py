"""What is told of a claim that was judged, to whoever asks: a CI's summary, JUnit, a model card, MLflow."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from epsilometer import __version__
from epsilometer.auditing import AuditResult, Plan
from epsilometer.bounds import Kind, LowerBound
from epsilometer.json_values import json_values
from epsilometer.report.document import to_json
from epsilometer.report.headline import Headline, headline_of
from epsilometer.report.text import UNKNOWN
from epsilometer.rounding import down
from epsilometer.runs.identity import canonical
from epsilometer.verdict import unseen_leaks

Row = tuple[str, str]
_ANSWERING = ("trial_version", "trials", "confidence", "method", "seed")


@dataclass(frozen=True)
class Finding:
    """A claim, the lower bound and who found it, and the verdict; nothing where nobody said it.

    `key` names the question: asked once more, it has the same, and the answer takes the place of the one before.
    """

    name: str
    key: str
    lower: LowerBound
    trials: str  # in words
    trial_count: int  # trainings, or canaries of one
    training: str | None = None
    claim: str | None = None
    claimed_epsilon: float | None = None
    theory: str | None = None
    upper_epsilon: float | None = None
    adversary: str | None = None
    threat_model: str | None = None
    comparison: str | None = None
    outcome: str | None = None
    reason: str | None = None
    power: float | None = None
    blind_spot: float | None = None
    seed: int | None = None
    seconds: float = 0.0
    faults: Sequence[str] = ()
    command: str = ""
    headline: Headline | None = None
    document: dict[str, Any] = field(default_factory=dict, repr=False)  # all of it, for programs

    @property
    def title(self) -> str:
        """Name and verdict, or the lower bound where no claim was tested."""
        return f"{self.name}: {self.outcome or self.proved}"

    @property
    def proved(self) -> str:
        """The lower bound in short; ≈ where it is an estimate."""
        sign = "≈" if self.lower.kind is Kind.ESTIMATE else "≥"
        return f"ε {sign} {down(self.lower.epsilon)}"

    @property
    def unseen(self) -> str:
        """Which leaks this audit could not have seen."""
        return unseen_leaks(self.blind_spot)

    def rows(self) -> list[Row]:
        """Label and text of all that is known, in the order in which one reads it."""
        told: list[tuple[str, str | None]] = [
            ("in short", None if self.headline is None else str(self.headline)),
            ("quote", None if self.headline is None else self.headline.quote),
            ("training", self.training),
            *(("FAULT INJECTED", fault) for fault in self.faults),
            ("claim", self.claim),
            ("verdict", self.outcome and f"{self.outcome}: {self.reason}"),
            (str(self.lower.kind), str(self.lower)),
            ("from", str(self.lower.proof)),
            ("against claim", self.comparison),
            ("theory", self.theory),
            ("adversary", self.adversary),
            ("threat model", self.threat_model),
            ("trials", self.trials if self.seed is None else f"{self.trials}, seed {self.seed}"),
            ("cannot see", self.unseen),
            ("version", f"epsilometer {__version__}"),
        ]
        return [(label, text) for label, text in told if text]

    def properties(self) -> dict[str, str | int | float]:
        """The same for programs that keep names and values."""
        known: dict[str, str | int | float | None] = {
            "verdict": self.outcome,
            "epsilon_lower": self.lower.epsilon,
            "epsilon_claimed": self.claimed_epsilon,
            "claim": self.claim,
            "delta": self.lower.delta,
            "confidence": self.lower.confidence,
            "kind": self.lower.kind.value,
            "method": self.lower.method,
            "adversary": self.adversary,
            "trials": self.trial_count,
            "seed": self.seed,
            "version": __version__,
        }
        return {f"epsilometer.{name}": value for name, value in known.items() if value is not None}


def question(plan: Plan) -> str:
    """What is asked, whatever answers it: another version of the code, or more trials, is the same question."""
    asked = {key: value for key, value in plan.to_dict().items() if key not in _ANSWERING}
    if "subject" in asked:
        asked["subject"] = {key: value for key, value in asked["subject"].items() if key != "code"}
    return hashlib.sha256(canonical(json_values(asked)).encode()).hexdigest()[:16]


def finding_of(result: AuditResult, command: str = "") -> Finding:
    """What an audit has found; `command` is what would play it again."""
    plan, verdict = result.plan, result.verdict
    claim = f"ε = {plan.claimed_epsilon:.4g} at δ = {plan.delta:g} ({plan.neighbours}): {plan.claim.describe()}"
    return Finding(
        name=plan.subject.describe().split(",")[0],
        key=question(plan),
        lower=result.lower_bound,
        trials=result.evidence.describe(),
        trial_count=result.judged,
        training=plan.subject.describe(),
        claim=claim,
        claimed_epsilon=plan.claimed_epsilon,
        theory=str(result.upper_bound or UNKNOWN),
        upper_epsilon=None if result.upper_bound is None else result.upper_bound.epsilon,
        adversary=plan.adversary.describe(),
        threat_model=str(plan.adversary.needs),
        comparison=result.test.comparison,
        outcome=verdict.outcome.value,
        reason=verdict.reason,
        power=verdict.power,
        blind_spot=verdict.blind_spot,
        seed=plan.seed,
        seconds=result.seconds,
        faults=tuple(plan.subject.injected()),
        command=command,
        headline=headline_of(result),
        document=to_json(result),
    )
