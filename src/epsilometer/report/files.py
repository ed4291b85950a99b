"""A finished audit on disk: result.json for programs, scores.csv for whoever wants to judge them again."""

from __future__ import annotations

import json
import os
from pathlib import Path

from epsilometer.audit import RESULTS, AuditResult, plan_of
from epsilometer.audit.whole_files import write_whole
from epsilometer.errors import InvalidInput
from epsilometer.report.document import to_json


def write_results(directory: Path, result: AuditResult) -> list[Path]:
    """Write the files that are not there yet, each whole or not at all; which they were."""
    side, table = result.evidence.table()
    size = result.evidence.group_size  # a bound that did not know would claim too much
    more, end = (",group_size", f",{size}") if size > 1 else ("", "")
    rows = [f"{side},score{more}", *(f"{where},{score!r}{end}" for where, score in table)]
    texts = (json.dumps(to_json(result), indent=2) + "\n", "\n".join(rows) + "\n")
    paths = [directory / name for name in RESULTS]
    if paths[0].is_file() and plan_of(paths[0]) != result.plan.fingerprint():
        expected = f"a directory whose {paths[0].name} is of this plan"
        raise InvalidInput("--out", str(directory), expected, f"move {paths[0]} away, and run the same again")
    missing = [(path, text) for path, text in zip(paths, texts, strict=True) if not os.path.lexists(path)]
    try:
        for path, text in missing:
            write_whole(path, text.encode())
    except OSError as error:
        raise InvalidInput(
            "--out", str(directory), f"a directory to write to ({error.strerror})",
            "trials are stored: make room and run the same command again",
        ) from None  # fmt: skip
    return [path for path, _ in missing]
