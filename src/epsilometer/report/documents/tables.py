"""Documents of tables: false alarms of bounds, published tables, and the ladder of adversaries."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from epsilometer.report.documents.parts import Document, Number, Settings, Verdict


class CellPart(TypedDict):
    """A bound on a mechanism whose ε is known."""

    bound: Annotated[str, "its name"]
    kind: Annotated[str, "as of a lower bound"]
    mechanism: Annotated[str, "in words"]
    epsilon: Annotated[Number, "its true one"]
    delta: Annotated[float, "at which it holds"]
    trials: Annotated[int, "of each world"]
    repetitions: Annotated[int, "of the whole audit"]
    exceeded: Annotated[int, "in which the bound was above the truth"]
    rate: Annotated[float, "share of these"]
    rate_low: Annotated[float, "lower limit on that"]
    rate_high: Annotated[float, "upper limit on that"]
    mean_bound: Annotated[Number, "over repetitions"]
    tightness: Annotated[Number | None, "mean bound over truth"]
    alpha: Annotated[float, "the rate that a certified bound may have"]


class CalibrationDocument(Document):
    """`epsilometer coverage`: calibration.json."""

    seed: Annotated[int, "from which everything was drawn"]
    cells: Annotated[list[CellPart], "bounds × mechanisms"]


class ReproductionDocument(Document):
    """`epsilometer reproduce` and `epsilometer sweep`: result.json."""

    name: Annotated[str, "of the table or figure"]
    summary: Annotated[str, "what it is"]
    settings: Annotated[Settings, "of all cells"]
    about: Annotated[str, "how what is measured relates to what the paper states"]
    rows: Annotated[list[Settings], "one a cell: what the cell is, `paper`, `measured`, and what else the table has"]
    headline: NotRequired[Annotated[str, "the answer, where the table has one"]]
    quote: NotRequired[Annotated[str, "the one number to quote"]]
    verdict: NotRequired[Annotated[Verdict | None, "of all rows together"]]


class LadderDocument(ReproductionDocument):
    """`epsilometer ladder`: result.json. A row for each adversary."""
