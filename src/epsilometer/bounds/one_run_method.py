"""One-run bounds as a method of audits: bound, test and power for the canaries of one training or a few."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from epsilometer import validate
from epsilometer.bounds.one_run import Threshold, strategy_name
from epsilometer.bounds.one_run_fdp import one_run_fdp, refute_one_run
from epsilometer.bounds.result import ClaimTest, Kind, LowerBound
from epsilometer.claims import Claim
from epsilometer.errors import InvalidInput
from epsilometer.evidence import OneRun


@dataclass(frozen=True)
class OneRunPoint:
    """Right guesses against (ε, δ) or a whole curve by the recursion of Mahloujifar et al. (2024).

    Certified: it assumes nothing but fair coins. `guesses` is how many canaries are guessed, chosen beforehand; a grid
    that is paid for without it; all of them by a `Threshold`.
    """

    guesses: int | Threshold | None = None
    seed: int = 0
    name: ClassVar[str] = "one-run-point"
    kind: ClassVar[Kind] = Kind.CERTIFIED
    evidence_type: ClassVar[type] = OneRun

    def __post_init__(self) -> None:
        if strategy_name(self.guesses) == "fixed":
            validate.whole("guesses", self.guesses, least=1)
        validate.whole("seed", self.seed, least=0)

    def bound(
        self, evidence: OneRun, *, delta: float = 0.0, confidence: float = 0.95, direction: str = "higher"
    ) -> LowerBound:
        _require_higher(direction)
        return one_run_fdp(evidence, delta=delta, confidence=confidence, guesses=self.guesses, family="point")

    def test(self, evidence: OneRun, claim: Claim, *, confidence: float = 0.95, direction: str = "higher") -> ClaimTest:
        _require_higher(direction)
        return refute_one_run(evidence, claim, confidence=confidence, guesses=self.guesses)

    def power(
        self,
        claim: Claim,
        truth: Claim,
        *,
        out_trials: int,
        in_trials: int,
        confidence: float = 0.95,
        group_size: int = 1,
        repetitions: int = 100,
    ) -> float:
        """The share of simulated runs, each canary's score on the ROC curve `truth`, that refute the claim.

        A threshold belongs to an attack's own scores, not to these: all are guessed, half of them "in".
        """
        rng = np.random.default_rng(self.seed)
        canaries, refuted = out_trials + in_trials, 0
        judge = replace(self, guesses=canaries) if strategy_name(self.guesses) == Threshold.name else self
        for _ in range(repetitions):
            coins = rng.random(canaries) < 0.5
            places = rng.random(canaries)
            rates = np.where(coins, 1.0 - truth.max_tpr(1.0 - places), places)
            run = OneRun(-rates, coins, claim.neighbours, group_size)
            refuted += judge.test(run, claim, confidence=confidence).refuted
        return refuted / repetitions

    def as_seen_by(self, evidence: OneRun) -> OneRunPoint:
        return self


def _require_higher(direction: str) -> None:
    if direction != "higher":
        raise InvalidInput("direction", direction, "higher with one run", "turn the scores' sign")
