"""Score files: CSV with the columns `world` (0 out, 1 in) or `member` (0 or 1), and `score`; see columns.py."""

from __future__ import annotations

import csv
import io
import math
import sys
from pathlib import Path

from epsilometer.cli.columns import Columns, find_columns
from epsilometer.errors import InvalidInput


def parse_scores(content: bytes) -> tuple[list[float], list[float]]:
    """Scores of the out-world and of the in-world; every mistake is an `InvalidInput` that names the line.

    >>> parse_scores(b"world,score\\n0,0.5\\n1,2")
    ([0.5], [2.0])
    """
    worlds: tuple[list[float], list[float]] = ([], [])
    for world, score in _rows(content, "SCORES.csv", "world"):
        worlds[world].append(score)
    for world, scores in enumerate(worlds):
        if not scores:
            raise missing_world(world)
    return worlds


def missing_world(world: int) -> InvalidInput:
    expected = f"scores of the {'in' if world else 'out'}-world too"
    return InvalidInput("world", f"no row with world {world}", expected, "add them: both worlds are needed")


def parse_canaries(content: bytes) -> tuple[list[float], list[int]]:
    """Scores of one training's canaries, and whether each was a member.

    >>> parse_canaries(b"member,score\\n0,0.5\\n1,2")
    ([0.5, 2.0], [0, 1])
    """
    rows = _rows(content, "--one-run", "member")
    if not rows:
        raise InvalidInput("--one-run", "no rows", "a row for each canary")
    return [score for _, score in rows], [member for member, _ in rows]


def stated_group_size(content: bytes) -> int | None:
    """The number of records in which worlds differ, if the file has a column that says it, as our own files do.

    >>> stated_group_size(b"world,score,group_size\\n0,0.5,2\\n1,2,2")
    2
    """
    rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=None), skipinitialspace=True)
    header = [name.strip().lower() for name in next(rows, [])]
    if "group_size" not in header:
        return None
    cells = {row[header.index("group_size")].strip() for row in rows if any(cell.strip() for cell in row)}
    if len(cells) != 1 or not (cell := cells.pop()).isdecimal():
        raise InvalidInput("group_size", sorted(cells), "one whole number in every row", "remove the column")
    return int(cell)


def columns_of(content: bytes, side: str) -> Columns:
    """What the two columns of a file that was parsed are called there.

    >>> columns_of(b"label,loss\\n0,0.5\\n1,2", "world").sign
    -1.0
    """
    text = io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline=None)  # decodes no more than is read
    header = next(csv.reader(text, skipinitialspace=True))
    return find_columns([name.strip().lower() for name in header], side)


def content_of(path: Path, argument: str) -> bytes:
    """What the file holds; - is stdin."""
    if str(path) == "-" and sys.stdin is None:
        raise InvalidInput(argument, "-", "an open standard input", "name a file")
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise InvalidInput(argument, str(path), f"a readable file ({error.strerror})", "check the path") from None


def _rows(content: bytes, argument: str, side: str) -> list[tuple[int, float]]:
    """(side, score) of each row that is not empty."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(argument, "bytes that are not UTF-8", "a CSV text file") from None
    lines = csv.reader(io.StringIO(text, newline=None), skipinitialspace=True)
    found: list[tuple[int, float]] = []
    try:
        header = [name.strip().lower() for name in next(lines, [])]
        columns = find_columns(header, side)
        side_at, score_at = header.index(columns.side_name), header.index(columns.score_name)
        for row in lines:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(header):
                raise InvalidInput(
                    f"line {lines.line_num}", row, f"{len(header)} values", "write decimals with a point"
                )
            score = columns.sign * _score(row[score_at], columns.score_name, lines.line_num)
            found.append((_side(row[side_at], columns.side_name, lines.line_num), score))
    except csv.Error as error:
        raise InvalidInput(argument, str(error), "a CSV text file") from None
    return found


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
    return value
