"""A finished audit on disk: result.json for programs, scores.csv for whoever wants to judge them again."""

from __future__ import annotations

import itertools
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsilometer.auditing import RESULTS, AuditResult, plan_of
from epsilometer.auditing.whole_files import write_whole
from epsilometer.errors import InvalidInput
from epsilometer.report.document import to_json


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


def write_results(directory: Path, result: AuditResult) -> Written:
    """Write the files that are missing or have another content, each whole or not at all. Nothing is overwritten."""
    document, table = directory / RESULTS[0], directory / RESULTS[1]
    if plan_of(document) not in (None, result.plan.fingerprint()):
        expected = f"a directory whose {document.name} is of this plan"
        raise InvalidInput("out", str(directory), expected, f"move {document} away, and run the same again")
    fresh = to_json(result)
    texts = {document: (_json(fresh), _json(_as_of(document, fresh))), table: (_csv(result), _csv(result))}
    stale = {path: text for path, (text, expected) in texts.items() if not _holds(path, expected)}
    kept = []
    try:
        for path, text in stale.items():
            changed = os.path.lexists(path)
            if changed:
                kept.append(_put_aside(path))
            write_whole(path, text, anew=changed)
    except OSError as error:
        raise InvalidInput(
            "out", str(directory), f"a directory to write to ({error.strerror})",
            "trials are stored: make room and run the same command again",
        ) from None  # fmt: skip
    return Written(tuple(stale), tuple(kept))


def _listed(paths: tuple[Path, ...]) -> str:
    return " and ".join(map(str, paths))


def _json(document: dict[str, Any]) -> bytes:
    return f"{json.dumps(document, indent=2)}\n".encode()


def _csv(result: AuditResult) -> bytes:
    side, table = result.evidence.table()
    size = result.evidence.group_size  # a bound that did not know would claim too much
    more, end = (",group_size", f",{size}") if size > 1 else ("", "")
    rows = [f"{side},score{more}", *(f"{where},{score!r}{end}" for where, score in table)]
    return "".join(f"{row}\n" for row in rows).encode()


def _as_of(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    """The document as an earlier command has written it to `path`: it took its own time, with versions of its own."""
    try:
        found = json.loads(path.read_bytes())
        seconds, versions = found["seconds"], found["versions"]
        plausible = math.isfinite(seconds) and all(isinstance(version, str) for version in versions.values())
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return document
    return {**document, "seconds": seconds, "versions": versions} if plausible else document


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def _put_aside(path: Path) -> Path:
    """Another name for what `path` has, one that nothing has yet; a link to elsewhere is kept as such."""
    numbers = itertools.count(1)
    while True:
        aside = path.with_name(f"{path.stem}.edited-{next(numbers)}{path.suffix}")
        try:
            os.link(path, aside, follow_symlinks=False)
        except FileExistsError:
            continue
        return aside
