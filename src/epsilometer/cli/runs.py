"""`epsilometer runs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.output import emit_json, number, print_table, say
from epsilometer.errors import EpsilometerError, InvalidInput

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
    paths = _stores(directory)
    if export is not None:
        _export(directory, paths, export)
        return
    rows = [row for path in paths for row in _rows(path, alone=len(paths) == 1)]
    if as_json:
        emit_json({"runs": rows})
        return
    columns = ("run", "state", "trials", "claimed", "proved", "adversary", "verdict", "time")
    print_table(columns, [[_text(column, row) for column in columns] for row in rows])


def _stores(directory: Path) -> list[Path]:
    from epsilometer.audit import STORE, stores_below

    if directory.name == STORE and directory.is_file():
        return [directory]
    if not directory.is_dir():
        raise InvalidInput("DIR", str(directory), "an existing directory", "check the path")
    paths = stores_below(directory)
    if not paths:
        expected = "a directory with runs in it"
        raise InvalidInput("DIR", str(directory), expected, "epsilometer audit --out DIR makes one")
    return paths


def _rows(path: Path, alone: bool) -> list[dict[str, Any]]:
    """What is known of the runs in one store; a store that cannot be read must not hide the others."""
    from epsilometer.audit import RESULTS, SqliteStore

    try:
        with SqliteStore.reading(path) as store:
            driven, found = store.is_driven, store.runs()
    except EpsilometerError as error:
        if alone:
            raise
        say(f"epsilometer: {error}")
        return []
    if not found and (path.parent / RESULTS[0]).is_file():
        say(f"{path.parent}: a reproduction that needs no trials")
    elif not found:
        say(f"{path}: no plan is stored; if it was copied, was {path.name}-wal left behind?")
    return [_row(path.parent, run, driven) for run in found]


def _row(where: Path, run: StoredRun, driven: bool) -> dict[str, Any]:
    plan, end = run.plan, run.conclusion or {}
    finished = "stopped early" if end.get("stopped_early") else "finished"
    return {
        "run": str(where),
        "state": finished if end else "running" if driven else "interrupted",
        "trials": {"done": run.trials, "of": run.total},
        "claimed": run.claimed_epsilon,
        "delta": plan["delta"],
        "proved": end.get("lower_bound", {}).get("epsilon"),
        "adversary": plan["adversary"]["name"],
        "verdict": end.get("verdict", {}).get("outcome"),
        "faults": plan["faults"],
        "time": run.seconds,
        "begun": run.begun,
        "plan_sha256": run.fingerprint,
    }


def _text(column: str, row: dict[str, Any]) -> str:
    from epsilometer.report import duration

    value = row[column]
    if column == "trials":
        return f"{value['done']} of {value['of']}"
    if column == "time":
        return duration(value)
    if column == "verdict" and row["faults"]["noise_scale"] != 1:
        return f"{value or '–'} (fault injected)"
    return value if isinstance(value, str) else number(value, 3)


def _export(directory: Path, paths: list[Path], target: Path) -> None:
    from epsilometer.audit import SqliteStore
    from epsilometer.report import judged_again, write_scores

    if len(paths) > 1:
        several = ", ".join(str(path.parent) for path in paths[:4])
        raise InvalidInput("DIR", str(directory), f"one run to export (there are {several})", "name its own directory")
    with SqliteStore.reading(paths[0]) as store:
        stored = store.runs()
        if len(stored) != 1:
            raise InvalidInput("DIR", str(directory), f"a store with one plan to export (it has {len(stored)})")
        run = stored[0]
        count = write_scores(target, run, store.results(run.fingerprint))
    say(f"wrote {count} scores to {target}; {judged_again(target, run)}")
