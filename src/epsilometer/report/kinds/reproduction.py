"""The report of a reproduction: a published table or figure beside what was measured; of a grid of settings, too."""

from __future__ import annotations

from typing import Any

from epsilometer.report.kinds.shared import figures_in, flat, rows_table
from epsilometer.report.page import Drawn, Facts, Numbers, Page, Points, Section, Words

Document = dict[str, Any]
_EACH = "Each certified bound holds by itself, at its confidence; the largest of several does not."
LIMITS = (
    "What a paper measured on its own networks, data and machines need not be what the same method gives here.",
    _EACH,
)


def page(document: Document) -> Page:
    if document["name"] == "sweep":
        return cells_page(document, "Sweep", "One training with several settings", None, (_EACH,))
    return cells_page(document, f"Reproduction: {document['name']}", "A published result, measured again", None, LIMITS)


def cells_page(
    document: Document, title: str, kind: str, verdict: str | None, limits: tuple[str, ...], *sentences: str
) -> Page:
    """A page about cells of a table."""
    rows = document["rows"]
    sections = [
        Section("The picture", [Drawn(figures_in(document)["all"]), Words(document["about"])]),
        Section("All numbers", [Numbers(f"{len(rows)} cells", rows_table(rows))]),
        Section("Limits", [Points(limits)]),
        Section(
            "Everything that decides the result",
            [Facts("Settings", list(flat(document["settings"]))), Facts("Versions", list(flat(document["versions"])))],
        ),
    ]
    told = sentences or (f"{document['summary'][0].upper()}{document['summary'][1:]}: {len(rows)} cells measured.",)
    return Page(title, kind, verdict, told, sections=sections, version=document["versions"]["epsilometer"])
