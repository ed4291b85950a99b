"""`epsilometer list`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Annotated, Any

import typer

from epsilometer.cli.output import emit_json, print_table, say
from epsilometer.errors import unknown_name


def catalogue(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="[KIND]", help="Only these, such as bounds or adversaries; without it, all."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """List adversaries, attacks, bounds, accountants, data sets, models, reproductions and more.

    Examples:

    - `epsilometer list`

    - `epsilometer list bounds`

    - `epsilometer list adversaries --json`
    """
    from epsilometer.accounting import ACCOUNTANTS
    from epsilometer.adversaries import ADVERSARIES
    from epsilometer.auditing import SUBJECTS, TEMPLATES
    from epsilometer.bounds import METHODS
    from epsilometer.collaborative import PROPERTIES
    from epsilometer.data import DATASETS
    from epsilometer.mechanisms import MECHANISMS
    from epsilometer.membership import ATTACKS, READOUTS
    from epsilometer.reconstruction import RECORD_ATTACKS
    from epsilometer.reproductions import REPRODUCTIONS
    from epsilometer.runs import EXECUTORS
    from epsilometer.training import MODELS
    from epsilometer.watching.checks.catalogue import CHECKS
    from epsilometer.watching.framework import FRAMEWORKS

    tables: dict[str, Mapping[str, Any]] = {
        "adversaries": ADVERSARIES,
        "attacks": ATTACKS,
        "readouts": READOUTS,
        "properties": PROPERTIES,
        "reconstructions": RECORD_ATTACKS,
        "bounds": METHODS,
        "accountants": ACCOUNTANTS,
        "mechanisms": MECHANISMS,
        "subjects": SUBJECTS,
        "datasets": DATASETS,
        "models": MODELS,
        "reproductions": REPRODUCTIONS,
        "frameworks": FRAMEWORKS,
        "checks": CHECKS,
        "executors": EXECUTORS,
        "templates": TEMPLATES,
    }
    if kind is not None and kind not in tables:
        raise unknown_name("KIND", kind, tables)
    asked = tables if kind is None else {kind: tables[kind]}
    with redirect_stdout(sys.stderr):  # other packages may print while they are imported
        sections = {one: _summaries(table) for one, table in asked.items()}
        problems = [line for table in asked.values() for line in getattr(table, "problems", ())]
    for line in dict.fromkeys(problems):
        say(f"left out: {line}")
    if as_json:
        emit_json(sections)
        return
    rows = [(kind, name, summary) for kind, entries in sections.items() for name, summary in entries.items()]
    print_table(("kind", "name", "what it is"), rows)


def _summaries(table: Mapping[str, Any]) -> dict[str, str]:
    """What each entry is and, if another package brings it, which one."""
    origin = getattr(table, "origin", lambda _: "")
    return {name: _told(entry, origin(name)) for name, entry in table.items()}


def _told(entry: Any, package: str) -> str:
    """Tables have texts, or entries with a summary; those that are broken on purpose have a fault instead."""
    fault = getattr(entry, "fault", "")
    words = entry if isinstance(entry, str) else f"BROKEN: {fault}" if fault else getattr(entry, "summary", "")
    return f"{words} (from {package})".lstrip() if package else words
