"""From single steps to a whole training: the methods of audits whose evidence is per step."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from epsilometer import validate
from epsilometer.accounting import DpSgd, curve, epsilon_floor
from epsilometer.arrays import Floats
from epsilometer.bounds import (
    METHODS,
    ClaimTest,
    Kind,
    LowerBound,
    NamedMethod,
    StepWealth,
    StrengthLimit,
    bet_on_steps,
    gaussian_bound,
    gaussian_strength_limit,
    share_refuted_in_steps,
)
from epsilometer.claims import Claim, StepClaim
from epsilometer.errors import InvalidInput
from epsilometer.evidence import PerStep, require_evidence
from epsilometer.neighbours import Neighbours, Relation, require_same_neighbours, sensitivity

_RATES = np.concatenate([np.geomspace(1e-9, 0.1, 60), np.linspace(0.11, 0.9, 60)])  # false-positive rates to compare at


@dataclass(frozen=True)
class ComposedSteps:
    """A limit on the noise of one step, and what the accountant (PLD) says of all steps with that noise.

    It assumes the family: steps of Gaussian noise and Poisson sampling at the claimed rate, and scores of one step that
    are independent. So it cannot accuse.
    """

    mechanism: DpSgd
    name: ClassVar[str] = "gaussian-steps"
    summary: ClassVar[str] = "noise of single steps, composed by PLD; for a family of mechanisms (gradient-steps)"
    evidence_type: ClassVar[type] = PerStep
    kind: ClassVar[Kind] = Kind.FAMILY

    def bound(
        self, evidence: PerStep, *, delta: float = 0.0, confidence: float = 0.95, direction: str = "higher"
    ) -> LowerBound:
        def composed(mu: float) -> float:
            return epsilon_of_steps(self.mechanism, mu, delta, evidence.relation)

        return gaussian_bound(evidence, delta=delta, confidence=confidence, direction=direction, composed=composed)

    def test(
        self, evidence: PerStep, claim: Claim, *, confidence: float = 0.95, direction: str = "higher"
    ) -> ClaimTest:
        """Refuted if the curve of steps with that noise is anywhere above the claim's."""
        require_same_neighbours("the claim", claim.neighbours, "the evidence", evidence.neighbours)
        limit = gaussian_strength_limit(evidence, confidence=confidence, direction=direction)
        reached = _curve_of_steps(self.mechanism, limit.mu, evidence.relation)
        refuted = bool(np.any(reached > claim.max_tpr(_RATES) + 1e-9))
        return ClaimTest(refuted, claim, confidence, f"{self.name}, {limit.method}", self.kind, limit)

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
        """None: what assumes a family refutes nothing."""
        return 0.0

    def as_seen_by(self, evidence: PerStep) -> ComposedSteps:
        return self


@dataclass(frozen=True)
class StepBets:
    """Bets on one step after another (see `StepProcess`): a certified test of what the training states of its steps,
    valid whenever one stops.

    A claim that is the curve of the stated mechanism stands and falls with its steps. A bare point, or any other curve,
    does not: there is only the family's answer then. ε of the training follows from the limit on μ of a step by the
    accountant (PLD), if steps are Gaussian and records sampled at the stated rate: a family bound.
    """

    mechanism: DpSgd
    steps: int | None = None  # of the evidence it is used on, where power is asked for
    name: ClassVar[str] = "step-bets"
    summary: ClassVar[str] = "betting on one step of a training after another (default for gradient-steps)"
    evidence_type: ClassVar[type] = PerStep
    kind: ClassVar[Kind] = Kind.CERTIFIED

    def bound(
        self, evidence: PerStep, *, delta: float = 0.0, confidence: float = 0.95, direction: str = "higher"
    ) -> LowerBound:
        validate.delta(delta)
        wealth = self._wealth(evidence, confidence, direction)
        stated = self._stated(evidence.neighbours).strongest.mu
        known = wealth.noise_factor is not None and math.isfinite(stated)
        mu = stated / wealth.noise_factor if known and wealth.noise_factor else 0.0
        return LowerBound(
            epsilon=epsilon_of_steps(self.mechanism, mu, delta, evidence.relation),
            delta=delta,
            confidence=confidence,
            relation=evidence.relation,
            unit=evidence.unit,
            method=f"DP-SGD with the noise of its steps, {self.name}",
            kind=Kind.FAMILY,
            proof=StrengthLimit(mu, confidence, self.name, Kind.CERTIFIED, len(evidence.scores)),
        )

    def test(
        self, evidence: PerStep, claim: Claim, *, confidence: float = 0.95, direction: str = "higher"
    ) -> ClaimTest:
        """Certified for the mechanism's own curve, or what is stated of its steps; the family's answer for others."""
        if not self._speaks_of(claim):
            return ComposedSteps(self.mechanism).test(evidence, claim, confidence=confidence, direction=direction)
        wealth = self._wealth(evidence, confidence, direction)
        stated = self._stated(evidence.neighbours)
        return ClaimTest(wealth.refuted_at is not None, stated, confidence, self.name, self.kind, wealth)

    def enough(self, evidence: PerStep, claim: Claim, delta: float, confidence: float) -> bool:
        """Whether an audit may stop: the statement is refuted."""
        return self._speaks_of(claim) and self.test(evidence, claim, confidence=confidence).refuted

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
        """The probability of a refutation if the scores of a step are independent, each as strong as `truth`."""
        steps = self.mechanism.steps if self.steps is None else self.steps
        canaries = max(1, (out_trials + in_trials) // steps)
        return share_refuted_in_steps(self._stated(claim.neighbours), truth, steps, canaries, confidence)

    def as_seen_by(self, evidence: PerStep) -> StepBets:
        return replace(self, steps=evidence.steps)

    def _speaks_of(self, claim: Claim) -> bool:
        """Whether the claim stands and falls with what is stated of steps."""
        return claim in (self._stated(claim.neighbours), curve(self.mechanism, claim.neighbours))

    def _stated(self, neighbours: Neighbours) -> StepClaim:
        return StepClaim.of_noise(self.mechanism.noise_multiplier, neighbours)

    def _wealth(self, evidence: PerStep, confidence: float, direction: str) -> StepWealth:
        require_evidence(self.name, evidence, PerStep, "scores of single steps (PerStep)")
        if direction != "higher":
            raise InvalidInput("direction", direction, "higher: a score tells what the noisy sum shows")
        return bet_on_steps(evidence, self._stated(evidence.neighbours), confidence=confidence)


def _register(method: type[StepBets | ComposedSteps]) -> None:
    """In the table of methods, whose room knows no accountant."""
    entry = NamedMethod(
        method.name,
        method.summary,
        (PerStep,),
        Kind.FAMILY,
        "a fair coin for each gradient; Gaussian steps, sampled as stated",
        make=lambda settings: method(settings.mechanism),
        needs_mechanism=True,
    )
    METHODS.register(method.name, entry)


_register(StepBets)
_register(ComposedSteps)


def epsilon_of_steps(mechanism: DpSgd, mu: float, delta: float, relation: Relation) -> float:
    """ε of the training if μ is the strength of its steps, by PLD; none without any."""
    return epsilon_floor(_with_strength(mechanism, mu, relation), delta, relation) if mu > 0 else 0.0


def _curve_of_steps(mechanism: DpSgd, mu: float, relation: Relation) -> Floats:
    return curve(_with_strength(mechanism, mu, relation), relation).max_tpr(_RATES) if mu > 0 else _RATES


def _with_strength(mechanism: DpSgd, mu: float, relation: Relation) -> DpSgd:
    return replace(mechanism, noise_multiplier=sensitivity(relation) / mu)
