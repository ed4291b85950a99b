"""Parts that documents of several kinds have, and what all kinds have."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

Number = float | Literal["inf", "-inf", "nan"]  # JSON has no infinities
Verdict = Literal["violated", "consistent", "inconclusive"]
Settings = dict[str, Any]  # whatever subject, adversary and method are made of


class IntervalPart(TypedDict):
    """A measured value with limits."""

    value: Annotated[float, "what was measured"]
    low: Annotated[float, "lower limit"]
    high: Annotated[float, "upper limit"]
    confidence: Annotated[float, "with which the limits hold"]
    how: Annotated[str, "by which method, and whether exactly"]


class RatesPart(TypedDict):
    """The true-positive rate at a false-positive rate."""

    fpr_wanted: Annotated[float, "at most this share of the others was to pass"]
    threshold: Annotated[Number, "score > threshold means member"]
    tpr: Annotated[IntervalPart, "true-positive rate"]
    fpr_seen: Annotated[float, "share of the others that passed"]
    fpr_high: Annotated[float, "upper limit on the true false-positive rate; holds together with `tpr`"]


class CountsPart(TypedDict):
    """Outcomes of a test."""

    tp: Annotated[int, "members that were named"]
    fp: Annotated[int, "others that were named"]
    fn: Annotated[int, "members that were not named"]
    tn: Annotated[int, "others that were not named"]


class ProofPart(TypedDict, total=False):
    """What a bound or test rests on: those fields that its method has."""

    threshold: Annotated[Number | None, "of the test"]
    member_if: Annotated[str | None, "which scores mean member"]
    counts: Annotated[CountsPart, "outcomes at that threshold"]
    fpr_high: Annotated[float, "upper limit on the false-positive rate"]
    fnr_high: Annotated[float, "upper limit on the false-negative rate"]
    tpr_low: Annotated[float, "lower limit on the true-positive rate"]
    rank: Annotated[int, "that was planned"]
    rank_of: Annotated[Literal["in", "out"], "in which world it is counted"]
    decided_by: Annotated[str, "which of several statistics decided"]
    p_value: Annotated[float | None, "at the border of what is refuted"]
    ties_broken: Annotated[bool, "whether equal scores were put in a random order"]
    canaries: Annotated[int, "scores of one training"]
    guesses: Annotated[int, "that were made"]
    correct: Annotated[int, "guesses that were right"]
    pairs: Annotated[int, "of trials, after which an e-process stopped"]
    log_e_value: Annotated[Number, "logarithm of the e-value"]
    steps: Annotated[int, "of a training that were seen"]
    refuted_at: Annotated[int | None, "the step at which the claim was refuted"]
    noise_factor: Annotated[float | None, "largest factor on the stated noise that is left"]
    mu: Annotated[Number, "strength of a Gaussian family"]
    scores: Annotated[int, "that the strength is from"]
    strength_method: Annotated[str, "how the strength was limited"]
    noise_multiplier: Annotated[Number, "largest one that is left"]
    interval: Annotated[Settings, "a Bayesian interval"]
    rates: Annotated[Settings, "two rates and their limits"]
    ratio_low: Annotated[Number, "lower limit on their ratio"]
    unobserved: Annotated[Settings, "mean and deviation of canaries that were left out"]
    observed: Annotated[Settings, "mean and deviation of canaries that were put in"]


class LowerBoundPart(ProofPart):
    """A lower bound on ε, with what it rests on."""

    epsilon: Annotated[Number, "the training is not (ε′, δ)-DP for any smaller ε′"]
    delta: Annotated[float, "at which it holds"]
    confidence: Annotated[float, "with which it holds"]
    relation: Annotated[str, "neighbours: add-remove, replace or zero-out"]
    unit: Annotated[str, "in what neighbours differ: a record, a user, or another word"]
    method: Annotated[str, "by which it was found"]
    kind: Annotated[
        Literal["certified", "family", "credible", "estimate"], "how much it shows; only certified ones refute"
    ]
    group_size: Annotated[int, "units in which the worlds differ"]


class UpperBoundPart(TypedDict):
    """What theory promises."""

    epsilon: Annotated[Number, "the mechanism is (ε, δ)-DP"]
    delta: Annotated[float, "at which it holds"]
    relation: Annotated[str, "neighbours: add-remove, replace or zero-out"]
    unit: Annotated[str, "in what neighbours differ: a record, a user, or another word"]
    accountant: Annotated[str, "whose proof it is"]
    mechanism: Annotated[Settings, "for which it was computed"]
    caveat: Annotated[str, "what it needs beyond that; empty if nothing"]


class Document(TypedDict):
    """What every kind has."""

    kind: Annotated[str, "of result: one of the headings of this page"]
    schema: Annotated[int, "raised whenever a field changes its meaning or goes"]
    versions: Annotated[dict[str, str], "of this program, of Python and of the libraries that computed it"]
    figures: Annotated[Settings, "the numbers of every picture in the report, by name"]


class PlannedDocument(Document):
    """What every kind has whose trials are in a store."""

    plan: Annotated[Settings, "everything that decides the trials"]
    plan_sha256: Annotated[str, "its fingerprint: equal plans give equal results"]
    seed: Annotated[int, "from which everything was drawn"]
    seconds: Annotated[float, "that playing and judging took"]
    headline: Annotated[str, "the answer in a sentence or two"]
    command: Annotated[str, "that would play it again; empty if it was made from Python"]


class StudyDocument(PlannedDocument):
    """What audits have, and studies that stand beside them in lists."""

    quote: Annotated[str, "the one number to quote, with what it needs"]
    verdict: Annotated[Verdict | None, "none where no claim was tested"]
    lower_bound: Annotated[LowerBoundPart | None, "what was shown; none where nothing can be"]
    upper_bound: Annotated[UpperBoundPart | None, "what theory promises; none where it promises nothing"]
    family_bound: Annotated[LowerBoundPart | None, "a larger bound that assumes DP-SGD"]
    stopped_early: Annotated[bool, "whether fewer trials than planned were enough"]
    scores_sha256: Annotated[str, "of scores.csv"]


WorldSizes = TypedDict("WorldSizes", {"out": Annotated[int, "of world 0"], "in": Annotated[int, "of world 1"]})
WorldSizes.__doc__ = "Numbers of trials or scores."
