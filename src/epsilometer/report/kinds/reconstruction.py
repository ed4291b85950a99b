"""The report of reconstruction."""

from __future__ import annotations

from typing import Any

from epsilometer.figures import Table
from epsilometer.figures.figure import number
from epsilometer.reconstruction import error_words
from epsilometer.report.kinds.shared import every_setting, figures_in, reproducing
from epsilometer.report.page import Block, Drawn, Facts, Numbers, Page, Points, Section, Words
from epsilometer.rounding import ceiled, down, up

Document = dict[str, Any]
LIMITS = (
    "An attack that fails shows nothing: one that knows what records look like, the others, or more releases rebuilds "
    "more.",
    "Limits are for unbiased estimates. The limit by Rényi-DP holds for every record in the box of values, and is far "
    "below the truth in many dimensions; the limit by Fisher information is for these records and this release.",
    "ε is what the noise of these releases promises if a record is replaced; nothing here tests that promise.",
)


def page(document: Document) -> Page:
    figures = figures_in(document)
    pictures: list[Block] = [Drawn(one) for name, one in figures.items() if name.startswith("record ")]
    shown = pictures or [Words("The records are no images; scores.csv has how well each was rebuilt.")]
    return Page(
        title=f"Reconstruction: {document['attacked']}",
        kind="Records rebuilt from what is released",
        verdict=None,
        sentences=[document["headline"]],
        quote=document["quote"],
        sections=[
            Section("At a glance", [Facts("In short", _facts(document)), Drawn(figures["errors"])]),
            Section("By noise", _noises(document)),
            Section("Records, and what was made of them", shown),
            Section("Limits", [Points(LIMITS)]),
            Section("Everything that decides the result", [*every_setting(document), *reproducing(document)]),
        ],
        version=document["versions"]["epsilometer"],
        warnings=[document["warning"]],
    )


def _facts(document: Document) -> list[tuple[str, str]]:
    records, values = document["records"], document["range"]
    return [
        ("attacked", document["attacked"]),
        ("records", f"{len(records['rebuilt'])} of {records['of']}, seed {document['seed']}"),
        ("values", f"from {number(values['low'])} to {number(values['high'])}; estimates are cut to that"),
        ("estimates", "unbiased before they are cut" if document["unbiased"] else "biased: noise draws them to 0"),
    ]


def _noises(document: Document) -> list[Block]:
    rows = tuple(
        (
            f"{one['noise_multiplier']:g}",
            *(error_words(float(one[name])) for name in ("cut_mse", "mean_mse", "mse", "guess_mse")),
            _recognised(one["found"]), *(error_words(float(one[name])) for name in ("fisher_limit", "renyi_limit")),
            up(float(one["epsilon"])),
        )
        for one in document["noises"]
    )  # fmt: skip
    columns = ("σ", "error", "before the cut", "its median", "of the mean record", "recognised", "Fisher limit",
               "Rényi limit", f"ε ≤ at δ = {document['delta']:g}")  # fmt: skip
    words = (
        "Errors are means over features of squares: the mean over records of estimates that are cut to the range of "
        "values, mean and median before that (limits are on the mean), and of answering with the mean record. "
        "Recognised: the estimate is nearest to the right one of all records; intervals are exact, of "
        f"{100 * document['confidence']:.10g} % for each number by itself."
    )
    return [Numbers("Every noise multiplier", Table(columns, rows)), Words(words)]


def _recognised(one: Document) -> str:
    return f"{one['value']:.3f} ({down(one['low'])} to {ceiled(one['high'])})"
