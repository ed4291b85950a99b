"""How claim, lower bound and evidence fit together."""

from __future__ import annotations

from typing import Any

import numpy as np

from epsilometer.bounds import ClaimTest, Kind, Method, attack_strength, attacks_of_strength, blind_spot
from epsilometer.bounds.strength import SHAPES
from epsilometer.claims import Claim
from epsilometer.evidence import Evidence
from epsilometer.neighbours import require_same_neighbours
from epsilometer.rounding import confidence, simulated, up
from epsilometer.verdict import DOUBTFUL, ENOUGH_POWER, FAULT, Outcome, Verdict

FEWEST_TRIALS = 20


def decide(evidence: Evidence, test: ClaimTest, method: Method) -> Verdict:
    """The verdict on the claim that was tested.

    Only a certified test can say `violated`. `consistent` needs power: the attack's strength (a lower limit on
    it) is doubled, and the same test is simulated at that strength.
    """
    require_same_neighbours("the claim", test.claim.neighbours, "the evidence", evidence.neighbours)
    if test.refuted and test.kind is Kind.CERTIFIED:
        reason = f"{test.claim.statement} is refuted with {confidence(test.confidence)}: {test.comparison}"
        return Verdict(Outcome.VIOLATED, reason, refuted=test.claim.statement)
    sizes = evidence.sizes
    says_nothing = _says_nothing(sizes, test)
    if says_nothing:
        return Verdict(Outcome.INCONCLUSIVE, says_nothing)
    pairs = evidence.as_pairs()
    if len(np.unique(np.concatenate([pairs.out_scores, pairs.in_scores]))) == 1:
        reason = "no violation found, and all scores are equal: this attack sees nothing; use another adversary"
        return Verdict(Outcome.INCONCLUSIVE, reason)
    power = least_power(
        method.as_seen_by(evidence),
        test.claim,
        attack_strength(pairs),
        out_trials=sizes["out"],
        in_trials=sizes["in"],
        confidence=test.confidence,
        group_size=evidence.group_size,
    )
    unseen = _unseen(evidence, sizes, test)
    p_value = getattr(test.proof, "p_value", 1.0)
    if p_value <= DOUBTFUL:
        reason = (
            "no violation found, but the attack is about as strong as the claim allows, or stronger: a training that "
            f"just keeps the claim shows as much in {up(100 * p_value, 2)} % of audits at most; run more trials"
        )
        return Verdict(Outcome.INCONCLUSIVE, reason, power, unseen)
    caught = f"an attack twice as strong in {simulated(power)} of cases ({SHAPES})"
    if power >= ENOUGH_POWER:
        reason = f"no violation found, and an audit like this catches {caught}"
        return Verdict(Outcome.CONSISTENT, reason, power, unseen)
    reason = (
        f"no violation found, but an audit like this is weak: it catches {caught}; "
        "run more trials or a stronger adversary"
    )
    return Verdict(Outcome.INCONCLUSIVE, reason, power, unseen)


def least_power(method: Method, claim: Claim, strength: float, **audit: Any) -> float:
    """The probability that such an audit refutes `claim` by an attack `FAULT` times as strong; `audit` is what else
    `Method.power` asks for.

    An area under the curve does not tell the shape of the curve. A Gaussian attack has its largest likelihood ratios in
    its tails; randomized response has one ratio only, and doubling its ε may not even exceed the claim. So both are
    computed, and the smaller power counts. Provisional: an attack of a third shape may be caught more rarely.
    """
    power = 1.0
    for attack in attacks_of_strength(strength, FAULT, claim.neighbours):
        if power > 0:  # audits that have to be simulated take a while
            power = min(power, method.power(claim, attack, **audit))
    return power


def _says_nothing(sizes: dict[str, int], test: ClaimTest) -> str:
    """Why such an audit can say nothing, however it ends; empty if it can."""
    if test.claim.is_vacuous:
        return "the claim promises nothing (ε = ∞), so nothing can refute it"
    if test.kind is not Kind.CERTIFIED:
        what = {Kind.FAMILY: "a bound for a family of mechanisms", Kind.CREDIBLE: "a credible bound"}
        given = what.get(test.kind, "an estimate")
        return f"{test.method} gives {given}, which can neither refute nor support a claim"
    if min(sizes.values()) < FEWEST_TRIALS:
        return f"no violation found, but fewer than {FEWEST_TRIALS} trials per world tell nothing of an attack"
    return ""


def _unseen(evidence: Evidence, sizes: dict[str, int], test: ClaimTest) -> float | None:
    """How rare a leak may be and stay unseen; canaries of one run speak of one training only."""
    if not evidence.independent:
        return None
    return blind_spot(test.claim, sizes["out"], sizes["in"], confidence=test.confidence, group_size=evidence.group_size)
