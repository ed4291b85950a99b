"""How commands speak: results on stdout, everything else on stderr, mistakes in one line with exit code 2."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from epsilometer.errors import EpsilometerError
from epsilometer.plain import SCHEMA, plain

BAD_INPUT = 2
INTERNAL_ERROR = 3
INTERRUPTED = 130


class Interrupted(EpsilometerError):
    """Ctrl-C, with what was saved and how to go on."""


def emit_json(document: dict[str, Any]) -> None:
    """One JSON object on stdout, in ASCII: it must survive every pipe."""
    print(json.dumps(plain({"schema": SCHEMA, **document}), allow_nan=False))


def say(text: str) -> None:
    """A remark on stderr; one that cannot be written must not change the exit code."""
    with suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


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
            print("\t".join(row))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns, title=title or None, title_justify="left", box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
