"""Where a reproduction is kept: a store with the trials of all its cells, and what was found so far."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from epsilometer.errors import EpsilometerError, InvalidInput
from epsilometer.figures.canvas import svg
from epsilometer.json_values import SCHEMA, json_values
from epsilometer.report.seal import is_sealed, sealed
from epsilometer.reproductions.reproduction import Reproduction, Row
from epsilometer.runs import SqliteStore
from epsilometer.runs.atomic_files import write_whole
from epsilometer.runs.directory import differences, store_in, stores_below
from epsilometer.versions import versions

RESULT, TABLE, PICTURE = "result.json", "table.csv", "figure.svg"
VIEWS = (TABLE, PICTURE)  # of the result; whoever changes one keeps it


@contextmanager
def reproduction_directory(out: Path, of: Reproduction, settings: dict[str, Any]) -> Iterator[SqliteStore]:
    """The store in a directory, which is made if it does not exist; the same settings continue there."""
    with store_in(out) as store:
        begun = (out / RESULT).exists()
        if begun:
            _require_same(out, of, settings)
        elif store.runs():
            raise _holds_an_audit(out)
        else:
            write_rows(out, of, settings, [])  # from now on the directory is known for what it is
        try:
            yield store
        except BaseException:
            with suppress(EpsilometerError):  # what went wrong matters more
                if not begun and not has_trials(out, store) and not _known(out, of):
                    for name in (RESULT, TABLE, PICTURE):
                        (out / name).unlink(missing_ok=True)
            raise


def has_trials(out: Path, store: SqliteStore) -> bool:
    """Whether anything was played: in the store, or in a directory that a cell has for itself."""
    return any(run.trials for run in store.runs()) or any(path.parent != out for path in stores_below(out)[0])


def _require_same(out: Path, of: Reproduction, settings: dict[str, Any]) -> None:
    """Whoever continues must know what was begun, and be able to read all of it."""
    try:
        if not (out / RESULT).is_file():
            raise ValueError("a pipe, say, which would keep us waiting")
        document = json.loads((out / RESULT).read_bytes())
        audit = "plan_sha256" in document
        known = {} if audit else dict(document["settings"])
        if known == settings:
            of.draw(_known(out, of))
    except Exception:
        expected = "a result.json of this program, or none"
        raise InvalidInput("out", str(out), expected, f"move {out / RESULT} away") from None
    if audit:
        raise _holds_an_audit(out)
    if known != settings:
        expected = f"the settings that were used there ({differences(known, settings)})"
        raise InvalidInput("out", str(out), expected, "name another directory")


def _holds_an_audit(out: Path) -> InvalidInput:
    return InvalidInput("out", str(out), "a directory for a reproduction (it holds an audit)", "name another")


def write_rows(out: Path, of: Reproduction, settings: dict[str, Any], rows: Sequence[Row]) -> list[Path]:
    """Write table, picture and document, each whole; which they were.

    Cells that were measured before and are not in `rows` stay, and so does a table or picture that was changed.
    """
    known = _known(out, of)
    before = _csv(_stored(out))
    found = {tuple(row.cell.items()): row for row in (*known, *rows)}
    rows = [found[key] for key in (tuple(cell.items()) for cell in of.cells) if key in found]
    table, figure = [json_values(row.to_dict()) for row in rows], of.draw(rows)
    texts = {}
    if _may_write(out / TABLE, lambda content: content in (before.encode(), _csv(table).encode())):
        texts[TABLE] = _csv(table).encode()
    if _may_write(out / PICTURE, is_sealed):
        texts[PICTURE] = sealed(svg(figure, alone=True))
    document = {
        "kind": "ladder" if of.name == "ladder" else "reproduction",
        "schema": SCHEMA,
        "name": of.name,
        "summary": of.summary,
        "settings": settings,
        "about": of.about,
        "rows": table,
        "figures": {"all": figure.to_dict()},
        "versions": versions(),
        **_headline(of, rows),
    }
    texts[RESULT] = (json.dumps(json_values(document), indent=2) + "\n").encode()
    for name, text in texts.items():
        try:
            write_whole(out / name, text, anew=True)
        except OSError as error:
            raise InvalidInput(
                "out", str(out / name), f"a file that can be written ({error.strerror})",
                "trials are stored: make room and run the same command again",
            ) from None  # fmt: skip
    return [out / name for name in texts]


def _headline(of: Reproduction, rows: Sequence[Row]) -> dict[str, str | None]:
    if of.headline is None or not rows:
        return {}
    short = of.headline(rows)
    return {"headline": str(short), "quote": short.quote, "verdict": short.verdict}


def _may_write(path: Path, is_ours: Callable[[bytes], bool]) -> bool:
    """Whether nothing is there, or what we wrote; never through a link."""
    if not os.path.lexists(path):
        return True
    return not path.is_symlink() and path.is_file() and is_ours(path.read_bytes())


def _known(out: Path, of: Reproduction) -> list[Row]:
    """What result.json has; rows that are older than a key of the cells have what was the rule then."""
    known = []
    for stored in _stored(out):
        values = {**of.earlier, **stored}
        cell = next((cell for cell in of.cells if all(values.get(key) == value for key, value in cell.items())), None)
        if cell is not None:
            found = {key: _number(value) for key, value in stored.items() if key not in cell}
            known.append(Row(cell, found.pop("paper"), found.pop("measured"), found))
    return known


def _stored(out: Path) -> list[dict[str, Any]]:
    """The rows of result.json as they stand there."""
    try:
        table: list[dict[str, Any]] = json.loads((out / RESULT).read_bytes())["rows"]
    except FileNotFoundError:
        return []
    return table


def _number(value: Any) -> Any:
    """What `plain` had to write in letters."""
    return float(value) if value in ("inf", "-inf", "nan") else value


def _csv(table: Sequence[dict[str, Any]]) -> str:
    columns = list(dict.fromkeys(key for row in table for key, value in row.items() if not isinstance(value, dict)))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()
