"""The ε that membership attacks certify by coins: above the truth in at most α of the runs, on noisy bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from noisy_bits import NoisyBits, numbered
from scipy import stats

from epsilometer.evidence import Coins
from epsilometer.membership import Attack, LossAttack, MembershipPlan, Seen, run_membership

ALPHA, REPETITIONS, EPSILON = 0.05, 400, 1.0


@dataclass(frozen=True)
class Copying(Attack):
    """Takes whoever is in the first reference for a member: of references with coins of their own, a mere guess."""

    name: ClassVar[str] = "copying"
    summary: ClassVar[str] = "who is in a reference"

    def scores(self, seen: Seen) -> np.ndarray:
        return seen.member[0].astype(float)


class Shared(MembershipPlan):
    """The mistake that would be made if references were trained on what the target was trained on."""

    def member(self, index: int) -> Coins:
        return super().member(0)


def exceeding(kind: type[MembershipPlan], epsilon: float, repetitions: int) -> tuple[int, float]:
    """How many of the certified ε are above the truth, and their mean."""
    bits, found = NoisyBits(numbered(200), epsilon), []
    for seed in range(repetitions):
        plan = kind(bits, numbered(2), references=4, seed=seed)
        bound = run_membership(plan, [LossAttack(), Copying()], delta=0.0).bound
        assert bound is not None
        found.append(bound.epsilon)
    return int(np.sum(np.array(found) > epsilon + 1e-9)), float(np.mean(found))


def test_certified_by_coins() -> None:
    wrong, mean = exceeding(MembershipPlan, EPSILON, REPETITIONS)
    assert stats.binomtest(wrong, REPETITIONS, ALPHA, alternative="greater").pvalue > 1e-3
    assert 0.3 < mean < EPSILON  # it is not right by saying nothing


def test_references_that_share_the_targets_coins_would_be_noticed() -> None:
    wrong, _ = exceeding(Shared, EPSILON, 40)
    assert stats.binomtest(wrong, 40, ALPHA, alternative="greater").pvalue < 1e-3
