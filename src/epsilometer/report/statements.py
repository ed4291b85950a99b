"""What is known of the statements of watched trainings, for a CI: JUnit XML and a section of Markdown.

Both are made from the document of `epsilometer watch`, as its page is.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from epsilometer.report.junit import Case, suites
from epsilometer.report.markdown import markdown_table
from epsilometer.report.outlets import Outlets, write_junit, write_section
from epsilometer.report.release import DO_NOT_RELEASE

_SKIPPED = ("untested", "assumed")


def require_writable(junit: Path | None, summary: Path | None) -> None:
    """Refused before the command runs, not after it."""
    Outlets(summary, junit)


def write_statements(
    document: dict[str, Any], junit: Path | None, summary: Path | None, *, require_consistent: bool
) -> list[Path]:
    """Write those that are asked for; which files that were."""
    if summary is not None:
        key = hashlib.sha256(shlex.join(document["command"]).encode()).hexdigest()[:16]
        write_section(summary, "summary", key, statements_markdown(document))
    if junit is not None:
        write_junit(junit, suites(list(_cases(document, require_consistent)), document["seconds"]))
    return [path for path in (junit, summary) if path is not None]


def statements_markdown(document: dict[str, Any]) -> str:
    """Each training: its verdict, and a row for every statement."""
    lines = [f"## Epsilometer: watched {shlex.join(document['command'])}", ""]
    for number, one in enumerate(document["trainings"], start=1):
        if one["verdict"] == "violated":
            lines += [f"**{DO_NOT_RELEASE} Training {number}: {one['quote']}.**", ""]
        rows = [("verdict", f"{one['verdict']}: {one['reason']}")]
        rows += [(f"{row['statement']}: {row['standing']}", row_in_words(row)) for row in one["statements"]]
        lines += [f"### Training {number}", "", *markdown_table([*rows, ("quote", one["quote"])]), ""]
    if not document["trainings"]:
        lines += ["Nothing was audited: no private training was seen.", ""]
    lines += [f"Not audited: {why}" for why in document["failures"]]
    return "\n".join(lines)


def _cases(document: dict[str, Any], require_consistent: bool) -> Iterator[Case]:
    """A test for every statement, and one for the verdict."""
    for number, one in enumerate(document["trainings"], start=1):
        name = f"training {number}"
        failed = one["verdict"] == "violated" or (
            require_consistent and one["verdict"] == "inconclusive" and not one.get("idle")
        )
        skipped = one["verdict"] == "inconclusive" and not failed
        yield Case(f"{name}: verdict", f"{one['verdict']}: {one['reason']}", failed=failed, skipped=skipped)
        for row in one["statements"]:
            broken, words = row["standing"] == "broken", f"{row['standing']}: {row_in_words(row)}"
            yield Case(f"{name}: {row['statement']}", words, failed=broken, skipped=row["standing"] in _SKIPPED)
    for why in document["failures"]:
        yield Case("not audited", why, failed=require_consistent, skipped=not require_consistent)
    if not document["trainings"] and not document["failures"]:
        nothing = "no private training was seen"
        yield Case("nothing was audited", nothing, failed=require_consistent, skipped=not require_consistent)


def row_in_words(row: dict[str, Any]) -> str:
    """What was found of one statement, by whom, and what would test it."""
    by = f" (by {', '.join(row['by'])})" if row["by"] else ""
    step = f", at step {row['step']}" if row["step"] else ""
    then = f"; next: {row['next']}" if row["next"] and row["standing"] == "untested" else ""
    return f"{row['reason']}{step}{by}{then}"
