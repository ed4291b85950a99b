"""A finished audit on disk: result.json for programs, scores.csv to judge it again, report.html for people."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsilometer.auditing import AuditResult
from epsilometer.errors import MALFORMED, InvalidInput
from epsilometer.report.details import scores_csv
from epsilometer.report.document import to_json
from epsilometer.report.report_file import REPORT, write_report
from epsilometer.runs import RESULTS, plan_of
from epsilometer.runs.atomic_files import put_aside, write_whole


@dataclass(frozen=True)
class Written:
    """Which files were written, and under which names those are kept that were there with another content."""

    paths: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()

    def __str__(self) -> str:
        wrote = f"wrote {_listed(self.paths)}"
        if not self.kept:
            return wrote
        return f"{wrote}; what was there is not what the trials show, and is kept as {_listed(self.kept)}"


def write_results(directory: Path, result: AuditResult, command: str = "") -> Written:
    """Write the files that are missing or have another content, each whole or not at all. Nothing that was edited is
    overwritten. `command` is what would play it again; it stands in the report.
    """
    return write_document(directory, {**to_json(result), "command": command}, RESULTS[1], scores_csv(result))


def write_document(directory: Path, fresh: dict[str, Any], table_name: str, content: bytes) -> Written:
    """The same for any run: its document, which names its plan and the command, a table, and the report of both."""
    document, table = directory / RESULTS[0], directory / table_name
    if plan_of(document) not in (None, fresh["plan_sha256"]):
        expected = f"a directory whose {document.name} is of this plan"
        raise InvalidInput("out", str(directory), expected, f"move {document} away, and run the same again")
    texts = {document: (_json(fresh), _json(_as_of(document, fresh))), table: (content, content)}
    stale = {path: text for path, (text, expected) in texts.items() if not _holds(path, expected)}
    kept = []
    try:
        for path, text in stale.items():
            changed = os.path.lexists(path)
            if changed:
                kept.append(put_aside(path))
            write_whole(path, text, anew=changed)
    except OSError as error:
        raise InvalidInput(
            "out", str(directory), f"a directory to write to ({error.strerror})",
            "trials are stored: make room and run the same command again",
        ) from None  # fmt: skip
    report, changed_report = directory / REPORT, None
    before = _content(report)
    _, changed_report = write_report(directory, json.loads(document.read_bytes()))
    written = (*stale, report) if _content(report) != before else tuple(stale)
    return Written(written, (*kept, *filter(None, [changed_report])))


def _listed(paths: tuple[Path, ...]) -> str:
    return " and ".join(map(str, paths))


def _json(document: dict[str, Any]) -> bytes:
    return f"{json.dumps(document, indent=2)}\n".encode()


def _as_of(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    """The document as an earlier command has written it to `path`: in its own words, time and versions."""
    try:
        found = json.loads(_content(path) or b"")
        taken = {key: found[key] for key in ("seconds", "versions", "command")}
        texts = [*taken["versions"].values(), taken["command"]]
        plausible = math.isfinite(taken["seconds"]) and all(isinstance(text, str) for text in texts)
    except (OSError, *MALFORMED):
        return document
    return {**document, **taken} if plausible else document


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None  # a pipe would keep us waiting
    except OSError:
        return None


def _holds(path: Path, content: bytes) -> bool:
    return _content(path) == content
