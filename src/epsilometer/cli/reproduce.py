"""`epsilometer reproduce`."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epsilometer.cli.output import Interrupted, emit_json, number, say
from epsilometer.cli.plan import Address, AsJson, DataDir, ExecutorName, Quiet, Workers
from epsilometer.cli.progress import downloads, progress, signals
from epsilometer.errors import EpsilometerError

if TYPE_CHECKING:
    from epsilometer.audit import SqliteStore
    from epsilometer.reproductions import Reproduction, Row


def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which table or figure: see `epsilometer list`.")],
    out: Annotated[Path, typer.Option(help="Directory for trials, table, picture; a stopped run continues there.")],
    trials: Annotated[int | None, typer.Option(help="In each world; without it, as in the paper.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Cells with this setting, KEY=VALUE; may be given several times.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Every trial follows from it.")] = 0,
    data_dir: DataDir = None,
    executor: ExecutorName = "auto",
    workers: Workers = None,
    address: Address = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Rerun a published table or figure: the paper's numbers beside those measured here.

    Examples:

    - `epsilometer reproduce jagielski-table2 --only init=fixed --only C=1 --trials 40 --out quick`

    - `epsilometer reproduce jagielski-table2 --out table2` reruns all of it; the same again continues.
    """
    from epsilometer import checks
    from epsilometer.audit import StoreError, TrialsFailed, executor_named
    from epsilometer.reproductions import Session, reproduction_directory, reproduction_named, write_rows

    chosen = reproduction_named(name)
    cells = chosen.chosen(only or [])
    count = chosen.trials if trials is None else checks.whole("--trials", trials, least=20)
    settings = {"reproduction": name, "trials": count, "seed": checks.whole("--seed", seed, least=0)}
    player = executor_named(executor, workers, address)
    rows: list[Row] = []
    written: list[Path] = []
    with ExitStack() as stack:
        store = stack.enter_context(reproduction_directory(out, settings))
        told = stack.enter_context(progress(quiet))
        stack.enter_context(signals())
        session = Session(count, seed, data_dir, store, player, told, downloads(quiet))
        try:
            for row in chosen.rows(cells, session):
                rows.append(row)
                say(f"{len(rows)} of {len(cells)}: {_line(chosen, row)}")
                written = write_rows(out, chosen, settings, rows)
        except KeyboardInterrupt:
            raise Interrupted(_how_to_continue(out, store)) from None
        except (StoreError, TrialsFailed) as error:
            raise EpsilometerError(f"{error}; {_how_to_continue(out, store)}") from None
    if as_json:
        emit_json({"settings": settings, "about": chosen.about, "rows": [row.to_dict() for row in rows]})
    else:
        print("\n".join([*(_line(chosen, row) for row in rows), "", chosen.about]))
    say(f"wrote {', '.join(str(path) for path in written)}")


def _line(of: Reproduction, row: Row) -> str:
    where = " ".join(f"{key}={value}" for key, value in row.cell.items())
    more = ", ".join(f"{key} {_shown(row.details.get(key))}" for key in of.shown)
    return f"{where}: paper {number(row.paper, 3)}, measured {number(row.measured, 3)} ({more})"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return number(value, 3) if isinstance(value, int | float | None) else str(value)


def _how_to_continue(out: Path, store: SqliteStore) -> str:
    with suppress(EpsilometerError):
        if not any(run.trials for run in store.runs()) and not (out / "result.json").exists():
            return "nothing was stored yet"
    return f"what was played is stored in {out}; to continue: {shlex.join(['epsilometer', *sys.argv[1:]])}"
