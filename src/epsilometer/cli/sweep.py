"""`epsilometer sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.output import number, print_table
from epsilometer.cli.plan import (
    Address,
    AsJson,
    Confidence,
    DataDir,
    ExecutorName,
    Quiet,
    Seed,
    SpecFile,
    TrialCount,
    Workers,
)
from epsilometer.cli.progress import downloads
from epsilometer.cli.reproduce import measure_cells, where
from epsilometer.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epsilometer.reproductions import Row


def sweep(
    spec: SpecFile = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE,VALUE… with a key of the spec, SECTION.KEY; several times for a grid."),
    ] = None,
    trials: TrialCount = None,
    confidence: Confidence = None,
    seed: Seed = None,
    data_dir: DataDir = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for table, picture, and a run directory a cell; a stopped sweep continues there."),
    ] = None,
    executor: ExecutorName = "auto",
    workers: Workers = None,
    address: Address = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
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
    from epsilometer.runs import executor_named

    axes = [parse_axis(text) for text in vary or []]
    values = (read_spec(spec) if spec is not None else Spec()).model_dump(exclude_none=True)
    options = {"trials": trials, "confidence": confidence, "seed": seed}
    values["audit"] |= {key: value for key, value in options.items() if value is not None}
    try:
        chosen = sweep_of(values, axes, data_dir=data_dir, progress=downloads(quiet))
    except InvalidInput as error:
        given = {f"audit.{key}": f"--{key}" for key, value in options.items() if value is not None}
        raise error.renamed(given[error.argument]) if error.argument in given else error from None
    settings = {"sweep": {axis.key: list(axis.texts) for axis in axes}, "spec": values}
    session = Session(chosen.trials, data_dir=data_dir, executor=executor_named(executor, workers, address))
    rows = measure_cells(
        chosen, chosen.cells, json_values(settings), out, session, quiet=quiet, as_json=as_json, line=None
    )  # fmt: skip
    violated = [where(row.cell) for row in rows if row.details["violated"]]
    if not as_json:
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
