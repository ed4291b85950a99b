"""The report of a ladder: six adversaries, each with more power, against one training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from epsilometer.report.kinds.reproduction import cells_page
from epsilometer.report.page import Page

Document = dict[str, Any]
LIMITS = (
    "This does not prove privacy: adversaries that are not on this ladder may show more.",
    "Each certified bound holds by itself, at its confidence; the verdict rests on tests that hold all at once.",
)


def page(document: Document) -> Page:
    data = document["settings"].get("data", {}).get("name", "")
    title = f"Ladder of adversaries{' on ' + data if data else ''}"
    told = [document["headline"]] if "headline" in document else []
    found = cells_page(document, title, "Six adversaries against one training", document.get("verdict"), LIMITS, *told)
    return replace(found, quote=document.get("quote", ""))
