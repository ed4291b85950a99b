"""Sections that reports of several kinds have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from epsilometer.figures import Figure, Table
from epsilometer.figures.figure import number
from epsilometer.report.page import Block, Code, Facts, Numbers, Words
from epsilometer.report.stored_figures import figure_from_dict

Document = dict[str, Any]


def figures_in(document: Document) -> dict[str, Figure]:
    """What result.json has of them, by name."""
    return {name: figure_from_dict(one) for name, one in document["figures"].items()}


def yes(value: object) -> str:
    return "yes" if value else "no"


def told(value: Any) -> str:
    """A value of JSON for people."""
    if isinstance(value, bool):
        return yes(value)
    if value is None:
        return "–"
    if isinstance(value, float) or value in ("inf", "-inf", "nan"):
        return number(float(value), 6)
    return f"{value}"


def flat(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every leaf of nested settings, with its path."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from flat(item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for place, item in enumerate(value):
            yield from flat(item, f"{prefix}[{place}]")
    else:
        yield prefix, ", ".join(map(told, value)) if isinstance(value, list) else told(value)


def every_setting(document: Document) -> list[Block]:
    """All parameters, versions, counts and hashes of an audit."""
    counts = {"trials": document["trials"], "stopped early": document["stopped_early"], "seconds": document["seconds"]}
    hashes = [
        ("plan", document["plan_sha256"]),
        ("scores (scores.csv)", document["scores_sha256"]),
        ("data", document["plan"]["data"].get("sha256", "–")),
    ]
    return [
        Numbers("Parameters of the plan", Table(("parameter", "value"), tuple(flat(document["plan"])))),
        Facts("Counts", list(flat(counts))),
        Facts("SHA-256", hashes),
        Facts("Versions", list(flat(document["versions"]))),
    ]


def reproducing(document: Document) -> list[Block]:
    command = document.get("command")
    again = (
        "The same command, on the same data and versions, gives the same scores bit for bit on the same machine; on "
        "another, last digits may differ."
    )
    if not command:
        return [Words("No command is known: the run was made from Python. Its plan is above.")]
    return [Code("To have it again", command), Words(again)]


def rows_table(rows: list[Document]) -> Table:
    """Rows that have some keys each, as one table; what none of them has is left out."""
    known = ((key, value) for row in rows for key, value in row.items())
    kept = list(dict.fromkeys(key for key, value in known if value is not None and not isinstance(value, dict)))
    return Table(tuple(kept), tuple(tuple(told(row.get(key)) for key in kept) for row in rows))
