"""Files that tell others of a finding. Whatever is in them and is not ours stays."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from epsilometer.errors import InvalidInput
from epsilometer.report.finding import Finding
from epsilometer.report.junit import OURS, junit_xml
from epsilometer.report.markdown import job_summary, model_card
from epsilometer.runs.atomic_files import write_whole

Found = TypeVar("Found")
_TEXTS: dict[str, Callable[[Finding], str]] = {"summary": job_summary, "model-card": model_card}


@dataclass(frozen=True)
class Outlets:
    """Where to write: Markdown sections, each of which replaces the one of the same question, and a JUnit file."""

    summary: Path | None = None
    junit: Path | None = None
    model_card: Path | None = None

    def __post_init__(self) -> None:
        """Fail before the trials, not after them."""
        for option, path in self._sections().items():
            _read(option, path)
        if self.junit is not None:
            _require_own_junit(self.junit)

    def write(self, finding: Finding, *, require_consistent: bool = False) -> tuple[Path, ...]:
        """Write all; which files that were."""
        written = []
        for option, path in self._sections().items():
            write_section(path, option, finding.key, _TEXTS[option](finding))
            written.append(path)
        if self.junit is not None:
            write_junit(self.junit, junit_xml(finding, require_consistent=require_consistent))
            written.append(self.junit)
        return tuple(written)

    def _sections(self) -> dict[str, Path]:
        named = {"summary": self.summary, "model-card": self.model_card}
        return {option: path for option, path in named.items() if path is not None}


def write_junit(path: Path, content: bytes) -> None:
    """In the place of a file of ours, or of none."""
    _require_own_junit(path)
    _guarded("junit", path, lambda place: write_whole(place, content, anew=True))


def write_section(path: Path, option: str, key: str, text: str) -> None:
    """Put a section into a text: in the place of that of the same key, or at the end. The rest stays as it is."""
    found = _read(option, path)
    begin, end = f"<!-- epsilometer {option} {key} -->", f"<!-- end of epsilometer {option} {key} -->"
    section = f"{begin}\n\n{text}\n{end}\n"
    before = re.search(rf"^{re.escape(begin)}\r?\n.*?^{re.escape(end)}(\r?\n)?", found, flags=re.MULTILINE | re.DOTALL)
    if before is not None:
        whole = found[: before.start()] + section + found[before.end() :]
        _guarded(option, path, lambda place: write_whole(Path(os.path.realpath(place)), whole.encode(), anew=True))
        return
    gap = "" if not found or found.endswith("\n\n") else "\n" if found.endswith("\n") else "\n\n"
    _guarded(option, path, lambda place: _append(place, gap + section))


def _append(path: Path, text: str) -> None:
    """In place: a CI that lends us a file may look at no other."""
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _read(option: str, path: Path) -> str:
    """What a text file has; nothing if there is none yet. A line must end in it as ours do, or it is left alone."""
    _require_place(option, path)
    if not path.exists():
        return ""

    def read(place: Path) -> str:
        with place.open(encoding="utf-8", newline="") as file:
            return file.read()

    try:
        return _guarded(option, path, read)
    except UnicodeDecodeError:
        raise InvalidInput(option, str(path), "a text file (UTF-8) to add to, or a new one", "name another") from None


def _require_own_junit(path: Path) -> None:
    _require_place("junit", path)
    if path.exists() and OURS not in _guarded("junit", path, Path.read_bytes)[:200]:
        expected = "a new file, or one that epsilometer has written"
        raise InvalidInput("junit", str(path), expected, "name another, or move it away")


def _require_place(option: str, path: Path) -> None:
    if path.is_dir() or (path.exists() and not path.is_file()):
        raise InvalidInput(option, str(path), "a file", "name one")
    if path.is_symlink() and not path.exists():
        raise InvalidInput(option, str(path), "a file, or none (this links to nothing)", "remove the link")
    folder = Path(os.path.realpath(path)).parent  # `resolve` fails where links lead in a circle
    if not folder.is_dir():
        raise InvalidInput(option, str(path), "a file in an existing directory", f"make {folder}")
    if not os.access(path if path.exists() and option != "junit" else folder, os.W_OK):
        raise InvalidInput(option, str(path), "a file that can be written", "check its permissions")


def _guarded(option: str, path: Path, function: Callable[[Path], Found]) -> Found:
    try:
        return function(path)
    except OSError as error:
        expected = f"a file that can be read and written ({error.strerror})"
        raise InvalidInput(option, str(path), expected, "check its permissions") from None
