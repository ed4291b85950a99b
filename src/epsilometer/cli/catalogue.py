"""`epsilometer list`."""

from __future__ import annotations

from typing import Annotated

import typer

from epsilometer.cli.output import emit_json, print_table
from epsilometer.errors import unknown_name


def catalogue(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="[KIND]", help="Only these, such as bounds or adversaries; without it, all."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """List adversaries, attacks on membership, bounds, accountants, data sets, models, reproductions and more.

    Examples:

    - `epsilometer list`

    - `epsilometer list bounds`

    - `epsilometer list adversaries --json`
    """
    from epsilometer.accounting import ACCOUNTANTS
    from epsilometer.adversaries import ADVERSARIES
    from epsilometer.auditing import TEMPLATES
    from epsilometer.auditing.per_step import STEPWISE
    from epsilometer.bounds.catalogue import BOUNDS
    from epsilometer.data import DATASETS
    from epsilometer.membership import ATTACKS
    from epsilometer.reproductions import REPRODUCTIONS
    from epsilometer.runs import EXECUTORS
    from epsilometer.training import MODELS

    sections = {
        "adversaries": {name: adversary.summary for name, adversary in ADVERSARIES.items()},
        "attacks": {name: attack.summary for name, attack in ATTACKS.items()},
        "bounds": {name: entry.summary for name, entry in BOUNDS.items()}
        | {name: method.summary for name, method in STEPWISE.items()},
        "accountants": {name: accountant.summary for name, accountant in ACCOUNTANTS.items()},
        "datasets": {name: source.summary for name, source in DATASETS.items()},
        "models": dict(MODELS),
        "reproductions": {name: one.summary for name, one in REPRODUCTIONS.items()},
        "executors": dict(EXECUTORS),
        "templates": dict(TEMPLATES),
    }
    if kind is not None:
        if kind not in sections:
            raise unknown_name("KIND", kind, sections)
        sections = {kind: sections[kind]}
    if as_json:
        emit_json(sections)
        return
    rows = [(kind, name, summary) for kind, entries in sections.items() for name, summary in entries.items()]
    print_table(("kind", "name", "what it is"), rows)
