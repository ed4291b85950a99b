"""`epsilometer report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epsilometer.cli.output import emit_json, say


def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a finished run: of any --out.")],
    open_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Write a run's report.html again from what is stored; nothing is played.

    Commands with --out write one by themselves. It is a single file without scripts, which loads nothing from anywhere.
    One that somebody has changed is kept under another name.

    Examples:

    - `epsilometer report results --open`
    """
    from epsilometer.report.report_file import write_report

    path, kept = write_report(directory)
    if as_json:
        emit_json({"report": str(path), "kept": None if kept is None else str(kept)})
    else:
        print(path)
    if kept is not None:
        say(f"what was in {path.name} was changed, and is kept as {kept}")
    if open_it:
        import webbrowser

        if not webbrowser.open(path.resolve().as_uri()):
            say("no browser was found; open the file by hand")
