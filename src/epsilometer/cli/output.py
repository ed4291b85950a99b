"""How commands speak: results on stdout, everything else on stderr, mistakes in one line with exit code 2."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO

from epsilometer.errors import EpsilometerError
from epsilometer.json_values import SCHEMA, json_values
from epsilometer.wrapping import told, wrapped

BAD_INPUT = 2
INTERNAL_ERROR = 3
TOO_WEAK = 4  # `--require consistent`, and the audit could not say so
INTERRUPTED = 130


_NARROWEST = 40  # columns to write in, however few a terminal says it has
_COLOURS = {"violated": "bold red", "consistent": "bold green", "inconclusive": "bold yellow"}


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
    text = json.dumps(json_values({"schema": SCHEMA, **document}), allow_nan=False)
    print(text, file=_results or sys.stdout, flush=True)


def say(text: str) -> None:
    """A remark on stderr, wrapped to a terminal; one that cannot be written must not change the exit code."""
    with suppress(OSError, ValueError):
        columns = width(sys.stderr)
        lines = visible(text) if columns is None else wrapped(visible(text), columns, hanging="  ")
        print(lines, file=sys.stderr, flush=True)


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


def width(stream: TextIO | None = None) -> int | None:
    """The columns of the terminal that a stream (stdout) is; none in a pipe, where lines stay whole for searching."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return None
    with suppress(KeyError, ValueError):
        if said := int(os.environ["COLUMNS"]):
            return max(said, _NARROWEST)
    with suppress(ValueError, OSError):
        return max(os.get_terminal_size(stream.fileno()).columns, _NARROWEST)
    return 80


def print_text(text: str) -> None:
    """A text on stdout, wrapped to its `width()`. A verdict in front is coloured there, unless NO_COLOR says not to."""
    columns = width()
    text = "\n".join(visible(line) for line in text.split("\n"))
    verdict = next((word for word in _COLOURS if text.startswith(word)), None)
    if columns is None or verdict is None:
        print(text)
        return
    from rich.console import Console
    from rich.text import Text

    styled = Text(text)  # no markup: paths have brackets too
    styled.stylize(_COLOURS[verdict], 0, len(verdict))
    Console(file=sys.stdout, highlight=False, soft_wrap=True).print(styled)


def advise(text: str) -> None:
    """What to know about a table before it is read; a pipe gets the table alone."""
    if (columns := width()) is not None:
        print_text(wrapped(text, columns))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """A table on stdout: drawn in a terminal, tab-separated in a pipe. Where words would not fit, a block a row."""
    shown = [[visible(cell) for cell in row] for row in rows]
    room = width()
    if room is None:
        for row in (columns, *shown):
            print("\t".join(row))
        return
    widest = [max(len(word) for cell in (name, *cells) for word in cell.split() or [""])
              for name, *cells in zip(columns, *shown, strict=True)]  # fmt: skip
    if sum(widest) + 2 * len(columns) > room:
        blocks = [told((), list(zip(columns, row, strict=True)), room) for row in shown]
        print("\n\n".join([*([title] if title else []), *blocks]))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name, least in zip(columns, widest, strict=True):
        table.add_column(name, min_width=least)
    for row in shown:
        table.add_row(*map(Text, row))  # no markup: paths have brackets too
    Console(file=sys.stdout, width=room).print(table)
