"""The report of a calibration: how often bounds exceed a truth that is known."""

from __future__ import annotations

from typing import Any

from epsilometer.report.kinds.shared import figures_in, flat, rows_table
from epsilometer.report.page import Drawn, Facts, Numbers, Page, Points, Section, Words

Document = dict[str, Any]


def page(document: Document) -> Page:
    cells = document["cells"]
    alpha, certified = cells[0]["alpha"], [cell for cell in cells if cell["kind"] == "certified"]
    above = [cell for cell in certified if cell["rate_low"] > alpha]
    bounds = len({cell["bound"] for cell in cells})
    found = (
        f"{len(above)} of {len(certified)} certified cells have a 95 % interval that lies above α = {alpha:.3g}"
        if certified
        else "no certified bound was measured"
    )
    expected = "even if all are sound, about 2.5 % of intervals do by chance where a rate is exactly α"
    sections = [
        Section(
            "False alarms", [Drawn(figures_in(document)["all"]), Words(f"{found[0].upper()}{found[1:]}; {expected}.")]
        ),
        Section("All cells", [Numbers("Every bound on every mechanism", rows_table(cells))]),
        Section("Limits", [Points(["Mechanisms of known ε only, and as many repetitions as the table says."])]),
        Section("How it was measured", [Facts("Versions", list(flat(document["versions"])))]),
    ]
    settings = (
        f"{cells[0]['repetitions']} simulated audits of {cells[0]['trials']} trials for each, seed {document['seed']}"
    )
    return Page(
        title=f"Calibration of {bounds} bound{'s' * (bounds != 1)}",
        kind="How often bounds exceed a truth that is known",
        verdict=None,
        sentences=[f"{found[0].upper()}{found[1:]}.", f"{settings}."],
        sections=sections,
        version=document["versions"]["epsilometer"],
    )
