"""What a bound returns: frozen, readable, and plain data on request."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from epsilometer.claims import Claim, Relation
from epsilometer.evidence import Counts


class Kind(enum.StrEnum):
    """How much a lower bound proves. Only `CERTIFIED` ones can refute a claim."""

    CERTIFIED = "certified"  # no assumption beyond independent trials
    FAMILY = "family"  # assumes a family of mechanisms, e.g. Gaussian DP
    CREDIBLE = "credible"  # Bayesian
    ESTIMATE = "estimate"  # a point estimate, or a choice that was not paid for


@dataclass(frozen=True)
class ErrorPair:
    """One test, score > threshold (score < threshold unless `higher`), and limits on its true error rates.

    The limits of all pairs of one result hold at once with that result's confidence.
    """

    threshold: float | None
    counts: Counts
    fpr_high: float
    tpr_low: float
    higher: bool = True

    def to_dict(self) -> dict[str, Any]:
        return {
            "threshold": self.threshold,
            "member_if": "score > threshold" if self.higher else "score < threshold",
            "counts": self.counts.to_dict(),
            "fpr_high": self.fpr_high,
            "tpr_low": self.tpr_low,
        }


@dataclass(frozen=True)
class LowerBound:
    """With this confidence, the training is not (ε', δ)-DP for any ε' below `epsilon`."""

    epsilon: float
    delta: float
    confidence: float
    relation: Relation
    method: str
    kind: Kind
    pair: ErrorPair
    group_size: int = 1

    @property
    def threshold(self) -> float | None:
        return self.pair.threshold

    @property
    def counts(self) -> Counts:
        return self.pair.counts

    def __str__(self) -> str:
        return (
            f"ε ≥ {self.epsilon:.3f} at δ = {self.delta:g} ({self.relation}), "
            f"{self.kind}, {self.confidence:.4g} confidence, {self.method}"
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "confidence": self.confidence,
            "relation": self.relation.value,
            "method": self.method,
            "kind": self.kind.value,
            "group_size": self.group_size,
            **self.pair.to_dict(),
        }


@dataclass(frozen=True)
class ClaimTest:
    """Whether the evidence refutes a claim, and the error pair that comes nearest to doing so.

    `claimed_tpr` is the largest true-positive rate that the claim allows at `pair.fpr_high`: the claim is
    refuted iff `pair.tpr_low` is above it.
    """

    refuted: bool
    claim: Claim
    confidence: float
    method: str
    kind: Kind
    pair: ErrorPair
    claimed_tpr: float

    def __str__(self) -> str:
        verb = "refuted" if self.refuted else "not refuted"
        return (
            f"{self.claim.describe()}: {verb} ({self.kind}, {self.confidence:.4g} confidence, {self.method}); "
            f"TPR ≥ {self.pair.tpr_low:.4f} at FPR ≤ {self.pair.fpr_high:.4f}, claim allows {self.claimed_tpr:.4f}"
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "refuted": self.refuted,
            "claim": self.claim.to_dict(),
            "confidence": self.confidence,
            "method": self.method,
            "kind": self.kind.value,
            "claimed_tpr": self.claimed_tpr,
            **self.pair.to_dict(),
        }
