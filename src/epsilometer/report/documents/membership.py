"""The document of attacks on membership."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from epsilometer.report.documents.parts import IntervalPart, LowerBoundPart, Number, RatesPart, StudyDocument


class SubsetPart(TypedDict):
    """The records of a class or a subgroup."""

    name: Annotated[str, "of the class or subgroup"]
    members: Annotated[int, "records that were in"]
    others: Annotated[int, "records that were not"]
    auc: Annotated[IntervalPart, "among them"]


class MembershipAttackPart(TypedDict):
    """One attack on membership."""

    name: Annotated[str, "of the attack"]
    summary: Annotated[str, "how it works"]
    auc: Annotated[IntervalPart, "area under the ROC curve"]
    balanced_accuracy: Annotated[IntervalPart, "at a threshold chosen on other records"]
    tpr_at: Annotated[list[RatesPart], "at 0.1 % and 1 % false positives"]
    by_class: Annotated[list[SubsetPart], "classes with members and others"]
    by_subgroup: Annotated[list[SubsetPart], "subgroups, if any were asked for"]
    lower_bound: Annotated[LowerBoundPart | None, "certified where fair coins decided who was in"]


class AccuracyPart(TypedDict):
    """Of the targets, in the mean."""

    members: Annotated[float, "share that is classified correctly"]
    others: Annotated[float, "the same of records that were not in"]


class LimitsPart(TypedDict):
    """For what limits hold at once."""

    confidence: Annotated[float, "for all attacks together"]
    attacks: Annotated[int, "that were made"]
    confidence_of_each: Annotated[float, "so that the strongest is paid for"]
    how: Annotated[str, "in words"]


ExposedPart = TypedDict(
    "ExposedPart",
    {
        "row": Annotated[int, "of the data"],
        "class": Annotated[str, "its label"],
        "score": Annotated[Number, "of the strongest attack"],
    },
)
ExposedPart.__doc__ = "A member that is exposed more than others."


class TossedPart(TypedDict):
    """Records."""

    tossed: Annotated[int, "whose membership a coin decided"]
    population: Annotated[int, "that are in no model"]


class ModelsPart(TypedDict):
    """Models."""

    targets: Annotated[int, "that were attacked"]
    references: Annotated[int, "that the attacker trained"]


class MembershipDocument(StudyDocument):
    """`epsilometer membership`: result.json. It names single records: private."""

    membership: Annotated[Literal[True], "as results of 0.1 said their kind"]
    warning: Annotated[str, "why it is private"]
    attacked: Annotated[str, "what was attacked, in words"]
    by_coins: Annotated[bool, "whether coins of ours decided who was in"]
    accuracy: Annotated[AccuracyPart, "of the targets"]
    strongest: Annotated[str, "the attack with most true positives at 1 % false ones"]
    limits_hold: Annotated[LimitsPart, "for what limits hold at once"]
    attacks: Annotated[list[MembershipAttackPart], "all that were made"]
    exposed: Annotated[list[ExposedPart], "members of the first target that the strongest is surest of"]
    records: Annotated[TossedPart, "how many"]
    trials: Annotated[ModelsPart, "how many"]
    confidence: Annotated[float, "for all attacks together"]
