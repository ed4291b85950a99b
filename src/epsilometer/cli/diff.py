"""`epsilometer diff`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epsilometer.cli.manner import AsJson
from epsilometer.cli.output import emit_json, print_table, say, visible
from epsilometer.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epsilometer.overview import Comparison

_ABREAST = 4  # runs that fit beside each other; more of them are listed below each other


def diff(
    given: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories, or folders with some below.")],
    out: Annotated[
        Path | None, typer.Option(help="Write a page with a picture to this file, .html, or the picture alone, .svg.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put runs side by side: the settings that differ, claims, bounds, verdicts.

    Runs are read and not touched, also while they are running. Where unit, relation or δ differ, no ε may be held
    against another, and rows are marked.

    Examples:

    - `epsilometer diff before after`

    - `epsilometer diff sweep --out sweep.html` compares all runs of a folder.
    """
    from epsilometer.overview import compare

    _require_suffix(out)
    found = compare(given)
    if as_json:
        emit_json(found.to_dict())
    else:
        for remark in found.remarks:
            print(visible(remark))
        _print("", found.names, found.rows())
        if found.settings:
            print("\nsettings that differ")
            _print("", found.names, found.differences())
        else:
            print("\nall settings are the same")
    if out is not None:
        _write(out, found)


def _print(corner: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A column for each run; a row, if there are many."""
    table = [(corner, *map(visible, names)), *rows]
    if len(names) > _ABREAST:
        table = [tuple(column) for column in zip(*table, strict=True)]
    print_table(table[0], table[1:])


def _require_suffix(out: Path | None) -> None:
    """Before anything is read."""
    if out is None:
        return
    if out.suffix not in (".html", ".svg"):
        raise InvalidInput("--out", str(out), "a file that ends in .html or .svg")
    if os.path.lexists(out):
        raise InvalidInput("--out", str(out), "a file that does not exist yet", "name another, or move it away")


def _write(out: Path, found: Comparison) -> None:
    from epsilometer.figures.canvas import svg
    from epsilometer.overview.pages import comparison_page
    from epsilometer.runs.atomic_files import write_whole

    text = comparison_page(found) if out.suffix == ".html" else svg(found.figure(), "runs", alone=True)
    try:
        write_whole(out, text.encode())
    except OSError as error:
        raise InvalidInput("--out", str(out), f"a file to write to ({error.strerror})") from None
    say(f"wrote {out}")
