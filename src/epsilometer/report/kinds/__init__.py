"""The page of every kind of result, one small file each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epsilometer.errors import MALFORMED, InvalidInput
from epsilometer.report.kinds import (
    audit,
    calibration,
    instances,
    ladder,
    membership,
    reconstruction,
    reproduction,
    watch,
)
from epsilometer.report.kinds import property as property_page
from epsilometer.report.page import Page

Document = dict[str, Any]
PAGES: dict[str, Callable[[Document], Page]] = {
    "audit": audit.page,
    "membership": membership.page,
    "instances": instances.page,
    "property": property_page.page,
    "reconstruction": reconstruction.page,
    "watch": watch.page,
    "calibration": calibration.page,
    "reproduction": reproduction.page,
    "ladder": ladder.page,
}


def page_of(document: Document, source: str = "result.json") -> Page:
    """The report of a run's document, by the kind that it says it is of."""
    try:
        page = PAGES.get(document["kind"] if "kind" in document else _unsaid(document))
        if page is not None:
            return page(document)
    except MALFORMED as error:
        expected = f"a result as this version writes it ({type(error).__name__}: {error})"
        raise InvalidInput("result", source, expected, "run the same command again, which writes it anew") from None
    raise InvalidInput("result", source, f"the result of a run ({', '.join(PAGES)})", "name the directory of one")


def _unsaid(document: Document) -> str:
    """The kind of a result of 0.1, most of which did not say it."""
    if document.get("membership") is True:
        return "membership"
    if "plan_sha256" in document and "lower_bound" in document:
        return "audit"
    if "trainings" in document and "exit_code" in document:
        return "watch"
    if "cells" in document:
        return "calibration"
    if "rows" in document:
        return "ladder" if document.get("name") == "ladder" else "reproduction"
    return ""
