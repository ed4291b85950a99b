"""The document of an audit."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from epsilometer.report.documents.parts import (
    IntervalPart,
    Number,
    ProofPart,
    RatesPart,
    Settings,
    StudyDocument,
    WorldSizes,
)


class ClaimPart(TypedDict):
    """What is claimed: a point, or a curve of which (ε, δ) is one point."""

    form: Annotated[Literal["point", "curve", "gaussian", "steps"], "a point (ε, δ), or which curve"]
    epsilon: Annotated[Number, "at `delta`"]
    delta: Annotated[float, "at which ε is stated"]
    relation: Annotated[str, "neighbours: add-remove, replace or zero-out"]
    unit: NotRequired[Annotated[str, "in what neighbours differ, if not in a record"]]
    name: NotRequired[Annotated[str, "of a curve"]]
    points: NotRequired[Annotated[int, "of a curve"]]
    sha256: NotRequired[Annotated[str, "of a curve's points"]]
    mu: NotRequired[Annotated[Number, "of a Gaussian curve"]]


class ClaimTestPart(ProofPart):
    """The test that the verdict rests on."""

    refuted: Annotated[bool, "whether the claim does not hold"]
    claim: Annotated[Settings, "that was tested"]
    confidence: Annotated[float, "of the test"]
    method: Annotated[str, "of the test"]
    kind: Annotated[str, "as of a lower bound"]
    claimed_tpr: Annotated[float | None, "largest true-positive rate that the claim allows there"]


class NoiseLimitPart(TypedDict):
    """The largest noise that is left."""

    noise_multiplier: Annotated[Number, "no larger than this"]
    confidence: Annotated[float, "with which it holds"]
    method: Annotated[str, "by which it was found"]
    kind: Annotated[str, "as of a lower bound"]


class NoisePart(TypedDict):
    """Noise, claimed and left by the trials."""

    claimed: Annotated[Number | None, "noise multiplier of the stated mechanism"]
    limit: Annotated[NoiseLimitPart | None, "what the trials leave of it"]


class AdversaryPart(TypedDict):
    """Who attacked."""

    words: Annotated[str, "name and settings"]
    summary: Annotated[str, "what it does"]
    threat_model: Annotated[str, "what it sees and controls"]


class MeaningPart(TypedDict):
    """What an ε allows an attacker to do to one person."""

    label: Annotated[str, "which ε"]
    epsilon: Annotated[Number, "at the claim's δ"]
    accuracy: Annotated[float, "how often an attacker is right at most, starting from 50 : 50"]
    odds: Annotated[Number, "by how much its odds grow at most"]
    believed: Annotated[list[float], "how sure it gets at most, for several beliefs before"]
    tpr: Annotated[list[float], "true-positive rates at most, for several false-positive rates"]
    stands: Annotated[bool, "whether it is a promise that the verdict leaves standing"]


class AttackPart(TypedDict):
    """How well the attack that was played tells the worlds apart."""

    confidence: Annotated[float, "of the certified numbers"]
    certified_accuracy: Annotated[float, "at least so often right, from 50 : 50"]
    certified_odds: Annotated[Number, "at least by so much its odds grow"]
    auc: Annotated[IntervalPart, "area under the ROC curve"]
    balanced_accuracy: Annotated[IntervalPart | None, "at a threshold chosen on other trials"]
    tpr_at: Annotated[list[RatesPart], "at several false-positive rates"]


class AccountantPart(TypedDict):
    """What an accountant says."""

    name: Annotated[str, "of the accountant"]
    epsilon: Annotated[Number, "at the claim's δ"]
    caveat: Annotated[str, "why it may not hold; empty if nothing"]


class PowerPart(TypedDict):
    """A power that adversaries may have."""

    how: Annotated[Literal["sees", "controls"], "of which sort"]
    power: Annotated[str, "in words"]
    used: Annotated[bool, "by the adversary that played"]
    granted: Annotated[bool, "by the training"]


class AdversaryStatePart(TypedDict):
    """One of all adversaries."""

    name: Annotated[str, "of the adversary"]
    summary: Annotated[str, "what it does"]
    state: Annotated[str, "played, not played, or what it lacks"]


class AuditDocument(StudyDocument):
    """`epsilometer audit`, `epsilometer mechanism`, and runs of `epsilometer sweep`: result.json."""

    reason: Annotated[str, "of the verdict"]
    refuted: Annotated[str | None, "which statement: the point, the curve, or what is stated of steps"]
    power: Annotated[float | None, "how often an attack twice as strong would be caught, by simulation"]
    blind_spot: Annotated[float | None, "share of trainings in which everything must leak to be seen"]
    claim: Annotated[ClaimPart, "that was tested"]
    claim_test: Annotated[ClaimTestPart, "by which the verdict was reached"]
    noise_multiplier: Annotated[NoisePart, "what is claimed of it and what is left"]
    trials: Annotated[WorldSizes, "that were judged"]
    faults: Annotated[Settings, "that were put in on purpose; empty if none"]
    training: Annotated[str, "what was audited, in words"]
    injected: Annotated[list[str], "faults in words"]
    claim_words: Annotated[str, "the claim in words"]
    adversary: Annotated[AdversaryPart, "who attacked"]
    trials_words: Annotated[str, "trials in words"]
    proof: Annotated[str, "what the lower bound rests on, in words"]
    comparison: Annotated[str, "what the test compared, in words"]
    independent: Annotated[bool, "whether each score is of a training of its own"]
    utility: Annotated[dict[str, str], "how good the models are; empty if nobody measured it"]
    means: Annotated[list[MeaningPart], "what bound and claim mean for one person"]
    attack: Annotated[AttackPart | None, "none where scores are not independent"]
    accountants: Annotated[list[AccountantPart], "all of them, where a mechanism is stated"]
    powers: Annotated[list[PowerPart], "all that adversaries may have"]
    adversaries: Annotated[list[AdversaryStatePart], "all of ours and who played"]
    neighbours: Annotated[Settings, "inputs that were searched for and found, of a mechanism"]
