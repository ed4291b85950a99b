"""Family bounds: what follows if the training is a Gaussian mechanism of some strength μ (Nasr et al. 2023).

That no μ below a limit explains the scores is a test like any other. The family enters afterwards: one number then
fixes a whole curve, so that ε at any δ follows, also at a δ far beyond what so many trials could show by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from epsilometer import validate
from epsilometer.bounds.curve import largest_noise_multiplier, refute_curve
from epsilometer.bounds.exact_rank import ExactRank
from epsilometer.bounds.method import Method, is_sequential
from epsilometer.bounds.result import ClaimTest, Kind, LowerBound
from epsilometer.claims import Claim, GaussianClaim
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Counts, PairedRuns, PerStep, require_evidence

NAME = "gaussian"
MIDDLE = 0.3  # where single steps are told apart: the share of out-scores above


@dataclass(frozen=True, repr=False)
class StrengthLimit:
    """With this confidence, what gave the scores is not μ'-Gaussian DP for any μ' below `mu`."""

    mu: float
    confidence: float
    method: str
    kind: Kind
    scores: int

    def __str__(self) -> str:
        return f"μ ≥ {self.mu:.4g} from {self.scores} scores, {self.confidence:.12g} confidence, {self.method}"

    def __repr__(self) -> str:
        return f"StrengthLimit({self})"

    def to_dict(self) -> dict[str, Any]:
        return {"mu": self.mu, "scores": self.scores, "strength_method": self.method}


def gaussian_strength_limit(
    evidence: PairedRuns | Counts | PerStep,
    *,
    confidence: float = 0.95,
    method: Method | None = None,
    direction: str = "higher",
) -> StrengthLimit:
    """The largest μ below which every Gaussian curve is refuted; of one step, for the scores of single steps.

    For trials it is certified: a statement about one curve after another. `method` and `direction` are as in
    `refute_curve`. Scores of single steps are taken to be independent and alike, which is part of the family; they are
    many, and what tells weak steps apart lies in the middle, so one rank there (FPR about .3) is planned for them.

    >>> gaussian_strength_limit(Counts(tp=60, fp=5, fn=40, tn=95))
    StrengthLimit(μ ≥ 1.204 from 200 scores, 0.95 confidence, clopper-pearson (counts))
    """
    if method is not None and is_sequential(method):
        raise InvalidInput("method", method.name, "a method whose refutations are nested, such as ExactRank()")
    validate.confidence(confidence)
    of_steps = _is_of_steps(evidence)
    if of_steps:
        if not all(evidence.sizes.values()):  # all coins fell on one side
            return StrengthLimit(0.0, confidence, "no two kinds of steps", Kind.FAMILY, evidence.trial_count)
        method = method or _middle(evidence)
    pairs = _as_pairs(evidence)
    limit = largest_noise_multiplier(
        pairs,
        lambda sigma: GaussianClaim(1.0 / sigma, pairs.relation, pairs.unit),
        confidence=confidence,
        method=method,
        direction=direction,
        relative_tolerance=1e-3,
    )
    mu = 0.0 if np.isinf(limit.noise_multiplier) else 1.0 / limit.noise_multiplier
    kind = Kind.FAMILY if of_steps else limit.kind
    return StrengthLimit(mu, confidence, limit.method, kind, sum(pairs.sizes.values()))


def gaussian_bound(
    evidence: PairedRuns | Counts | PerStep,
    *,
    delta: float,
    confidence: float = 0.95,
    method: Method | None = None,
    direction: str = "higher",
    composed: Callable[[float], float] | None = None,
) -> LowerBound:
    """ε at δ of the Gaussian mechanism of the least strength that the scores allow.

    Trials speak of the whole training, taken to be μ-Gaussian DP. Single steps speak of one; `composed` says what ε
    follows from the μ of each for the training (an accountant's answer, at the same δ).

    >>> gaussian_bound(Counts(tp=60, fp=5, fn=40, tn=95), delta=1e-5).epsilon.round(2).item()
    5.43
    """
    validate.delta(delta)
    if delta == 0 and composed is None:
        raise InvalidInput("delta", delta, "above 0: a Gaussian mechanism has no ε at δ = 0", "a common choice is 1e-5")
    if (composed is not None) != _is_of_steps(evidence):
        expected = "a function from the μ of a step to ε, for the scores of single steps and for these only"
        raise InvalidInput("composed", composed, expected)
    limit = gaussian_strength_limit(evidence, confidence=confidence, method=method, direction=direction)
    epsilon = GaussianClaim(limit.mu).epsilon_at(delta) if composed is None else composed(limit.mu)
    return LowerBound(
        epsilon=np.float64(epsilon),
        delta=delta,
        confidence=confidence,
        relation=evidence.relation,
        unit=evidence.unit,
        method=f"{NAME} family, {limit.method}",
        kind=Kind.FAMILY if limit.kind is Kind.CERTIFIED else limit.kind,
        proof=limit,
        group_size=evidence.group_size,
    )


def refute_step(
    evidence: PerStep, claim: Claim, *, confidence: float = 0.95, method: Method | None = None
) -> ClaimTest:
    """Test what is claimed of one step, `GaussianClaim(sensitivity/σ)`, on the scores of single steps."""
    test = refute_curve(_as_pairs(evidence), claim, confidence=confidence, method=method or _middle(evidence))
    return ClaimTest(test.refuted, claim, confidence, test.method, Kind.FAMILY, test.proof, test.claimed_tpr)


def _is_of_steps(evidence: PairedRuns | Counts | PerStep) -> bool:
    needed = "independent trials (PairedRuns, Counts) or single steps (PerStep)"
    require_evidence(NAME, evidence, (PairedRuns, Counts, PerStep), needed)
    return not evidence.independent


def _middle(evidence: PairedRuns | Counts | PerStep) -> ExactRank:
    return ExactRank(rank=max(1, round(MIDDLE * evidence.sizes["out"])), calibrated=False)


def _as_pairs(evidence: PairedRuns | Counts | PerStep) -> PairedRuns | Counts:
    if _is_of_steps(evidence):
        return replace(cast(PerStep, evidence).as_pairs(), group_size=evidence.group_size)
    return cast(PairedRuns | Counts, evidence)
