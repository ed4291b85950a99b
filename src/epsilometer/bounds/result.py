"""What a bound returns: frozen, readable, and plain data on request."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from epsilometer.claims import Claim
from epsilometer.evidence import Counts
from epsilometer.neighbours import RECORD, Relation, SpeaksOfNeighbours
from epsilometer.rounding import down


class Kind(enum.StrEnum):
    """How much a lower bound proves. Only `CERTIFIED` ones can refute a claim."""

    CERTIFIED = "certified"  # no assumption beyond independent trials
    FAMILY = "family"  # assumes a family of mechanisms, e.g. Gaussian DP
    CREDIBLE = "credible"  # Bayesian
    ESTIMATE = "estimate"  # a point estimate, or a choice that was not paid for


class Proof(Protocol):
    """What a bound or a test rests on: in words, and as plain data."""

    def __str__(self) -> str: ...

    def to_dict(self) -> dict[str, Any]: ...


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

    def __str__(self) -> str:
        at = "" if self.threshold is None else f", {_where(self.threshold, self.higher)}"
        return f"TPR ≥ {self.tpr_low:.3f} at FPR ≤ {self.fpr_high:.3f} ({self.counts}{at})"

    def to_dict(self) -> dict[str, Any]:
        return {
            "threshold": self.threshold,
            "member_if": None if self.threshold is None else _where("threshold", self.higher),
            "counts": self.counts.to_dict(),
            "fpr_high": self.fpr_high,
            "fnr_high": self.fnr_high,
            "tpr_low": self.tpr_low,
        }


@dataclass(frozen=True)
class RankTest:
    """What was counted beyond a rank that was planned: rank-th from the top of the out-scores or from the bottom of the
    in-scores. `p_value` is the probability that a training at the border of what is refuted shows as much.
    """

    threshold: float
    counts: Counts
    rank: int
    of: str  # "out": the rank counts from the top of the out-scores; "in": from the bottom of the in-scores
    p_value: float
    higher: bool = True
    ties: bool = False  # whether equal scores were put in a random order, so that the counts are of that order
    of_sums: ClassVar[bool] = False  # or of one rank

    def __str__(self) -> str:
        end = "highest" if self.higher == (self.of == "out") else "lowest"
        at = _where(self.threshold, self.higher, inclusive=self.of == "in")
        world = "without" if self.of == "out" else "with"
        planned = f"planned as the {_ordinal(self.rank)} {end} score {world} the canary"
        ties = ", ties broken at random" if self.ties else ""
        return f"{_seen(self.counts)}, {at}, {planned}{ties})"

    def to_dict(self) -> dict[str, Any]:
        return {
            "threshold": self.threshold,
            "member_if": _where("threshold", self.higher, inclusive=self.of == "in"),
            "counts": self.counts.to_dict(),
            "rank": self.rank,
            "rank_of": self.of,
            "p_value": self.p_value,
            "ties_broken": self.ties,
        }


@dataclass(frozen=True)
class RankSumTest:
    """What all thresholds show together, and the one at which most was seen.

    `p_value` is the largest probability, under the claim that was tested, that a training shows as much.
    """

    threshold: float
    counts: Counts
    decided_by: str  # which part of the test has shown most: everywhere, top, highest, bottom, lowest
    p_value: float
    higher: bool = True
    ties: bool = False
    of_sums: ClassVar[bool] = True

    def __str__(self) -> str:
        at = _where(self.threshold, self.higher)
        ties = ", ties broken at random" if self.ties else ""
        return f"p ≤ {self.p_value:.2g} over all thresholds, clearest at {_seen(self.counts)}, {at}{ties})"

    def to_dict(self) -> dict[str, Any]:
        return {
            "threshold": self.threshold,
            "member_if": _where("threshold", self.higher),
            "counts": self.counts.to_dict(),
            "decided_by": self.decided_by,
            "p_value": self.p_value,
            "ties_broken": self.ties,
        }


def _seen(counts: Counts) -> str:
    """The rates with their counts, in a bracket that is still open."""
    return f"TPR {1 - counts.fnr:.3f} at FPR {counts.fpr:.3f} ({counts}"


def _ordinal(rank: int) -> str:
    """1st, 2nd, 3rd, 4th, …

    >>> [_ordinal(n) for n in (1, 2, 3, 4, 11, 21, 112)]
    ['1st', '2nd', '3rd', '4th', '11th', '21st', '112th']
    """
    ending = "th" if rank // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank}{ending}"


@dataclass(frozen=True)
class Guesses:
    """Guesses about canaries that a fair coin each put into one training or left out."""

    canaries: int
    guesses: int
    correct: int

    def __str__(self) -> str:
        return f"{self.correct} of {self.guesses} guesses right, {self.canaries} canaries"

    def to_dict(self) -> dict[str, Any]:
        return {"canaries": self.canaries, "guesses": self.guesses, "correct": self.correct}


def _where(threshold: float | str, higher: bool, inclusive: bool = False) -> str:
    """Which scores mean "member"."""
    sign = (">", "≥")[inclusive] if higher else ("<", "≤")[inclusive]
    return f"score {sign} {threshold if isinstance(threshold, str) else format(threshold, '.6g')}"


@dataclass(frozen=True, repr=False)
class LowerBound(SpeaksOfNeighbours):
    """With this confidence, the training is not (ε', δ)-DP for any ε' below `epsilon`."""

    epsilon: float
    delta: float
    confidence: float
    relation: Relation
    method: str
    kind: Kind
    proof: Proof
    group_size: int = 1
    unit: str = RECORD

    def __str__(self) -> str:
        at = f"at δ = {self.delta:g} ({self.neighbours.in_groups(self.group_size)})"
        if self.kind is Kind.ESTIMATE:
            return f"ε ≈ {self.epsilon:.3f} {at}: an estimate, not a bound; {self.method}"
        return f"ε ≥ {down(self.epsilon)} {at}, {self.kind}, {self.confidence:.12g} confidence, {self.method}"

    def __repr__(self) -> str:
        return f"LowerBound({self})"

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.proof.to_dict(),  # first: a proof has a kind and a method of its own, which are not the bound's
            "epsilon": self.epsilon,
            "delta": self.delta,
            "confidence": self.confidence,
            **self.neighbours.to_dict(),
            "method": self.method,
            "kind": self.kind.value,
            "group_size": self.group_size,
        }


@dataclass(frozen=True, repr=False)
class ClaimTest:
    """Whether the evidence refutes a claim, and what comes nearest to doing so.

    `claimed_tpr` is the largest true-positive rate that the claim allows where the proof stands (none if a proof
    is not about one threshold).
    """

    refuted: bool
    claim: Claim
    confidence: float
    method: str
    kind: Kind
    proof: Proof
    claimed_tpr: float | None = None

    @property
    def comparison(self) -> str:
        """What was seen beside what the claim allows."""
        if self.claimed_tpr is None:
            return str(self.proof)
        counts = getattr(self.proof, "counts", None)
        beyond = counts is not None and 1.0 - counts.fnr > self.claimed_tpr
        chance = ", and the excess is within chance" if beyond and not self.refuted else ""
        return f"{self.proof}; the claim allows TPR {self.claimed_tpr:.3f} there{chance}"

    def __str__(self) -> str:
        verb = "refuted" if self.refuted else "not refuted"
        sure = f"{self.kind}, {self.confidence:.12g} confidence, {self.method}"
        return f"{self.claim.describe()}: {verb} ({sure}); {self.comparison}"

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
            **self.proof.to_dict(),
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
        sure = "an estimate, not a limit" if self.kind is Kind.ESTIMATE else f"{self.confidence:.12g} confidence"
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
