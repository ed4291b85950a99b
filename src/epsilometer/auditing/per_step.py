"""From single steps to a whole training: the method of audits whose evidence is per step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from epsilometer.accounting import DpSgd, curve, epsilon_floor
from epsilometer.accounting.mechanism import sensitivity
from epsilometer.bounds import ClaimTest, Kind, LowerBound, gaussian_bound, gaussian_strength_limit
from epsilometer.claims import Claim, Relation
from epsilometer.evidence import PerStep

_RATES = np.concatenate([np.geomspace(1e-9, 0.1, 60), np.linspace(0.11, 0.9, 60)])  # false-positive rates to compare at


@dataclass(frozen=True)
class ComposedSteps:
    """A limit on the noise of one step, and what the accountant (PLD) says of all steps with that noise.

    It assumes the family: steps of Gaussian noise and Poisson sampling at the claimed rate. So it cannot accuse.
    """

    mechanism: DpSgd
    name: ClassVar[str] = "gaussian-steps"
    takes: ClassVar[type] = PerStep
    kind: ClassVar[Kind] = Kind.FAMILY

    def bound(
        self, evidence: PerStep, *, delta: float = 0.0, confidence: float = 0.95, direction: str = "higher"
    ) -> LowerBound:
        def composed(mu: float) -> float:
            seen = self._with_strength(mu, evidence.relation)
            return epsilon_floor(seen, delta, evidence.relation) if seen else 0.0

        return gaussian_bound(evidence, delta=delta, confidence=confidence, direction=direction, composed=composed)

    def test(
        self, evidence: PerStep, claim: Claim, *, confidence: float = 0.95, direction: str = "higher"
    ) -> ClaimTest:
        """Refuted if the curve of steps with that noise is anywhere above the claim's."""
        limit = gaussian_strength_limit(evidence, confidence=confidence, direction=direction)
        seen = self._with_strength(limit.mu, evidence.relation)
        reached = curve(seen, evidence.relation).max_tpr(_RATES) if seen else _RATES
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

    def _with_strength(self, mu: float, relation: Relation) -> DpSgd | None:
        """The training if μ is the strength of its steps; none without any."""
        return replace(self.mechanism, noise_multiplier=sensitivity(relation) / mu) if mu > 0 else None
