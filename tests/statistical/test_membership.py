"""What membership attacks show, the ε by coins and the strongest attack's rates: too high in α of the runs at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from noisy_bits import NoisyBits, numbered
from repetitions import surprising
from scipy import stats

from epsilometer.data import Dataset
from epsilometer.evidence import Coins
from epsilometer.membership import Attack, GivenModel, LossAttack, MembershipPlan, Seen, run_membership
from epsilometer.metrics import TruePositives, share

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


@dataclass(frozen=True)
class Guessing(Attack):
    """Scores that have nothing to do with the model."""

    summary: ClassVar[str] = "guesses"
    rng: np.random.Generator

    def scores(self, seen: Seen) -> np.ndarray:
        return self.rng.standard_normal(len(seen.y))


def headlines_of_guesses(attacks: int, repetitions: int, records: int = 400) -> list[TruePositives]:
    """True positives at 1 % of the strongest of several attacks that only guess."""
    kinds = [type(f"Guessing{i}", (Guessing,), {"name": f"guess-{i}"}) for i in range(attacks)]
    rng, found = np.random.default_rng(33), []
    nobody = Dataset("nobody", np.zeros((0, 1)), np.zeros(0, int), 2)
    for _ in range(repetitions):
        member = rng.permutation(np.arange(records) % 2 == 0)
        model = GivenModel(lambda x: np.full((len(x), 2), 0.5), member)
        plan = MembershipPlan(None, nobody, references=0, given=model, records=numbered(records))
        result = run_membership(plan, [kind(rng) for kind in kinds])
        found.append(result.strongest.tpr_at[-1])
    return found


def test_the_strongest_of_several_attacks_is_paid_for() -> None:
    """Of guesses, the true TPR at a threshold is its true FPR. The old headline, an interval of 95 % for one attack at
    exactly 1 %, is above that too often: it neither pays for the choice nor looks at the true false-positive rate.
    """
    found = headlines_of_guesses(attacks=10, repetitions=REPETITIONS)
    truth = [stats.norm.sf(one.threshold) for one in found]
    wrong = sum(one.tpr.low > true or one.fpr_high < true for one, true in zip(found, truth, strict=True))
    above_guessing = sum(one.tpr.low > one.fpr_high for one in found)
    assert not surprising(wrong, REPETITIONS)
    assert not surprising(above_guessing, REPETITIONS)
    old = [share(round(200 * one.tpr.value), 200) for one in found]
    unpaid = sum(one.low > true for one, true in zip(old, truth, strict=True))
    assert surprising(unpaid, REPETITIONS)
    assert surprising(sum(one.low > 0.01 for one in old), REPETITIONS)


def test_a_single_attack_pays_for_itself_only() -> None:
    (one,) = headlines_of_guesses(attacks=1, repetitions=1)
    (ten,) = headlines_of_guesses(attacks=10, repetitions=1)
    assert one.tpr.confidence == 0.95
    assert ten.tpr.confidence == pytest.approx(0.995)
    assert one.fpr_high == pytest.approx(stats.beta.ppf(0.975, 3, 198))
    assert ten.fpr_high == pytest.approx(stats.beta.ppf(0.9975, 3, 198))
