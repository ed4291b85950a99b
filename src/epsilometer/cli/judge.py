"""A claim, tested on given evidence as an audit tests its own."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from epsilometer import validate
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Counts, OneRun, PairedRuns

if TYPE_CHECKING:
    from epsilometer.auditing.verdict import Verdict
    from epsilometer.bounds import ClaimTest, LowerBound, Method
    from epsilometer.bounds.catalogue import Evidence, Settings
    from epsilometer.claims import Claim
    from epsilometer.report import Finding, Headline

MOST_COUNTED = 100_000  # trials per world of which power is simulated, for counts


@dataclass(frozen=True)
class Judgement:
    """A claim, its test, and what follows."""

    claim: Claim
    delta: float
    test: ClaimTest
    verdict: Verdict

    def rows(self) -> list[tuple[str, str]]:
        """What was tested, how, and what could not be seen."""
        return [
            ("claim", str(self.test)),
            ("verdict", str(self.verdict)),
            ("cannot see", self.verdict.unseen),
        ]

    def to_dict(self) -> dict[str, Any]:
        """In the words of an audit's result."""
        return {
            "claim": {**self.claim.to_dict(), "epsilon": self.claim.epsilon_at(self.delta), "delta": self.delta},
            "test": self.test.to_dict(),
            "verdict": self.verdict.outcome.value,
            "reason": self.verdict.reason,
            "power": self.verdict.power,
            "blind_spot": self.verdict.blind_spot,
        }


NO_JUDGEMENT: dict[str, Any] = {"claim": None, "test": None, "verdict": None}


def claimed(
    epsilon: float | None,
    sample_rate: float | None,
    noise_multiplier: float | None,
    steps: int | None,
    delta: float,
    relation: str,
) -> Claim | None:
    """The point (ε, δ), or the curve of a training, or nothing."""
    training = {"--sample-rate": sample_rate, "--noise-multiplier": noise_multiplier, "--steps": steps}
    said = [option for option, value in training.items() if value is not None]
    missing = [option for option in training if option not in said]
    if epsilon is not None:
        validate.real("--claim", epsilon, above=0, closed="[]")
        if said:
            remedy = "one claims the point (ε, δ), the other the curve of a training: leave one out"
            raise InvalidInput("--claim", epsilon, f"nothing beside {' and '.join(said)}", remedy)
        from epsilometer.claims import PointClaim, Relation

        return PointClaim(epsilon, delta, Relation.of(relation))
    if not said:
        return None
    if sample_rate is None or noise_multiplier is None or steps is None:
        remedy = "the three together claim the curve of a training; --claim is for an ε"
        raise InvalidInput(said[0], training[said[0]], f"{' and '.join(missing)} beside it", remedy)
    from epsilometer.accounting import DpSgd, curve

    return curve(DpSgd(sample_rate, noise_multiplier, steps), relation)


def judged(name: str | None, evidence: Evidence, settings: Settings, claim: Claim) -> Judgement:
    """The claim tested by the method of that name, and the verdict."""
    method = _method(name, evidence, settings)
    if isinstance(evidence, Counts):
        from epsilometer.bounds import refute_curve

        test = refute_curve(evidence, claim, confidence=settings.confidence)
        return Judgement(claim, settings.delta, test, _verdict_on_counts(evidence, test, method))
    direction = settings.direction
    if isinstance(evidence, OneRun) and direction == "lower":  # of two readings, a run can pay for none
        evidence = OneRun(-evidence.scores, evidence.member, evidence.relation, evidence.group_size)
        direction = "higher"
    test = method.test(evidence, claim, confidence=settings.confidence, direction=direction)
    return Judgement(claim, settings.delta, test, _verdict(evidence, test, method, direction))


def headline_for(evidence: Evidence, low: LowerBound, judgement: Judgement | None) -> Headline:
    """The answer in short: of a bound alone, or of a verdict too. Nothing is known of the training but its scores."""
    from epsilometer.report.headline import headline

    if judgement is None:
        return headline(low)
    scores = None if isinstance(evidence, Counts) else evidence
    return headline(low, verdict=judgement.verdict, claim=judgement.claim, evidence=scores)


