"""Score files: CSV with the columns `world` (0 out, 1 in) or `member` (0 or 1), and `score`; see columns.py."""

from __future__ import annotations

import csv
import io
import math
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.cli.columns import Columns, find_columns
from epsilometer.errors import InvalidInput

_MARK = b"\xef\xbb\xbf"  # with which some programs begin a text


Ints = NDArray[np.int64]


def parse_scores(content: bytes) -> tuple[Floats, Floats]:
    """Scores of the out-world and of the in-world; every mistake is an `InvalidInput` that names the line.

    >>> [scores.tolist() for scores in parse_scores(b"world,score\\n0,0.5\\n1,2")]
    [[0.5], [2.0]]
    """
    worlds, scores = _rows(content, "SCORES.csv", "world")
    for world in (0, 1):
        if world not in worlds:
            raise missing_world(world)
    return scores[worlds == 0], scores[worlds == 1]


def missing_world(world: int) -> InvalidInput:
    expected = f"scores of the {'in' if world else 'out'}-world too"
    return InvalidInput("world", f"no row with world {world}", expected, "add them: both worlds are needed")


def parse_canaries(content: bytes) -> tuple[Floats, Ints]:
    """Scores of one training's canaries, and whether each was a member.

    >>> [values.tolist() for values in parse_canaries(b"member,score\\n0,0.5\\n1,2")]
    [[0.5, 2.0], [0, 1]]
    """
    members, scores = _rows(content, "--one-run", "member")
    if not len(scores):
        raise InvalidInput("--one-run", "no rows", "a row for each canary")
    return scores, members


def stated_group_size(content: bytes) -> int | None:
    """The number of records in which worlds differ, if the file has a column that says it, as our own files do.

    >>> stated_group_size(b"world,score,group_size\\n0,0.5,2\\n1,2,2")
    2
    """
    rows = csv.reader(_lines(content), skipinitialspace=True)
    header = [name.strip().lower() for name in next(rows, [])]
    if "group_size" not in header:
        return None
    cells = {row[header.index("group_size")].strip() for row in rows if any(cell.strip() for cell in row)}
    if len(cells) != 1 or not (cell := cells.pop()).isdecimal():
        raise InvalidInput("group_size", sorted(cells), "one whole number in every row", "remove the column")
    return int(cell)


def stated_neighbours(content: bytes) -> dict[str, str]:
    """The unit and the relation of which a file's scores speak, if it has columns that say them, as our own files do.

    >>> stated_neighbours(b"world,score,unit\\n0,0.5,user\\n1,2,user")
    {'unit': 'user'}
    """
    rows = csv.reader(_lines(content), skipinitialspace=True)
    header = [name.strip().lower() for name in next(rows, [])]
    told = {name: header.index(name) for name in ("unit", "relation") if name in header}
    if not told:
        return {}
    cells = [row for row in rows if any(cell.strip() for cell in row)]
    return one_word_each({name: {row[place].strip() for row in cells} for name, place in told.items()})


def one_word_each(told: Mapping[str, set[str]]) -> dict[str, str]:
    """A column that says of which neighbours scores speak says the same in every row."""
    for name, words in told.items():
        if len(words) != 1:
            raise InvalidInput(name, sorted(words)[:4], "one word, the same in every row", "remove the column")
    return {name: next(iter(words)) for name, words in told.items()}


def columns_of(content: bytes, side: str) -> Columns:
    """What the two columns of a file that was parsed are called there.

    >>> columns_of(b"label,loss\\n0,0.5\\n1,2", "world").sign
    -1.0
    """
    header = next(csv.reader(_lines(content), skipinitialspace=True))
    return find_columns([name.strip().lower() for name in header], side)


def content_of(path: Path, argument: str) -> bytes:
    """What the file holds; - is stdin."""
    if str(path) == "-" and sys.stdin is None:
        raise InvalidInput(argument, "-", "an open standard input", "name a file")
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise InvalidInput(argument, str(path), f"a readable file ({error.strerror})", "check the path") from None


def _lines(content: bytes) -> io.TextIOWrapper:
    """The lines of a text, one by one: a file of a gigabyte is in memory once."""
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline=None)


def _rows(content: bytes, argument: str, side: str) -> tuple[Ints, Floats]:
    """Side and score of each row that is not empty."""
    try:
        lines = csv.reader(_lines(content), skipinitialspace=True)
        header = [name.strip().lower() for name in next(lines, [])]
        columns = find_columns(header, side)
        found = _plain_rows(content, header, columns)
        sides, scores = _any_rows(lines, header, columns) if found is None else found
        return sides, columns.sign * scores
    except UnicodeDecodeError:
        raise InvalidInput(argument, "bytes that are not UTF-8", "a CSV text file") from None
    except csv.Error as error:
        raise InvalidInput(argument, str(error), "a CSV text file") from None


def _plain_rows(content: bytes, header: list[str], columns: Columns) -> tuple[Ints, Floats] | None:
    """The same, ten times as fast, of a file in which every row is as it should be and nothing needs a second look."""
    if not content.removeprefix(_MARK).isascii() or b'"' in content or b"\0" in content:
        return None
    # two letters tell 1 from 10; of other columns nothing is used
    used = {columns.side_name: "S2", columns.score_name: "f8"}
    kinds = [(f"{i}", used.get(name, "S1")) for i, name in enumerate(header)]
    lines = _lines(content)
    next(lines)
    try:
        with warnings.catch_warnings(action="ignore"):  # of a file without rows
            table = np.loadtxt(lines, dtype=kinds, delimiter=",", comments=None, ndmin=1)
    except ValueError:
        return None
    sides, scores = (table[f"{header.index(name)}"] for name in used)
    if not np.isin(sides, (b"0", b"1")).all() or not np.isfinite(scores).all():
        return None
    return (sides == b"1").astype(np.int64), np.ascontiguousarray(scores)


def _any_rows(lines: Any, header: list[str], columns: Columns) -> tuple[Ints, Floats]:
    side, score = columns.side_name, columns.score_name
    side_at, score_at = header.index(side), header.index(score)
    sides, scores = [], []
    for row in lines:
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            raise InvalidInput(f"line {lines.line_num}", row, f"{len(header)} values", "write decimals with a point")
        sides.append(_side(row[side_at], side, lines.line_num))
        scores.append(_score(row[score_at], score, lines.line_num))
    return np.array(sides, np.int64), np.array(scores, np.float64)


def _side(cell: str, name: str, line: int) -> int:
    if cell.strip() not in ("0", "1"):
        raise InvalidInput(f"{name} in line {line}", cell, "0 (out) or 1 (in)")
    return int(cell)


def _score(cell: str, name: str, line: int) -> float:
    try:
        value = float(cell) if cell.isascii() and "_" not in cell else math.nan
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise InvalidInput(f"{name} in line {line}", cell, "a number", "find out which trial failed")
    if math.isinf(value):
        validate.written(f"{name} in line {line}", cell)
    return value
