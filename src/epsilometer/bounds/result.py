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
    fnr_high: float
    higher: bool = True

    @property
    def tpr_low(self) -> float:
        return 1.0 - self.fnr_high

    def to_dict(self) -> dict[str, Any]:
        return {
            "threshold": self.threshold,
            "member_if": None if self.threshold is None else f"score {'>' if self.higher else '<'} threshold",
            "counts": self.counts.to_dict(),
            "fpr_high": self.fpr_high,
            "fnr_high": self.fnr_high,
            "tpr_low": self.tpr_low,
        }


@dataclass(frozen=True, repr=False)
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
        at = f"at δ = {self.delta:g} ({self.relation}{_groups(self.group_size)})"
        if self.kind is Kind.ESTIMATE:
            return f"ε ≈ {self.epsilon:.3f} {at}: an estimate, not a bound; {self.method}"
        return f"ε ≥ {self.epsilon:.3f} {at}, {self.kind}, {self.confidence:.4g} confidence, {self.method}"

    def __repr__(self) -> str:
        return f"LowerBound({self})"

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


def _groups(size: int) -> str:
    return f", groups of {size}" if size > 1 else ""


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        return f"ClaimTest({self})"

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


@dataclass(frozen=True, repr=False)
class NoiseLimit:
    """With this confidence, the training's noise multiplier is effectively no larger than `noise_multiplier`."""

    noise_multiplier: float
    confidence: float
    method: str
    kind: Kind

    def __str__(self) -> str:
        sign = "≈" if self.kind is Kind.ESTIMATE else "≤"
        sure = "an estimate, not a limit" if self.kind is Kind.ESTIMATE else f"{self.confidence:.4g} confidence"
        return f"noise multiplier {sign} {self.noise_multiplier:.3g}, {self.kind}, {sure}, {self.method}"

    def __repr__(self) -> str:
        return f"NoiseLimit({self})"

    def to_dict(self) -> dict[str, Any]:
        return {
            "noise_multiplier": self.noise_multiplier,
            "confidence": self.confidence,
            "method": self.method,
            "kind": self.kind.value,
        }