def found_by(
    source: str,
    evidence: Evidence,
    low: LowerBound,
    judgement: Judgement | None,
    document: dict[str, Any],
    command: str,
) -> Finding:
    """What is told to others of a bound, and of a claim if one was tested; the scores came from `source`."""
    from epsilometer.json_values import json_values
    from epsilometer.report import Finding

    document = json_values(document)
    question = {"source": source, "claim": document["claim"], "delta": low.delta, "method": low.method}
    finding = Finding(
        name=source,
        key=hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:16],
        lower=low,
        trials=_described(evidence),
        trial_count=_counted(evidence),
        threat_model="that of whoever made the scores: this program has seen nothing but them",
        command=command,
        headline=headline_for(evidence, low, judgement),
        document=document,
    )
    if judgement is None:
        return finding
    claim, verdict = judgement.claim, judgement.verdict
    epsilon = claim.epsilon_at(low.delta)
    return replace(
        finding,
        claim=f"ε = {epsilon:.4g} at δ = {low.delta:g} ({claim.relation}): {claim.describe()}",
        claimed_epsilon=epsilon,
        comparison=judgement.test.comparison,
        outcome=verdict.outcome.value,
        reason=verdict.reason,
        power=verdict.power,
        blind_spot=verdict.blind_spot,
    )


def _described(evidence: Evidence) -> str:
    return f"trainings counted: {evidence}" if isinstance(evidence, Counts) else evidence.describe()


def _counted(evidence: Evidence) -> int:
    """The fewest trainings of a world; or the canaries of one."""
    if isinstance(evidence, Counts):
        return min(evidence.out_trials, evidence.in_trials)
    return len(evidence.scores) if isinstance(evidence, OneRun) else min(evidence.sizes.values())


def _method(name: str | None, evidence: Evidence, settings: Settings) -> Method:
    """The method behind a bound; some bounds have none that could test a claim."""
    from epsilometer.bounds import METHODS, OneRunPoint, method_named

    if isinstance(evidence, Counts):
        able, method = ["clopper-pearson"], method_named("fixed", 0.5)
    elif isinstance(evidence, OneRun):
        assert not isinstance(settings.guesses, tuple)
        able, method = [OneRunPoint.name], OneRunPoint(settings.guesses, settings.seed)
    else:
        able = [one.name for one in METHODS.values() if one.judges and one.takes(evidence)]
        chosen = PairedRuns.usual_method if name is None or name not in able else name
        threshold = settings.threshold if METHODS[chosen].needs_threshold else None
        method = METHODS[chosen].method(replace(settings, threshold=threshold))
    if name is not None and name not in able:
        remedy = "leave out the claim to have its bound alone"
        raise InvalidInput("--method", name, f"a method that can test a claim: {', '.join(able)}", remedy)
    return method


def _verdict(evidence: PairedRuns | OneRun, test: ClaimTest, method: Method, direction: str) -> Verdict:
    """`decide` reads scores in one direction: the one that was said or, of both, the one in which more is seen."""
    from epsilometer.auditing.verdict import decide
    from epsilometer.bounds import ClopperPearson, attack_strength

    if isinstance(evidence, OneRun) or direction == "higher" or test.refuted:
        return decide(evidence, test, method)
    turned = evidence.flipped()
    if direction == "either":
        test = replace(test, confidence=(1.0 + test.confidence) / 2.0)  # each direction has half of α
        if attack_strength(turned) <= attack_strength(evidence):
            return decide(evidence, test, method)
    mirrored = ClopperPearson(method.thresholds.mirrored()) if isinstance(method, ClopperPearson) else method
    return decide(turned, test, mirrored)


def _verdict_on_counts(counts: Counts, test: ClaimTest, method: Method) -> Verdict:
    """Counts as scores 0 and 1 with a threshold between them."""
    import numpy as np

    from epsilometer.auditing.verdict import Outcome, Verdict, decide

    if not test.refuted and max(counts.out_trials, counts.in_trials) > MOST_COUNTED:
        reason = f"no violation found; of more than {MOST_COUNTED:,} trials in a world, power is not computed"
        return Verdict(Outcome.INCONCLUSIVE, reason)
    cells = np.minimum([[counts.fp, counts.tn], [counts.tp, counts.fn]], MOST_COUNTED)  # a refutation needs none
    outs, ins = (np.repeat([1.0, 0.0], numbers) for numbers in cells)
    return decide(PairedRuns(outs, ins, counts.relation, counts.group_size), test, method)
