"""A finished audit on disk: result.json for programs, scores.csv for whoever wants to judge them again."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from epsilometer.audit import RESULTS, AuditResult
from epsilometer.errors import InvalidInput
from epsilometer.report.document import to_json


def write_results(directory: Path, result: AuditResult) -> list[Path]:
    """Write the files that are not there yet, each whole or not at all; which they were."""
    side, table = result.evidence.table()
    rows = [f"{side},score", *(f"{where},{score!r}" for where, score in table)]
    texts = (json.dumps(to_json(result), indent=2) + "\n", "\n".join(rows) + "\n")
    paths = [directory / name for name in RESULTS]
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


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that whoever looks sees the old one or the new one, and never a part."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.chmod(name, 0o644 & ~_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
