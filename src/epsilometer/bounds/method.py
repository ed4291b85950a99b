"""What every method for independent trials can do: bound, test a claim, and say how powerful it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from epsilometer import validate
from epsilometer.bounds.result import ClaimTest, Kind, LowerBound, Proof
from epsilometer.claims import Claim
from epsilometer.errors import unknown_name
from epsilometer.evidence import PairedRuns, require_evidence

MEANING = {"higher": "", "lower": ", lower scores mean member", "either": ", both directions tried"}


class Refuter(Protocol):
    """What can test a claim."""

    def test(self, evidence: Any, claim: Claim, *, confidence: float = ..., direction: str = ...) -> ClaimTest: ...


class Method(Refuter, Protocol):
    """A way from evidence of one kind to bounds and tests, with its settings. All of them pay for what they choose."""

    name: ClassVar[str]
    evidence_type: ClassVar[type]  # the kind of evidence

    @property
    def kind(self) -> Kind: ...

    def bound(
        self, evidence: Any, *, delta: float = 0.0, confidence: float = 0.95, direction: str = "higher"
    ) -> LowerBound: ...

    def power(
        self,
        claim: Claim,
        truth: Claim,
        *,
        out_trials: int,
        in_trials: int,
        confidence: float = 0.95,
        group_size: int = 1,
    ) -> float:
        """The probability that so many trials refute `claim` when the attack attains the curve `truth`."""

    def as_seen_by(self, evidence: Any) -> Method:
        """The same method for scores on the scale of `power`'s attacks: minus the false-positive rate."""


@runtime_checkable
class Sequential(Protocol):
    """A method that may look at any time, so that an audit can stop as soon as it has enough."""

    def enough(self, evidence: Any, claim: Claim, delta: float, confidence: float) -> bool: ...


def is_sequential(method: object) -> bool:
    """Whether it may look at any time; others look once, at all of the trials that were planned."""
    return isinstance(method, Sequential)


@dataclass(frozen=True)
class OneWay:
    """Scores to be read in one direction, and the share of α that this reading gets."""

    evidence: PairedRuns  # higher means member
    alpha: float
    higher: bool  # whether that is also so in the scores as they were given


def require_method_input(
    method: str, evidence: PairedRuns, confidence: float, direction: str, delta: float = 0.0
) -> list[OneWay]:
    """The readings of the scores that `direction` asks for; everything else is refused."""
    validate.delta(delta)
    require_evidence(method, evidence, PairedRuns, "the scores of independent trials (PairedRuns)")
    alpha = 1.0 - validate.confidence(confidence)
    if direction not in MEANING:
        raise unknown_name("direction", direction, MEANING)
    if direction == "either":
        return [OneWay(evidence, alpha / 2, True), OneWay(evidence.flipped(), alpha / 2, False)]
    return [OneWay(evidence, alpha, True) if direction == "higher" else OneWay(evidence.flipped(), alpha, False)]


def best_reading(
    found: Sequence[tuple[float, Proof]],
    evidence: PairedRuns,
    delta: float,
    confidence: float,
    method: str,
    kind: Kind,
) -> LowerBound:
    """The largest of the ε that the readings gave, each at its share of α, with its proof."""
    epsilon, proof = max(found, key=lambda pair: pair[0])
    return LowerBound(
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        relation=evidence.relation,
        unit=evidence.unit,
        method=method,
        kind=kind,
        proof=proof,
        group_size=evidence.group_size,
    )


def strongest(tests: Sequence[ClaimTest]) -> ClaimTest:
    """The test that refutes, or else the first."""
    return next((test for test in tests if test.refuted), tests[0])
