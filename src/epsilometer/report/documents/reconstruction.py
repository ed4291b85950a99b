"""The document of reconstruction."""

from __future__ import annotations

from typing import Annotated, TypedDict

from epsilometer.report.documents.parts import IntervalPart, Number, StudyDocument


class AtNoisePart(TypedDict):
    """Reconstructions at one noise multiplier; errors are means over features of squares."""

    noise_multiplier: Annotated[float, "σ"]
    noise_std: Annotated[float, "deviation of the noise on every coordinate of a release"]
    mse: Annotated[float, "median over records of the error of estimates as they are"]
    mean_mse: Annotated[float, "mean of the same, which is what limits speak of"]
    cut_mse: Annotated[float, "mean of the error of estimates that are cut to the range of values"]
    guess_mse: Annotated[float, "mean of the error of the mean record"]
    found: Annotated[IntervalPart, "share of estimates that are nearest to the right one of all records"]
    fisher_limit: Annotated[Number, "least error of unbiased estimates, for some of these records"]
    renyi_limit: Annotated[Number, "the same for the worst record, by Rényi-DP"]
    renyi_epsilon: Annotated[Number, "ε of order 2, where a record is replaced"]
    epsilon: Annotated[Number, "that the noise promises at the result's δ, where a record is replaced"]


class RangePart(TypedDict):
    """Of values."""

    low: Annotated[float, "least of any feature"]
    high: Annotated[float, "largest of any feature"]


class RebuiltPart(TypedDict):
    """Records."""

    rebuilt: Annotated[list[int], "rows of the data"]
    of: Annotated[int, "records in the data"]


class ReconstructionsPart(TypedDict):
    """How many."""

    records: Annotated[int, "that were rebuilt at each noise"]
    noises: Annotated[int, "multipliers"]


class ReconstructionDocument(StudyDocument):
    """`epsilometer reconstruct`: result.json. It shows records: private. It has no bounds."""

    warning: Annotated[str, "why it is private"]
    attacked: Annotated[str, "what was attacked, in words"]
    unbiased: Annotated[bool, "whether the mean of estimates is the record, before they are cut"]
    noises: Annotated[list[AtNoisePart], "one for each noise multiplier, as they were asked for"]
    limits_are: Annotated[str, "for whom limits hold"]
    range: Annotated[RangePart, "of values; estimates are cut to it"]
    records: Annotated[RebuiltPart, "that were rebuilt"]
    trials: Annotated[ReconstructionsPart, "how many"]
    delta: Annotated[float, "at which ε is stated"]
    confidence: Annotated[float, "of each number by itself"]
