"""A claim, judged by given evidence: whoever played the trials, bound, test and verdict are those of an audit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from epsilometer.auditing.decision import decide
from epsilometer.bounds import (
    METHODS,
    ClaimTest,
    ClopperPearson,
    Fixed,
    LowerBound,
    Method,
    attack_strength,
    clopper_pearson,
    default_method,
    method_named,
    mirrored,
    refute_curve,
)
from epsilometer.claims import Claim, require_claim
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Counts, OneRun, PairedRuns, require_evidence
from epsilometer.neighbours import require_same_neighbours
from epsilometer.verdict import Outcome, Verdict

MOST_COUNTED = 100_000  # trials per world of which power is simulated, for counts
Evidence = PairedRuns | OneRun | Counts


@dataclass(frozen=True, repr=False)
class Judgement:
    """A lower bound on ε, the test of a claim, and the verdict on it: what follows from evidence as it was given.

    `epsilometer.report.headline_of` says it in two sentences, with the number to quote.
    """

    evidence: Evidence
    claim: Claim
    lower_bound: LowerBound
    test: ClaimTest
    verdict: Verdict

    @property
    def claimed_epsilon(self) -> float:
        """What the claim says at the δ of the lower bound."""
        return self.claim.epsilon_at(self.lower_bound.delta)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, in the words of an audit's result."""
        delta = self.lower_bound.delta
        return {
            "lower_bound": self.lower_bound.to_dict(),
            "claim": {**self.claim.to_dict(), "epsilon": self.claimed_epsilon, "delta": delta},
            "test": self.test.to_dict(),
            "verdict": self.verdict.outcome.value,
            "reason": self.verdict.reason,
            "power": self.verdict.power,
            "blind_spot": self.verdict.blind_spot,
        }

    def __repr__(self) -> str:
        return f"Judgement({self.verdict}; {self.lower_bound})"


def judge_evidence(
    evidence: Evidence,
    claim: Claim,
    *,
    delta: float,
    confidence: float = 0.95,
    method: Method | str | None = None,
    direction: str = "higher",
) -> Judgement:
    """Judge a claim by evidence that others have made, as an audit judges its own.

    Args:
        evidence: Scores of independent trainings (`PairedRuns`), canaries of one training (`OneRun`), or `Counts`.
        claim: A point such as `PointClaim(4.0, 1e-5)`, or a curve such as `accounting.curve(DpSgd(0.1, 1.4, 100))`.
        delta: The δ at which the lower bound is given.
        confidence: Of the bound, and of a violation.
        method: How scores are judged, chosen before they were seen: a method with its settings, such as
            `ExactRank(seed=1)`, or one of `methods_for(evidence)`, which also names the default. Counts need none.
        direction: Which scores mean "member": higher, lower, or either (for `PairedRuns` only: it pays for the choice).

    >>> from epsilometer.claims import PointClaim
    >>> found = judge_evidence(Counts(tp=970, fp=20, fn=30, tn=980), PointClaim(3.0, 1e-5), delta=1e-5)
    >>> found.verdict.outcome.value, round(found.lower_bound.epsilon, 2)
    ('violated', 3.44)
    """
    require_claim(claim)
    require_evidence("judge_evidence", evidence, (PairedRuns, OneRun, Counts), "PairedRuns, OneRun or Counts")
    require_same_neighbours("the claim", claim.neighbours, "the evidence", evidence.neighbours)
    if not evidence.has_scores:
        if method not in (None, evidence.usual_method):
            raise _untestable(method, evidence)
        return _by_counts(cast(Counts, evidence), claim, delta, confidence, direction)
    read = cast(PairedRuns | OneRun, evidence)
    chosen = _method(method, read)
    require_evidence(chosen.name, evidence, chosen.evidence_type, chosen.evidence_type.__name__)
    if "either" not in evidence.directions:
        read, direction = _turned(cast(OneRun, evidence), direction), "higher"
    low = chosen.bound(read, delta=delta, confidence=confidence, direction=direction)
    test = chosen.test(read, claim, confidence=confidence, direction=direction)
    require_same_neighbours("the claim", claim.neighbours, f"the bound by {chosen.name}", low.neighbours)
    return Judgement(evidence, claim, low, test, _verdict(read, test, chosen, direction))


def methods_for(evidence: Evidence) -> list[str]:
    """The names of methods that can test a claim on such evidence, the default first.

    >>> methods_for(OneRun(scores=[0.3, 1.5], member=[0, 1]))
    ['one-run-point']
    """
    able = [entry.name for entry in METHODS.values() if entry.judges and entry.takes(evidence)]
    return able if evidence.has_scores else [evidence.usual_method]


def _method(method: Method | str | None, evidence: PairedRuns | OneRun) -> Method:
    """What was asked for, or else the default."""
    if method is None:
        return default_method(type(evidence))
    if not isinstance(method, str):
        if isinstance(method, type) or not hasattr(method, "test"):
            raise InvalidInput("method", method, "a name, or a method such as ExactRank()")
        return method
    if method not in methods_for(evidence):
        raise _untestable(method, evidence)
    if method == Fixed.name:
        raise InvalidInput("method", method, "a threshold with it", "say ClopperPearson(Fixed(threshold))")
    return method_named(method)


def _untestable(method: object, evidence: Evidence) -> InvalidInput:
    expected = f"a method that can test a claim: {', '.join(methods_for(evidence))}"
    return InvalidInput("method", method, expected, "others, in epsilometer.bounds, give bounds alone")


def _turned(run: OneRun, direction: str) -> OneRun:
    """Canaries, so that higher means member. Of two readings, one run can pay for none."""
    if direction not in run.directions:
        raise InvalidInput("direction", direction, "higher or lower with one run", "say which scores mean member")
    return run if direction == "higher" else run.flipped()


def _verdict(evidence: PairedRuns | OneRun, test: ClaimTest, method: Method, direction: str) -> Verdict:
    """`decide` reads scores in one direction: the one that was said or, of both, the one in which more is seen."""
    if direction == "higher" or test.refuted:
        return decide(evidence, test, method)
    evidence = cast(PairedRuns, evidence)
    turned = evidence.flipped()
    if direction == "either":
        test = replace(test, confidence=(1.0 + test.confidence) / 2.0)  # each direction has half of α
        if attack_strength(turned) <= attack_strength(evidence):
            return decide(evidence, test, method)
    return decide(turned, test, mirrored(method))


def _by_counts(counts: Counts, claim: Claim, delta: float, confidence: float, direction: str) -> Judgement:
    """Counts come from one test, which was chosen beforehand."""
    low = clopper_pearson(counts, delta=delta, confidence=confidence, direction=direction)
    test = refute_curve(counts, claim, confidence=confidence)
    return Judgement(counts, claim, low, test, _verdict_on_counts(counts, test))


def _verdict_on_counts(counts: Counts, test: ClaimTest) -> Verdict:
    """Counts as scores 0 and 1 with a threshold between them."""
    if not test.refuted and max(counts.out_trials, counts.in_trials) > MOST_COUNTED:
        reason = f"no violation found; of more than {MOST_COUNTED:,} trials in a world, power is not computed"
        return Verdict(Outcome.INCONCLUSIVE, reason)
    cells = np.minimum([[counts.fp, counts.tn], [counts.tp, counts.fn]], MOST_COUNTED)  # a refutation needs none
    outs, ins = (np.repeat([1.0, 0.0], numbers) for numbers in cells)
    scores = PairedRuns(outs, ins, counts.neighbours, counts.group_size)
    return decide(scores, test, ClopperPearson(Fixed(0.5)))
