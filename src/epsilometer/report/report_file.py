"""report.html of a run: it follows from what the run has written, and can be made again at any time."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from epsilometer.errors import MALFORMED, InvalidInput
from epsilometer.report.html import render
from epsilometer.report.kinds import page_of
from epsilometer.report.seal import is_sealed
from epsilometer.runs import RESULTS, STORE, SqliteStore
from epsilometer.runs.atomic_files import put_aside, write_whole

REPORT = "report.html"
DOCUMENTS = (RESULTS[0], "calibration.json")


def write_report(directory: Path, document: dict[str, Any] | None = None) -> tuple[Path, Path | None]:
    """Write the report of the run in a directory; where, and under which name another is kept that somebody changed.

    Nothing is played: all of it follows from `document`, or from what the directory holds.
    """
    content = _rendered(_read(directory)) if document is None else render(page_of(document))
    path, kept = directory / REPORT, None
    try:
        if os.path.lexists(path):
            ours = not path.is_symlink() and path.is_file() and is_sealed(before := path.read_bytes())
            if ours and before == content:
                return path, None
            kept = None if ours else put_aside(path)
            write_whole(path, content, anew=True)
        else:
            write_whole(path, content)
    except OSError as error:
        expected = f"a directory to write to ({error.strerror})"
        raise InvalidInput("DIR", str(directory), expected, "check its permissions") from None
    return path, kept


def _rendered(document: dict[str, Any]) -> bytes:
    """The report of a document that anybody may have written; pictures are drawn only now."""
    page = page_of(document)
    try:
        return render(page)
    except MALFORMED as error:
        expected = f"a result whose pictures can be drawn ({type(error).__name__}: {error})"
        remedy = "run the same command again, which writes it anew"
        raise InvalidInput("result", RESULTS[0], expected, remedy) from None


def _read(directory: Path) -> dict[str, Any]:
    """What the run in a directory has found, if its store does not say otherwise."""
    if not directory.is_dir():
        raise InvalidInput("DIR", str(directory), "the directory of a run", "check the path")
    path = next((directory / name for name in DOCUMENTS if (directory / name).is_file()), None)
    if path is None:
        begun = (directory / STORE).exists()
        remedy = "continue it: the same command again" if begun else "a command with --out DIR makes one"
        raise InvalidInput("DIR", str(directory), f"the directory of a finished run, with {DOCUMENTS[0]}", remedy)
    try:
        document = json.loads(path.read_bytes())
        if not isinstance(document, dict):
            raise ValueError("not an object")
    except (OSError, *MALFORMED) as error:
        raise InvalidInput("DIR", str(path), f"a result that can be read ({error})", "run the same again") from None
    _require_stored(directory, document)
    return document


def _require_stored(directory: Path, document: dict[str, Any]) -> None:
    """A result that was edited is not believed: its store knows the verdict and the bound."""
    if "plan_sha256" not in document or not (directory / STORE).is_file():
        return
    with SqliteStore.reading(directory / STORE) as store:
        found = next((run for run in store.runs() if run.fingerprint == document["plan_sha256"]), None)
    end = None if found is None else found.conclusion
    shown = tuple(document.get(key) for key in ("verdict", "lower_bound", "records_sha256"))
    if end is None or _concluded(end) != shown:
        path = directory / RESULTS[0]
        remedy = "run the audit again, which writes it anew"
        raise InvalidInput("DIR", str(path), f"what {STORE} beside it holds", remedy)


def _concluded(end: dict[str, Any]) -> tuple[Any, ...]:
    """What a store keeps of a result: an audit's verdict and bound, or a hash of what records pay."""
    outcome = None if end["verdict"] is None else end["verdict"]["outcome"]
    return outcome, end["lower_bound"], end.get("records_sha256")
