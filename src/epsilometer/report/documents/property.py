"""The document of property inference."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from epsilometer.report.documents.parts import IntervalPart, StudyDocument, WorldSizes


class PropertyPart(TypedDict):
    """The property."""

    name: Annotated[str, "in words"]
    having: Annotated[int, "records that have it"]
    records: Annotated[int, "of so many"]


class ByRoundsPart(TypedDict):
    """What the first rounds show."""

    rounds: Annotated[int, "that were looked at"]
    auc: Annotated[IntervalPart, "of the mean score of these rounds"]


class ControlPart(TypedDict):
    """Collaborations whose worlds have one law."""

    auc: Annotated[IntervalPart | None, "½ but for chance; none if no control was played"]
    meaning: Annotated[str, "in words"]


class PropertyDocument(StudyDocument):
    """`epsilometer property`: result.json."""

    attacked: Annotated[str, "what was attacked, in words"]
    property: Annotated[PropertyPart, "that was inferred"]
    unit: Annotated[Literal["participant"], "of whom all data are replaced in the bounds"]
    no_epsilon: Annotated[str | None, "why there are no bounds; none where there are"]
    auc: Annotated[IntervalPart, "over independent collaborations"]
    balanced_accuracy: Annotated[IntervalPart, "at a threshold chosen on other collaborations"]
    by_rounds: Annotated[list[ByRoundsPart], "what the first rounds show"]
    control: Annotated[ControlPart, "in which nothing differs"]
    assumes: Annotated[str, "what intervals assume"]
    accuracy: Annotated[float, "of the models on all records, in the mean"]
    trials: Annotated[WorldSizes, "collaborations without and with the property"]
    confidence: Annotated[float, "of each number by itself"]
