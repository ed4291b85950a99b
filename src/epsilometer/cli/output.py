"""How commands speak: results on stdout, everything else on stderr, mistakes in one line with exit code 2."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO

from epsilometer.errors import EpsilometerError
from epsilometer.plain import SCHEMA, plain

BAD_INPUT = 2
INTERNAL_ERROR = 3
INTERRUPTED = 130


class Interrupted(EpsilometerError):
    """Ctrl-C, with what was saved and how to go on."""


_results: TextIO | None = None  # where `emit_json` writes, while nobody else may write to stdout


@contextmanager
def results_only() -> Iterator[None]:
    """Meanwhile `emit_json` has stdout for itself; what others print, such as a user's adversary, goes to stderr."""
    global _results  # noqa: PLW0603 (the process has one stdout)
    _results = sys.stdout
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _results = None


def emit_json(document: dict[str, Any]) -> None:
    """One JSON object on stdout, in ASCII: it must survive every pipe."""
    text = json.dumps(plain({"schema": SCHEMA, **document}), allow_nan=False)
    print(text, file=_results or sys.stdout, flush=True)


def say(text: str) -> None:
    """A remark on stderr; one that cannot be written must not change the exit code."""
    with suppress(OSError, ValueError):
        print(visible(text), file=sys.stderr, flush=True)


def visible(text: str) -> str:
    r"""Text from outside (keys of a spec, names in a store, paths) that cannot command a terminal.

    >>> print(visible("a\x1b[31mred\nε"))
    a\x1b[31mred\nε
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def number(value: float | int | None, digits: int = 4) -> str:
    """A number for a table."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return "∞" if math.isinf(value) else f"{value:.{digits}g}"


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """A table on stdout: drawn in a terminal, tab-separated in a pipe."""
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            print("\t".join(visible(cell) for cell in row))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, title=title or None, title_justify="left", box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))  # no markup: paths have brackets too
    Console().print(table)
