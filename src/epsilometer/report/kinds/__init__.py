"""Every kind of run that has a report, one small file each: how its document is known, and its page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from epsilometer.errors import MALFORMED, InvalidInput
from epsilometer.report.kinds import audit, calibration, instances, ladder, membership, reproduction, watch
from epsilometer.report.page import Page

Document = dict[str, Any]


@dataclass(frozen=True)
class ReportKind:
    """Its name, whether a document is of this kind, and the page that follows from one."""

    name: str
    is_of: Callable[[Document], bool]
    page: Callable[[Document], Page]


KINDS = (
    ReportKind("membership", membership.is_of, membership.page),
    ReportKind("audit", audit.is_of, audit.page),
    ReportKind("instances", instances.is_of, instances.page),
    ReportKind("watch", watch.is_of, watch.page),
    ReportKind("calibration", calibration.is_of, calibration.page),
    ReportKind("reproduction", reproduction.is_of, reproduction.page),
    ReportKind("ladder", ladder.is_of, ladder.page),
)


def page_of(document: Document, source: str = "result.json") -> Page:
    """The report of a run's document, whatever kind it is of."""
    try:
        for kind in KINDS:
            if kind.is_of(document):
                return kind.page(document)
    except MALFORMED as error:
        expected = f"a result as this version writes it ({type(error).__name__}: {error})"
        raise InvalidInput("result", source, expected, "run the same command again, which writes it anew") from None
    known = ", ".join(kind.name for kind in KINDS)
    raise InvalidInput("result", source, f"the result of a run ({known})", "name the directory of one")
