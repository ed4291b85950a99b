"""The answer before all details: the verdict, what it is about, and the one number to quote."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from epsilometer.bounds.result import Kind, LowerBound
from epsilometer.bounds.strength import EITHER, SHAPES, area_under_curve
from epsilometer.claims import Claim, StepClaim
from epsilometer.report.release import DO_NOT_RELEASE, is_refused
from epsilometer.rounding import confidence, down, percent, simulated, up

if TYPE_CHECKING:
    from epsilometer.accounting import UpperBound
    from epsilometer.auditing import AuditResult, Judgement
    from epsilometer.evidence import Evidence
    from epsilometer.verdict import Verdict

_RATES = np.linspace(0.0, 1.0, 2001)
_NO_PROOF = "A lower bound is no proof of privacy: a stronger attack may show more"
_MEANING = {
    "violated": "A certified test refutes the claim. A training that keeps its claim is accused like this with "
    "probability {alpha:.3g} at most.",
    "consistent": "No violation was found, and an audit like this catches an attack twice as strong in {power} of "
    f"cases or more, by simulation, {EITHER}. That is no proof of privacy: a stronger adversary, or other data, may "
    "show more.",
    "inconclusive": "No violation was found, but the audit was too weak to say more. This is no sign of privacy.",
}


@dataclass(frozen=True)
class Headline:
    """One or two sentences, and the number to quote. `verdict` is none where no claim was tested."""

    verdict: str | None
    sentences: tuple[str, ...]
    quote: str

    def __str__(self) -> str:
        return " ".join(self.sentences)


def headline_of(result: AuditResult | Judgement) -> Headline:
    """Of an audit, or of given evidence that was judged (`auditing.judge_evidence`)."""
    if not hasattr(result, "plan"):  # nothing is known of the training but its scores
        found = result
        scores = cast("Evidence", found.evidence) if found.evidence.has_scores else None
        return headline(found.lower_bound, verdict=found.verdict, claim=found.claim, evidence=scores)
    audit = cast("AuditResult", result)
    return headline(
        audit.lower_bound,
        verdict=audit.verdict,
        claim=audit.plan.claim,
        evidence=audit.evidence,
        family=audit.family_bound,
        theory=theory_of(audit.upper_bound),
        injected=audit.plan.subject.injected(),
    )


def headline(
    lower: LowerBound,
    *,
    verdict: Verdict | None = None,
    claim: Claim | None = None,
    evidence: Evidence | None = None,
    family: LowerBound | None = None,
    theory: str = "",
    injected: Sequence[str] = (),
) -> Headline:
    """Of a lower bound, and of a verdict on a claim where one was tested."""
    quote = quoted(lower)
    numbers = "; ".join(part for part in (f"Quote {quote}", _if_dp_sgd(lower, family), theory) if part)
    if verdict is None or claim is None:
        return Headline(None, (f"{numbers}.", f"{_NO_PROOF}; no claim was tested."), quote)
    fault = " (a fault was injected on purpose)" if injected else ""
    first = f"{verdict.outcome}{fault}: {_found(verdict, claim, lower, _strength(claim, evidence))}."
    if is_refused(verdict.outcome.value):
        first += f" {DO_NOT_RELEASE}"
    return Headline(verdict.outcome.value, (first, f"{numbers}."), quote)


def meaning(verdict: str | None, sure: float) -> str:
    """What a verdict at this confidence says, and what it does not."""
    from epsilometer.verdict import ENOUGH_POWER

    words = _MEANING.get(verdict or "", f"{_NO_PROOF}; no claim was tested.")
    return words.format(alpha=1.0 - sure, power=percent(ENOUGH_POWER))


def quoted(lower: LowerBound) -> str:
    """The number with all that it needs to be true; rounded down, so that it stays true."""
    at = f"at δ = {lower.delta:g} ({lower.neighbours.in_groups(lower.group_size)})"
    sure = confidence(lower.confidence)
    if lower.kind is Kind.ESTIMATE:
        return f"nothing: ε ≈ {down(lower.epsilon)} {at} is an estimate, which may be too high"
    if lower.kind is Kind.CREDIBLE:
        return f"ε ≥ {down(lower.epsilon)} {at}, credible with {100 * lower.confidence:.10g} % under its prior"
    if lower.kind is Kind.FAMILY:
        return f"ε ≥ {down(lower.epsilon)} {at} if the training is as it states, else nothing; {sure}"
    return certified(lower.epsilon, at, sure)


def certified(epsilon: float, at: str, sure: str) -> str:
    """A certified ε to quote; 0 is none, and no sign of privacy."""
    if epsilon <= 0:
        return f"nothing: no ε above 0 is certified {at} with {sure}, which is no sign of privacy"
    return f"ε ≥ {down(epsilon)} {at}, certified with {sure}"


def theory_of(bound: UpperBound | None) -> str:
    """What theory promises."""
    if bound is None:
        return "theory promises nothing, since it is not stated how much noise is added to what"
    doubt = ", with a caveat" if bound.caveat else ""
    return f"by what it states of itself, theory promises ε ≤ {up(bound.epsilon)}{doubt}"


def _if_dp_sgd(lower: LowerBound, family: LowerBound | None) -> str:
    """What follows if the family's assumption holds; never mixed up with what is certified."""
    if family is None or lower.kind is not Kind.CERTIFIED or family.epsilon <= lower.epsilon:
        return ""
    return f"if it is DP-SGD as stated, whatever its noise, ε ≥ {down(family.epsilon)}"


def _found(verdict: Verdict, claim: Claim, lower: LowerBound, attack: str) -> str:
    """What is refuted, or is not and why."""
    what, epsilon = _claimed(claim, lower)
    if verdict.refuted is not None:
        sure = f"is refuted with {confidence(lower.confidence)}"
        if verdict.refuted == StepClaim.statement:
            return f"the stated noise of its steps {sure}, and with it {what}, by {attack}"
        spared = claim.only_delta is None and lower.epsilon <= epsilon
        return f"{what} {sure}, {'though its point alone is not, ' if spared else ''}by {attack}"
    if verdict.outcome.value == "consistent" and verdict.power is not None:
        caught = simulated(verdict.power)
        strong = f"an audit like this catches one twice as strong in {caught} of cases ({SHAPES})"
        return f"no violation of {what} was found by {attack}; {strong}"
    return f"{what} was tested by {attack}; {verdict.reason}"


def _claimed(claim: Claim, lower: LowerBound) -> tuple[str, float]:
    """The claim in a few words, and its ε."""
    if claim.of_single_steps:
        return f"the stated noise ({claim.describe()})", math.inf
    epsilon = claim.epsilon_at(lower.delta)
    if claim.only_delta is not None:
        return f"the claimed ε = {_number(epsilon)}", epsilon
    return f"the claimed curve (ε = {_number(epsilon)} at δ = {lower.delta:g})", epsilon


def _strength(claim: Claim, evidence: Evidence | None) -> str:
    """The attack, and how often it would pick the member out of two: its area under the curve, in words."""
    if evidence is None:
        return "what was counted"
    area = area_under_curve(evidence.as_pairs())
    rates = claim.strongest.max_tpr(_RATES, evidence.group_size)
    allowed = float(np.mean((rates[1:] + rates[:-1]) / 2.0))  # np.trapezoid is not in numpy 1.26
    return (
        f"an attack that picks the member out of two {percent(area)} of the time "
        f"(guessing: 50 %, the claim allows {percent(allowed)})"
    )


def _number(epsilon: float) -> str:
    return "∞" if math.isinf(epsilon) else f"{epsilon:.4g}"
