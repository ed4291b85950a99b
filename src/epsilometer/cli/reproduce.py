"""`epsilometer reproduce`."""

from __future__ import annotations

import math
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.driver import Players, again, stoppable
from epsilometer.cli.groups import as_user_wrote, grouped
from epsilometer.cli.manner import Manner
from epsilometer.cli.output import emit_json, number, print_text, say, width
from epsilometer.cli.plan import DataDir
from epsilometer.cli.progress import broken_pipes_are_errors, downloads, progress
from epsilometer.errors import EpsilometerError, InvalidInput
from epsilometer.rounding import down
from epsilometer.wrapping import wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from epsilometer.reproductions import Cell, Reproduction, Row, Session
    from epsilometer.runs import SqliteStore


@grouped
def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which table or figure: see `epsilometer list`.")],
    out: Annotated[Path, typer.Option(help="Directory for trials, table, picture; a stopped run continues there.")],
    trials: Annotated[
        int | None,
        typer.Option(help="In each world, or of what else is counted: docs/reproductions.md has the usual numbers."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Cells with this setting, KEY=VALUE,VALUE…; may be given several times.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Every trial follows from it.")] = 0,
    data_dir: DataDir = None,
    *,
    players: Players,
    manner: Manner,
) -> None:
    """Rerun a published table or figure: the paper's numbers beside those measured here.

    Examples:

    - `epsilometer reproduce jagielski-table2 --only init=fixed --only C=1,2 --trials 40 --out quick`

    - `epsilometer reproduce jagielski-table2 --out table2` reruns all of it; the same again continues.
    """
    from epsilometer import validate
    from epsilometer.reproductions import Session, reproduction_named

    chosen = reproduction_named(name)
    cells = chosen.chosen(only or [])
    count = chosen.trials if trials is None else validate.whole("--trials", trials, least=min(20, chosen.trials))
    if count < chosen.trials:  # with the rows, too: "paper 1.85, measured 0.69" says little without it
        few = f" This run has --trials {count}, where {chosen.trials:,} are usual"
        chosen = replace(chosen, about=chosen.about + few + (": it can show less." if chosen.at_least else "."))
    settings = {"reproduction": name, "trials": count, "seed": validate.whole("--seed", seed, least=0)}
    session = Session(count, seed, data_dir, executor=players.chosen())
    measure_cells(chosen, cells, settings, out, session, manner, line=_line)


def measure_cells(
    chosen: Reproduction,
    cells: Sequence[Cell],
    settings: dict[str, Any],
    out: Path | None,
    session: Session,
    manner: Manner,
    *,
    line: Callable[[Reproduction, Row], str] | None,
    summed_up: Callable[[list[Row]], dict[str, Any]] | None = None,
) -> list[Row]:
    """Measure cell after cell, telling each as it comes if a `line` says how; in `out` a stopped run continues. JSON
    begins with how they are `summed_up`."""
    from epsilometer.reproductions import reproduction_directory, write_rows

    rows: list[Row] = []
    written: list[Path] = []
    with ExitStack() as stack:
        store = None if out is None else stack.enter_context(reproduction_directory(out, chosen, settings))
        stack.enter_context(broken_pipes_are_errors())
        stack.enter_context(_data_dir_is_an_option())
        stack.enter_context(stoppable(lambda: _how_to_continue(out, store, rows)))
        session = replace(session, download=downloads(manner.quiet))
        if store is not None:
            session = replace(session, store=store, directory=out)
        for number_of, cell in enumerate(cells, start=1):
            if not manner.quiet:
                say(f"{number_of} of {len(cells)}: {where(cell)}")
            with progress(manner.quiet) as told:  # while it lives, it has the terminal: closed before rows are printed
                (row,) = chosen.rows([cell], replace(session, progress=told))
            rows.append(row)
            if out is not None:
                written = write_rows(out, chosen, settings, rows)
            if not manner.as_json and line is not None:
                print(line(chosen, row), flush=True)
    if manner.as_json:
        first = {} if summed_up is None else summed_up(rows)
        emit_json({**first, "settings": settings, "about": chosen.about, "rows": [row.to_dict() for row in rows]})
    else:
        print()
        print_text(wrapped(chosen.about, width()))
    if written:
        _tell_what_is_written(written)
    return rows


@contextmanager
def _data_dir_is_an_option() -> Iterator[None]:
    """Reproductions have no spec: what is wrong with a directory of data was said by an option."""
    try:
        yield
    except InvalidInput as error:
        raise as_user_wrote(error, {"data.directory": "--data-dir"}) from None


def _tell_what_is_written(written: list[Path]) -> None:
    """Write the report as well, and say what is new and what was kept."""
    from epsilometer.report.report_file import write_report
    from epsilometer.reproductions import VIEWS

    report, changed = write_report(written[0].parent)
    say(f"wrote {', '.join(str(path) for path in (*written, report))}")
    if changed is not None:
        say(f"what was in {report} was changed, and is kept as {changed}")
    for kept in {written[0].with_name(name) for name in VIEWS}.difference(written):
        say(f"kept {kept}, which was changed; move it away and run the same again to have it anew")


def _line(of: Reproduction, row: Row) -> str:
    values = {"measured": row.measured, **{key: row.details.get(key) for key in of.shown}}
    told = [f"{key} {_shown(value, at_least=key in of.at_least)}" for key, value in values.items()]
    return f"{where(row.cell)}: paper {number(row.paper, 3)}, {told[0]} ({', '.join(told[1:])})"


def where(cell: Cell) -> str:
    """A cell's settings."""
    return " ".join(f"{key}={value}" for key, value in cell.items())


def _shown(value: object, *, at_least: bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if at_least and isinstance(value, float) and not math.isnan(value):
        return down(value)
    return number(value, 3) if isinstance(value, int | float | None) else str(value)


def _how_to_continue(out: Path | None, store: SqliteStore | None, rows: list[Row]) -> str:
    from epsilometer.reproductions import has_trials

    if store is None or out is None:
        return again(False)
    with suppress(EpsilometerError):
        if not rows and not has_trials(out, store):
            return "nothing was stored yet"
    return f"what was played is stored in {out}; {again(True)}"
