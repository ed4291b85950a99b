"""What `bound` says of a claim: how it was meant, how it is judged, and who is told."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from epsilometer import validate
from epsilometer.errors import InvalidInput

if TYPE_CHECKING:
    from epsilometer.auditing import Judgement
    from epsilometer.bounds import LowerBound, Method, Threshold
    from epsilometer.bounds.catalogue import Evidence, Settings
    from epsilometer.claims import Claim
    from epsilometer.neighbours import Neighbours
    from epsilometer.report import Finding, Headline


NO_JUDGEMENT: dict[str, Any] = {"claim": None, "test": None, "verdict": None}


def rows_of(judgement: Judgement | None) -> list[tuple[str, str]]:
    """What was tested, how, and what could not be seen."""
    if judgement is None:
        return []
    verdict = judgement.verdict
    return [("claim", str(judgement.test)), ("verdict", str(verdict)), ("cannot see", verdict.unseen)]


def claimed(
    epsilon: float | None,
    sample_rate: float | None,
    noise_multiplier: float | None,
    steps: int | None,
    delta: float,
    neighbours: Neighbours,
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
        from epsilometer.claims import PointClaim

        return PointClaim(epsilon, delta, neighbours.relation, neighbours.unit)
    if not said:
        return None
    if sample_rate is None or noise_multiplier is None or steps is None:
        remedy = "the three together claim the curve of a training; --claim is for an ε"
        raise InvalidInput(said[0], training[said[0]], f"{' and '.join(missing)} beside it", remedy)
    from epsilometer.accounting import DpSgd, curve

    return curve(DpSgd(sample_rate, noise_multiplier, steps), neighbours)


def judged(name: str | None, evidence: Evidence, settings: Settings, claim: Claim) -> Judgement:
    """The claim judged by the method of that name."""
    from epsilometer.auditing import judge_evidence

    return judge_evidence(
        evidence,
        claim,
        delta=settings.delta,
        confidence=settings.confidence,
        method=_method(name, evidence, settings),
        direction=settings.direction,
    )


def headline_for(low: LowerBound, judgement: Judgement | None) -> Headline:
    """The answer in short: of a bound alone, or of a verdict too."""
    from epsilometer.report.headline import headline, headline_of

    return headline(low) if judgement is None else headline_of(judgement)


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
        trials=evidence.describe(),
        trial_count=evidence.trial_count,
        threat_model="that of whoever made the scores: this program has seen nothing but them",
        command=command,
        headline=headline_for(low, judgement),
        document=document,
    )
    if judgement is None:
        return finding
    claim, verdict = judgement.claim, judgement.verdict
    epsilon = judgement.claimed_epsilon
    return replace(
        finding,
        claim=f"ε = {epsilon:.4g} at δ = {low.delta:g} ({claim.neighbours}): {claim.describe()}",
        claimed_epsilon=epsilon,
        comparison=judgement.test.comparison,
        outcome=verdict.outcome.value,
        reason=verdict.reason,
        power=verdict.power,
        blind_spot=verdict.blind_spot,
    )


def _method(name: str | None, evidence: Evidence, settings: Settings) -> Method | None:
    """The method behind a bound, none for counts; some bounds have none that could test a claim."""
    from epsilometer.auditing import methods_for
    from epsilometer.bounds import METHODS, OneRunPoint
    from epsilometer.bounds.catalogue import bound_named

    able = methods_for(evidence)
    chosen = able[0] if name is None else name
    if chosen not in able:
        bound_named(name, evidence, settings)  # refuses names of no bound, and bounds of other evidence
        remedy = "leave out the claim to have its bound alone"
        raise InvalidInput("--method", name, f"a method that can test a claim: {', '.join(able)}", remedy)
    if not evidence.has_scores:
        return None
    if chosen == OneRunPoint.name:
        return OneRunPoint(_guesses(evidence.trial_count, settings), settings.seed)
    threshold = settings.threshold if METHODS[chosen].needs_threshold else None
    return METHODS[chosen].method(replace(settings, threshold=threshold))


def _guesses(canaries: int, settings: Settings) -> int | Threshold | None:
    """How many canaries are guessed; refused here, where it is known how many there are."""
    assert not isinstance(settings.guesses, tuple)
    if isinstance(settings.guesses, int):
        remedy = "each canary is guessed at most once"
        validate.whole("guesses", settings.guesses, least=1, most=canaries, remedy=remedy)
    return settings.guesses
