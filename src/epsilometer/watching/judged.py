"""A watched training and what can be said of it by now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from epsilometer.statements import Standing, Stands, statements
from epsilometer.verdict import Verdict
from epsilometer.watching.evidence import evidence_of
from epsilometer.watching.verdict import is_replayed, quote_of, verdict_of
from epsilometer.watching.watched import Watched


@dataclass
class JudgedTraining(Watched):
    """Whatever is asked of it holds whenever one looks."""

    @property
    def statements(self) -> tuple[Stands, ...]:
        """What is known of each statement on which the promise rests."""
        return statements(evidence_of(self), self.judging.assumed)

    def verdict(self) -> Verdict:
        return verdict_of(self, self.statements)

    @property
    def replayed(self) -> bool:
        """Is it known by replay that nothing else depends on the data?"""
        return is_replayed(self, self.statements)

    def headline(self) -> str:
        """The verdict, and ε beside what is promised."""
        return f"{self.verdict()}. {self.epsilon()}."

    def quote(self) -> str:
        """What may be said of this training, with all that it needs to be true."""
        return quote_of(self, self.statements)

    def table(self) -> list[str]:
        """A line for each statement: what is known of it, by what, and what would test it."""
        lines = []
        for row in self.statements:
            by = f" (by {', '.join(row.by)})" if row.by and row.standing is not Standing.UNTESTED else ""
            then = f"; next: {row.next}" if row.next and row.standing is Standing.UNTESTED else ""
            at = f" at step {row.step}" if row.step is not None else ""
            lines.append(f"{row.statement}: {row.standing}{at}{by}: {row.reason}{then}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        verdict = self.verdict()
        return {
            "pid": self.pid,
            "training": self.made.training,
            "optimizer": self.made.optimizer,
            "noise_multiplier": self.made.noise_multiplier,
            "clip_norm": self.made.clip_norm,
            "canaries": self.made.canaries,
            "place": self.made.place,
            "settings": self.made.settings,
            "steps": self.process.steps,
            "unseen_steps": self.unseen,
            "accounted": self.history,
            "log_e_value": self.process.log_e_value,
            "refuted_at": self.refuted_at,
            "noise_factor": self.noise_factor(),
            "confidence": self.confidence,
            "headline": self.headline(),
            "quote": self.quote(),
            "epsilon": self.epsilon().to_dict(),
            "verdict": verdict.outcome.value,
            "reason": verdict.reason,
            "refuted": verdict.refuted,
            "power": verdict.power,
            "not_audited": self.not_audited or None,
            "ended": self.ended,
            "idle": self.idle,
            "ranks": self.ranks,
            "statements": [one.to_dict() for one in self.statements],
            "checks": [one.to_dict() for one in self.checks],
        }
