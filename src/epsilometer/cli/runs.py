"""`epsilometer runs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.output import emit_json, number, print_table, say
from epsilometer.errors import EpsilometerError, InvalidInput
from epsilometer.rounding import down

if TYPE_CHECKING:
    from epsilometer.overview import KnownRun

_COLUMNS = ("run", "state", "trials", "claimed", "proved", "adversary", "verdict", "time")
_HEADINGS = {"proved": "lower bound"}  # the key of --json is what programs know
Listed = tuple[dict[str, Any], list[str]]  # a run for programs, and as cells of the table


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
    listed = [one for path in paths for one in _listed(path, alone=len(paths) == 1)]
    if as_json:
        emit_json({"runs": [row for row, _ in listed]})
        return
    print_table([_HEADINGS.get(column, column) for column in _COLUMNS], [cells for _, cells in listed])


def _stores(directory: Path) -> list[Path]:
    """The stores to look at: all of a directory, or none; a part of a disk would be a list that nobody asked for."""
    from epsilometer.overview import places_below
    from epsilometer.runs import SEARCH_SECONDS, STORE

    if directory.name == STORE and directory.is_file():
        return [directory]
    if not directory.is_dir():
        raise InvalidInput("DIR", str(directory), "an existing directory", "check the path")
    paths, complete = places_below(directory)
    if not complete:
        seen = f"{len(paths)} runs were found, one in {paths[0].parent}" if paths else "no run was found"
        unseen = f"a directory that can be looked through in {SEARCH_SECONDS:g} seconds ({seen})"
        raise InvalidInput("DIR", str(directory), unseen, "name one that is nearer to the runs")
    if not paths:
        expected = "a directory with runs in it"
        raise InvalidInput("DIR", str(directory), expected, "epsilometer audit --out DIR or watch --out DIR makes one")
    return paths


def _listed(path: Path, alone: bool) -> list[Listed]:
    """What is known of the runs in one store; a store that cannot be read must not hide the others."""
    from epsilometer.overview import runs_at
    from epsilometer.runs import RESULTS

    try:
        found = runs_at(path)
    except EpsilometerError as odd:
        if alone:
            raise
        say(f"epsilometer: {odd}")
        return []
    if not found and (path.parent / RESULTS[0]).is_file():
        say(f"{path.parent}: a table without trials of its own")
    elif not found:
        say(f"{path}: no plan is stored; if it was copied, was {path.name}-wal left behind?")
    return [(row, _cells(run, row)) for run, row in ((run, _row(run)) for run in found)]


def _row(run: KnownRun) -> dict[str, Any]:
    return {
        "run": str(run.where),
        "state": run.state,
        "trials": {"done": run.done, "of": run.total},
        "counted": run.counted,
        "claimed": run.claimed,
        "unit": run.neighbours.unit,
        "delta": run.delta,
        "proved": run.proved,
        "kind": run.lower and run.lower["kind"],
        "adversary": run.adversary,
        "verdict": run.outcome,
        "faults": run.plan.get("faults", {}),
        "time": run.seconds,
        "begun": run.begun,
        "plan_sha256": run.fingerprint,
    }


def _cells(run: KnownRun, row: dict[str, Any]) -> list[str]:
    """As the table has it, where an ε says of whom it is."""
    shown = {column: _text(column, row) for column in _COLUMNS}
    for column in ("claimed", "proved"):
        if row[column] is not None:
            shown[column] += run.of_unit
    return list(shown.values())


def _text(column: str, row: dict[str, Any]) -> str:
    from epsilometer.report import duration

    value = row[column]
    if column == "trials":
        return (
            f"{value['done']} of {value['of']}" if row["counted"] == "trials" else f"{value['done']} {row['counted']}"
        )
    if column == "time":
        return duration(value)
    if column == "proved" and value is not None:
        return down(value) if row["kind"] == "certified" else f"{down(value)} ({row['kind']})"
    if column == "verdict" and row["faults"].get("noise_scale", 1) != 1:
        return f"{value or '–'} (fault injected)"
    return value if isinstance(value, str) else number(value, 3)


def _export(directory: Path, paths: list[Path], target: Path) -> None:
    from epsilometer.report import judged_again, write_scores
    from epsilometer.runs import STORE, SqliteStore

    if len(paths) > 1:
        several = ", ".join(str(path.parent) for path in paths[:4])
        raise InvalidInput("DIR", str(directory), f"one run to export (there are {several})", "name its own directory")
    if paths[0].name != STORE:
        remedy = "what a watched training showed is in its recordings (*.jsonl)"
        raise InvalidInput("DIR", str(directory), "a run with a store of trials to export", remedy)
    with SqliteStore.reading(paths[0]) as store:
        stored = [run for run in store.runs() if not run.is_part]
        if len(stored) != 1:
            raise InvalidInput("DIR", str(directory), f"a store with one plan to export (it has {len(stored)})")
        run = stored[0]
        count = write_scores(target, run, store.results(run.fingerprint))
    say(f"wrote {count} scores to {target}; {judged_again(target, run)}")
