"""Score files: CSV with the columns `world` (0 out, 1 in) and `score`."""

from __future__ import annotations

import csv
import io
import math
import sys
from pathlib import Path

from epsilometer.errors import InvalidInput


def read_scores(path: Path) -> tuple[list[float], list[float]]:
    """Scores of the out-world and of the in-world."""
    if str(path) == "-" and sys.stdin is None:
        raise InvalidInput("SCORES.csv", "-", "an open standard input", "name a file")
    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise InvalidInput("SCORES.csv", str(path), f"a readable file ({error.strerror})", "check the path") from None
    return parse_scores(content)


def parse_scores(content: bytes) -> tuple[list[float], list[float]]:
    """The same from bytes; every mistake is an `InvalidInput` that names the line.

    >>> parse_scores(b"world,score\\n0,0.5\\n1,2")
    ([0.5], [2.0])
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("SCORES.csv", "bytes that are not UTF-8", "a CSV text file") from None
    rows = csv.reader(io.StringIO(text, newline=None), skipinitialspace=True)
    worlds: tuple[list[float], list[float]] = ([], [])
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        if not {"world", "score"} <= set(header):
            raise InvalidInput("header", header, "the columns world and score", "start the file with world,score")
        for name in ("world", "score"):
            if header.count(name) > 1:
                raise InvalidInput("header", header, f"one column {name}", "rename the others")
        world_at, score_at = header.index("world"), header.index("score")
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) <= max(world_at, score_at):
                raise InvalidInput(f"line {rows.line_num}", row, f"{len(header)} values")
            worlds[_world(row[world_at], rows.line_num)].append(_score(row[score_at], rows.line_num))
    except csv.Error as error:
        raise InvalidInput("SCORES.csv", str(error), "a CSV text file") from None
    for world, scores in enumerate(worlds):
        if not scores:
            name = "in" if world else "out"
            raise InvalidInput(
                "world",
                f"no row with world {world}",
                f"scores of the {name}-world too",
                "add them: both worlds are needed",
            )
    return worlds


def _world(cell: str, line: int) -> int:
    if cell.strip() not in ("0", "1"):
        raise InvalidInput(f"world in line {line}", cell, "0 (out) or 1 (in)")
    return int(cell)


def _score(cell: str, line: int) -> float:
    try:
        value = float(cell) if cell.isascii() and "_" not in cell else math.nan
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise InvalidInput(f"score in line {line}", cell, "a number", "find out which trial failed")
    return value
