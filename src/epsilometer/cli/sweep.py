"""`epsilometer sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.driver import Players
from epsilometer.cli.groups import Only, as_user_wrote, grouped, put, said
from epsilometer.cli.manner import Manner
from epsilometer.cli.output import number, print_table
from epsilometer.cli.plan import PlanOptions, SpecFile
from epsilometer.cli.progress import downloads
from epsilometer.cli.reproduce import measure_cells, where
from epsilometer.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epsilometer.reproductions import Row


@grouped
def sweep(
    spec: SpecFile = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE,VALUE… with a key of the spec, SECTION.KEY; several times for a grid."),
    ] = None,
    *,
    options: Annotated[PlanOptions, Only("trials", "confidence", "seed", "data_dir")],
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for table, picture, and a run directory a cell; a stopped sweep continues there."),
    ] = None,
    players: Players,
    manner: Manner,
) -> None:
    """Audit a training under all combinations of some settings: privacy beside accuracy.

    Every cell is an audit with a run directory of its own. Accuracy comes from a few trainings without a canary. Exit
    code 1 if a claim is violated: each of n cells is judged at an n-th of the error.

    Examples:

    - `epsilometer sweep --vary training.noise_multiplier=0.5,1,2`

    - `epsilometer sweep my.toml --vary claim.epsilon=1,2,4 --vary training.steps=50,100 --out swept`; the same again
      continues if it was stopped.

    - `epsilometer sweep my.toml --vary training.optimizer=sgd,adam --vary training.learning_rate=0.1,1`
    """
    from epsilometer.auditing import Spec, read_spec
    from epsilometer.json_values import json_values
    from epsilometer.reproductions import Session, parse_axis, sweep_of

    axes = [parse_axis(text) for text in vary or []]
    values = (read_spec(spec) if spec is not None else Spec()).model_dump(exclude_none=True)
    names = put(values, said(options))
    try:
        chosen = sweep_of(values, axes, data_dir=options.data_dir, progress=downloads(manner.quiet))
    except InvalidInput as error:
        raise as_user_wrote(error, names) from None
    settings = {"sweep": {axis.key: list(axis.texts) for axis in axes}, "spec": values}
    session = Session(chosen.trials, data_dir=options.data_dir, executor=players.chosen())
    rows = measure_cells(chosen, chosen.cells, json_values(settings), out, session, manner, line=None)
    violated = [where(row.cell) for row in rows if row.details["violated"]]
    if not manner.as_json:
        _print(rows)
        print(f"verdict: {'violated, in ' + '; '.join(violated) if violated else 'no violation found'}")
    if violated:
        raise typer.Exit(1)


def _print(rows: Sequence[Row]) -> None:
    keys = list(rows[0].cell)
    short = [key.rpartition(".")[2] for key in keys]
    names = short if len(set(short)) == len(short) else keys
    columns = ("theory ε ≤", "certified ε ≥", "if DP-SGD ε ≥", "accuracy", "test", "verdict")
    print()
    print_table((*names, *columns), [[*row.cell.values(), *_cells(row.details)] for row in rows])


def _cells(details: Any) -> list[str]:
    from epsilometer.rounding import down, up

    def shown(name: str, told: Any) -> str:
        value = details.get(name)
        return "–" if value is None else str(told(value))

    verdict = details["verdict"] or f"not played ({details['note']})"
    if verdict == "violated" and not details["violated"]:
        verdict = "violated, alone"
    return [
        shown("theory", up),
        shown("certified", down),
        shown("family", down),
        shown("train_accuracy", lambda share: number(share, 3)),
        shown("test_accuracy", lambda share: number(share, 3)),
        verdict,
    ]
