"""The document of what single records pay."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from epsilometer.report.documents.parts import Number, PlannedDocument, UpperBoundPart


class WorstCasePart(UpperBoundPart):
    """What is promised to every record."""

    by_renyi: Annotated[Number, "the same by the moments that records' ε are made of"]


class RightWrongPart(TypedDict):
    """Whether records that are classified correctly pay less."""

    right: Annotated[int, "records that most trainings get right"]
    wrong: Annotated[int, "others"]
    median_right: Annotated[float | None, "their median ε"]
    median_wrong: Annotated[float | None, "that of others"]
    p_value: Annotated[float | None, "Mann–Whitney, one-sided"]


class UnlearnedPart(TypedDict):
    """Records without which a model would look nearly the same."""

    epsilon: Annotated[float, "at most"]
    share: Annotated[float, "of records"]


class RecordPart(TypedDict):
    """What one record pays."""

    row: Annotated[int, "of the data"]
    label: Annotated[int, "its class"]
    epsilon: Annotated[Number, "its own"]
    certified: NotRequired[Annotated[Number, "upper limit with the plan's confidence"]]
    one_training: NotRequired[Annotated[Number, "from the first training alone"]]
    costliest_training: NotRequired[Annotated[Number, "from the training in which it costs most"]]
    loss: Annotated[float, "at the end, in the mean"]
    right: Annotated[float, "share of trainings that classify it correctly"]
    membership_accuracy_at_most: Annotated[float, "of whoever asks whether it was there"]
    memorised_at_most: Annotated[float, "by how much its presence changes how often a model gets it right"]
    reconstructed_at_most: Annotated[float, "how often it is named among candidates"]


class LeakagePart(TypedDict):
    """What attacks have shown of one record."""

    row: Annotated[int, "of the data"]
    epsilon: Annotated[Number, "its own"]
    certified_at_least: Annotated[Number, "by trainings with and without it"]
    auc: Annotated[float, "of the attack"]
    strength: Annotated[float, "μ of the attack"]
    confidence: Annotated[float, "of the certified number"]
    within: Annotated[bool, "whether it is at most the record's own ε"]
    right_with: Annotated[float, "share of models that get it right with it"]
    right_without: Annotated[float, "and without it"]
    memorised: Annotated[float, "their difference"]
    trials: Annotated[int, "of each world"]


class CheckpointsPart(TypedDict):
    """Where trainings were looked at."""

    every: Annotated[int, "so many steps"]
    of_each_training: Annotated[int, "number of checkpoints"]


class InstancesDocument(PlannedDocument):
    """`epsilometer instances`: result.json. Values of single records: private."""

    warning: Annotated[str, "why it is private"]
    rule: Annotated[Literal["sum", "mean", "individual"], "by which ε of records are computed"]
    epsilons_are: Annotated[str, "what they mean"]
    training: Annotated[str, "in words"]
    worst_case: Annotated[WorstCasePart, "what alone may be promised"]
    quantiles: Annotated[dict[str, Number], "of records' ε, by share"]
    right_against_wrong: Annotated[RightWrongPart, "classified correctly or not"]
    unlearned_for_free: Annotated[UnlearnedPart, "records with hardly any ε"]
    candidates: Annotated[int, "among whom a record would have to be named"]
    records: Annotated[list[RecordPart], "all that were looked at"]
    measured: Annotated[list[LeakagePart], "those that were attacked"]
    confidence: Annotated[float, "of certified limits"]
    trainings: Annotated[int, "that expectations are taken over"]
    trainings_wanted: Annotated[int | None, "for half of the records to be certified below the worst case"]
    certified: Annotated[str | None, "what is certified, in words"]
    checkpoints: Annotated[CheckpointsPart, "where trainings were looked at"]
    records_sha256: Annotated[str, "of records.csv and what was measured"]
