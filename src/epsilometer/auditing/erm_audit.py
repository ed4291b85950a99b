"""Audits of private ERM on a pair of neighbours: what is certified beside what is known and what is claimed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilometer.adversaries import Neighbour
from epsilometer.auditing.plan import Plan
from epsilometer.auditing.runner import AuditResult, run
from epsilometer.bounds import ExactRank, LowerBound
from epsilometer.claims import Claim, PointClaim
from epsilometer.data import RegressionData
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms.erm import SOUND, Flaws, Neighbours, PrivateErm
from epsilometer.runs.executors import Executor
from epsilometer.runs.store import Store
from epsilometer.subjects import ErmTraining


@dataclass(frozen=True)
class ErmAudit:
    """All at the mechanism's δ. `exact` is the ε of these two worlds, which no test can exceed: known for output
    perturbation, where the noise is added to models `separation` apart.
    """

    lower_bound: LowerBound
    exact: float | None
    claimed: PointClaim  # for all neighbours
    separation: float | None
    sensitivity: float | None
    result: AuditResult

    @property
    def tightness(self) -> float | None:
        """What part of the sensitivity these two worlds use: 1, if the theory is tight here."""
        return None if self.separation is None or not self.sensitivity else self.separation / self.sensitivity

    @property
    def violated(self) -> bool:
        """Whether the claim that was tested is refuted."""
        return self.result.test.refuted

    def to_dict(self) -> dict[str, Any]:
        return {
            "lower_bound": self.lower_bound.to_dict(),
            "exact": self.exact,
            "claimed": self.claimed.to_dict(),
            "separation": self.separation,
            "sensitivity": self.sensitivity,
            "tightness": self.tightness,
            "verdict": self.result.verdict.to_dict(),
        }


def erm_plan(
    erm: PrivateErm,
    pair: Neighbours,
    *,
    claim: Claim | None = None,
    flaws: Flaws = SOUND,
    trials: int = 100_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Plan:
    """The audit as a plan, which `run` judges as any other.

    The claim is the mechanism's own: for output perturbation with normal noise the whole curve, else its point.
    """
    training = ErmTraining(erm, RegressionData("neighbours", pair.x, pair.y), flaws)
    adversary = Neighbour(tuple(np.ravel(pair.other_x).tolist()), float(pair.other_y))
    claimed = erm.curve(len(pair.x)) if claim is None else claim
    return Plan(training, claimed, erm.delta, adversary, trials, confidence, seed=seed)


def audit_erm(
    erm: PrivateErm,
    pair: Neighbours,
    *,
    claim: Claim | None = None,
    flaws: Flaws = SOUND,
    trials: int = 100_000,
    confidence: float = 0.95,
    seed: int = 0,
    store: Store | None = None,
    executor: Executor | None = None,
) -> ErmAudit:
    """Train `trials` times on each of two neighbours and judge the claim.

    >>> from epsilometer.mechanisms.erm import OutputPerturbation, Problem, SmoothedHinge, lone_pair
    >>> erm = OutputPerturbation(Problem(SmoothedHinge(), 0.1), epsilon=1.0)
    >>> found = audit_erm(erm, lone_pair(erm.problem, records=50), trials=5000)
    >>> found.violated, round(found.exact, 6), bool(0.7 < found.lower_bound.epsilon < 1.0)
    (False, 1.0, True)
    """
    n = len(pair.x)
    if n < 1 or pair.y.shape != (n,):
        raise InvalidInput("pair", f"{n} records", "records with a target each")
    plan = erm_plan(erm, pair, claim=claim, flaws=flaws, trials=trials, confidence=confidence, seed=seed)
    result = run(plan, store=store, executor=executor)
    bound = ExactRank().bound(result.evidence.as_pairs(), delta=erm.delta, confidence=confidence)
    known = erm.known_leak(pair, flaws)
    if known is None:
        return ErmAudit(bound, None, erm.claim, None, None, result)
    return ErmAudit(bound, known.epsilon, erm.claim, known.separation, known.sensitivity, result)
