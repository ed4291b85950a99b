"""The document of a watched command."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from epsilometer.report.documents.parts import Document, LowerBoundPart, Number, Settings, UpperBoundPart, Verdict


class LibraryPart(TypedDict):
    """A library that was found in a process."""

    name: Annotated[str, "such as opacus"]
    version: Annotated[str, "its version"]


class ProcessPart(TypedDict):
    """A Python process of the command."""

    pid: Annotated[int, "its number"]
    argv: Annotated[list[str], "its arguments"]
    python: Annotated[str, "its version"]


class StrengthPart(TypedDict):
    """How well one step tells a record."""

    mu: Annotated[Number, "strength of a Gaussian family"]
    scores: Annotated[int, "that it is from"]
    strength_method: Annotated[str, "how it was limited"]
    kind: Annotated[str, "as of a lower bound"]
    confidence: Annotated[float, "with which it holds"]


class EpsilonPart(TypedDict):
    """ε of a whole training, as far as it is known."""

    step_strength: Annotated[StrengthPart | None, "certified of a step"]
    family_bound: Annotated[LowerBoundPart | None, "if all steps are Gaussian with the noise that was seen"]
    upper_bound: Annotated[UpperBoundPart | None, "by what was accounted"]
    assumes: Annotated[str, "what `family_bound` assumes"]
    not_measured: Annotated[str | None, "why there is no bound"]


StatementName = Literal["clipping", "noise", "sampling", "accounting", "nothing else"]
BasisName = Literal["counterexample", "test", "hint"]


class CheckPart(TypedDict):
    """A check of a training."""

    name: Annotated[str, "of the check"]
    status: Annotated[Literal["passed", "failed", "not applicable", "ignored"], "what it found"]
    reason: Annotated[str, "why"]
    statement: Annotated[StatementName, "on which the promise rests, and which it is about"]
    basis: Annotated[BasisName, "what it is where it failed"]
    needed: Annotated[bool, "whether the statement counts as held only if it passed"]
    step: Annotated[int | None, "the first at which it failed, where that is known"]


class StatementPart(TypedDict):
    """What is known of one statement."""

    statement: Annotated[StatementName, "on which the promise rests"]
    standing: Annotated[Literal["broken", "held", "assumed", "untested"], "what is known of it"]
    reason: Annotated[str, "why"]
    by: Annotated[list[str], "checks, canaries, tests that say so"]
    basis: Annotated[BasisName | None, "how strong that is"]
    step: Annotated[int | None, "at which it was broken, where that is known"]
    next: Annotated[str | None, "what would test it"]


class TrainingPart(TypedDict):
    """A training that was watched."""

    pid: Annotated[int, "of its process"]
    training: Annotated[int, "its number there"]
    optimizer: Annotated[str, "its class"]
    noise_multiplier: Annotated[float, "as it was made private with"]
    clip_norm: Annotated[float, "as it was made private with"]
    canaries: Annotated[int, "that were put in"]
    place: Annotated[str, "where canaries were put"]
    settings: Annotated[Settings, "what else was stated"]
    steps: Annotated[int, "that were seen"]
    unseen_steps: Annotated[int, "that nobody saw"]
    accounted: Annotated[list[list[float]], "the accountant's history: noise, sample rate, steps"]
    log_e_value: Annotated[Number, "evidence against the stated noise"]
    refuted_at: Annotated[int | None, "the step at which it was refuted"]
    noise_factor: Annotated[float | None, "largest factor on the stated noise that is left"]
    confidence: Annotated[float, "of the verdict"]
    headline: Annotated[str, "the answer in a sentence or two"]
    quote: Annotated[str, "the one number to quote"]
    epsilon: Annotated[EpsilonPart, "of the whole training"]
    verdict: Annotated[Verdict, "on what the training states"]
    reason: Annotated[str, "of the verdict"]
    refuted: Annotated[str | None, "the stated mechanism, or the (ε, δ) as well; and which statements are broken"]
    power: Annotated[float | None, "how often half of the noise would be noticed"]
    not_audited: Annotated[str | None, "why it was not; none if it was"]
    ended: Annotated[bool, "whether it came to its end"]
    idle: Annotated[bool, "whether it was made private, and never begun"]
    ranks: Annotated[int, "processes that took its steps together"]
    statements: Annotated[list[StatementPart], "on which the promise rests: five, in order"]
    checks: Annotated[list[CheckPart], "that were made"]


class WatchDocument(Document):
    """`epsilometer watch`: result.json."""

    command: Annotated[list[str], "that was watched"]
    exit_code: Annotated[int, "of that command"]
    begun: Annotated[str, "date and time, UTC"]
    seconds: Annotated[float, "that it took"]
    libraries: Annotated[list[LibraryPart], "that were found"]
    processes: Annotated[list[ProcessPart], "that were watched"]
    failures: Annotated[list[str], "what could not be watched, and why"]
    trainings: Annotated[list[TrainingPart], "that were watched"]
