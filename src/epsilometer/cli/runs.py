"""`epsilometer runs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.output import emit_json, number, print_table, say
from epsilometer.errors import InvalidInput

if TYPE_CHECKING:
    from epsilometer.audit import StoredRun


def runs(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A run directory, or one that has some in it.")],
    export: Annotated[
        Path | None, typer.Option(help="Write the scores of DIR's run to this file, .csv or .parquet.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """List runs with their progress and verdict; also while they are running.

    Examples:

    - `epsilometer runs results`

    - `epsilometer runs results --export scores.parquet`
    """
    from epsilometer.audit import SqliteStore, stores_below

    if not directory.is_dir():
        raise InvalidInput("DIR", str(directory), "an existing directory", "check the path")
    paths = stores_below(directory)
    if not paths:
        raise InvalidInput(
            "DIR", str(directory), "a directory with runs in it", "epsilometer audit --out DIR makes one"
        )
    if export is not None:
        _export(paths, export)
        return
    found: list[tuple[Path, StoredRun]] = []
    for path in paths:
        try:
            with SqliteStore.reading(path) as store:
                found += [(path.parent, run) for run in store.runs()]
        except InvalidInput as error:
            if len(paths) == 1:
                raise
            say(f"epsilometer: {error}")
    rows = [_row(where, run) for where, run in found]
    if as_json:
        emit_json({"runs": rows})
        return
    columns = ("run", "claim", "adversary", "trials", "time", "proved", "verdict")
    print_table(columns, [[_text(row[column]) for column in columns] for row in rows])


def _row(where: Path, run: StoredRun) -> dict[str, Any]:
    plan, end = run.plan, run.conclusion or {}
    claim = plan["claim"]
    return {
        "run": str(where),
        "plan_sha256": run.fingerprint,
        "claim": claim.get("name") or f"{claim['form']} {claim.get('epsilon', claim.get('mu'))}",
        "adversary": plan["adversary"]["name"],
        "trials": {"done": run.trials, "of": run.total},
        "time": run.seconds,
        "begun": run.begun,
        "proved": end.get("lower_bound", {}).get("epsilon"),
        "verdict": end.get("verdict", {}).get("outcome"),
    }


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value['done']} of {value['of']}"
    if isinstance(value, str):
        return value
    return number(value, 3)


def _export(paths: list[Path], target: Path) -> None:
    from epsilometer.audit import SqliteStore
    from epsilometer.report import write_scores

    if len(paths) > 1:
        several = ", ".join(str(path.parent) for path in paths[:4])
        raise InvalidInput("DIR", several, "one run to export", "name its own directory")
    with SqliteStore.reading(paths[0]) as store:
        stored = store.runs()
        if len(stored) != 1:
            raise InvalidInput("DIR", str(paths[0].parent), f"a store with one plan to export (it has {len(stored)})")
        run = stored[0]
        count = write_scores(target, run.plan, store.results(run.fingerprint))
    part = "" if run.conclusion else "; the run is not finished, and only eprocess is valid on a part of it"
    say(f"wrote {count} scores to {target}{part}")
