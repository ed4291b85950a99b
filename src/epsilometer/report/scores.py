"""Stored scores as a table, for other tools."""

from __future__ import annotations

import csv
import io
import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.bounds import METHODS, EProcess
from epsilometer.errors import InvalidInput
from epsilometer.evidence import KINDS, Trial, toss_coins
from epsilometer.neighbours import Neighbours
from epsilometer.runs import Results, StoredRun
from epsilometer.runs.atomic_files import write_whole
from epsilometer.runs.scores import OF_A_STORE, require_scores

Columns = dict[str, list[Any]]
Row = tuple[int, int, Floats]  # index, world, scores


def write_scores(target: Path, run: StoredRun, results: Results) -> int:
    """Write a run's scores to a new file, CSV or Parquet by its name; how many there were.

    Of a run that is finished, those that were judged: workers may have been ahead when it stopped.
    """
    require_new("export", target)
    if run.kind != "audit":
        expected = f"an audit, whose trials are scores (those of a run of kind {run.kind} are not)"
        written = "scores.csv beside its result.json has them"
        own = {"membership": "epsilometer membership --scores writes its scores", "instances": "see its records.csv"}
        raise InvalidInput("export", str(target), expected, own.get(run.kind, written))
    kind = KINDS[run.plan["evidence"]]
    results = require_scores(results, run.plan["adversary"]["name"], kind.scores_a_trial, OF_A_STORE)
    judged = (run.conclusion or {}).get("judged", run.plan["trials"])
    rows = [(index, world, results[world, index]) for world, index in sorted(results, key=_by_index) if index < judged]
    columns = _pairs(rows) if kind.independent else _by_coins(run.plan, rows)
    if run.plan["group_size"] > 1:  # a bound that did not know would claim too much
        columns["group_size"] = [run.plan["group_size"]] * len(columns["score"])
    neighbours = Neighbours.read(run.plan["claim"])
    if neighbours != Neighbours():  # nor of which neighbours
        columns |= {name: [word] * len(columns["score"]) for name, word in neighbours.to_dict().items()}
    write_columns("export", target, columns)
    return len(columns["score"])


def require_new(argument: str, target: Path) -> None:
    """Refuse a file that exists, of which it is not clear what to write, or that could not be written afterwards."""
    if os.path.lexists(target):
        raise InvalidInput(argument, str(target), "a file that does not exist yet", "name another")
    if target.suffix not in (".csv", ".parquet"):
        raise InvalidInput(argument, str(target), "a name that ends in .csv or .parquet")
    if not target.parent.is_dir():
        raise InvalidInput(argument, str(target), "a file in a directory that exists", f"make {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise InvalidInput(argument, str(target), "a file in a directory that can be written to", "name another")
    if target.suffix == ".parquet":
        _pyarrow(argument)


def write_columns(argument: str, target: Path, columns: Columns) -> None:
    """Write a table to a new file, CSV or Parquet by its name."""
    require_new(argument, target)
    content = csv_of(columns) if target.suffix == ".csv" else _parquet(argument, columns)
    try:
        write_whole(target, content)
    except OSError as error:
        raise InvalidInput(argument, str(target), f"a file to write to ({error.strerror})") from None


def judged_again(target: Path, run: StoredRun) -> str:
    """How to get a bound from these scores, and which: after a look at them, not every method is valid."""
    plan, end = run.plan, run.conclusion
    command = bound_command(str(target), plan, finished=end is not None)
    if command is None:
        return "they speak of single steps: no bound for runs takes them"
    independent = KINDS[plan["evidence"]].independent
    if not independent or (end is not None and plan["method"]["name"] != EProcess.name):
        return f"to judge them again: {command}"
    why = "the run is not finished" if end is None else "the run could stop early"
    return f"{why}, so only this is valid: {command}"


def bound_command(target: str, plan: dict[str, Any], finished: bool = True) -> str | None:
    """The command that judges these scores as the plan has it; none of single steps, which no bound for runs takes.

    Before the plan's trials are all there, only bets are valid.
    """
    kind, method = KINDS[plan["evidence"]], plan["method"]
    usual = METHODS.own.get(kind.usual_method)
    if usual is None or usual.needs_mechanism:
        return None
    words = ["epsilometer", "bound", *([] if kind.independent else ["--one-run"]), target]
    words += ["--delta", f"{plan['delta']:g}", "--confidence", f"{plan['confidence']:.10g}"]
    words += [word for key, value in Neighbours.read(plan["claim"]).identity().items() for word in (f"--{key}", value)]
    if kind.independent and not finished:
        method = {"name": EProcess.name}
    name, settings = _as_said(method)
    words += [*(["--method", name] if name != kind.usual_method else []), *settings]
    in_order = name == EProcess.name or not kind.independent
    return shlex.join([*words, *(["--in-order"] if in_order else [])])


def _as_said(method: dict[str, Any]) -> tuple[str, list[str]]:
    """A method's name on the command line, and the options for its settings."""
    name, strategy, guesses = method["name"], method.get("thresholds") or {}, method.get("guesses")
    if strategy:  # limits on rates, at thresholds that it chooses
        name = strategy["name"]
    elif method.get("calibrated") is False:
        name = "exact-rank-union"
    said = {"threshold": strategy.get("threshold"), "seed": strategy.get("seed") or method.get("seed") or None}
    if isinstance(guesses, dict):  # all were guessed, by a threshold
        said["threshold"] = guesses["value"]
    elif isinstance(guesses, int):
        said["guesses"] = guesses
    return name, [word for key, value in said.items() if value is not None for word in (f"--{key}", repr(value))]


def _pairs(rows: list[Row]) -> Columns:
    return _columns(("world", "index", "score"), [(world, index, scores.item()) for index, world, scores in rows])


def _by_coins(plan: dict[str, Any], rows: list[Row]) -> Columns:
    found = []
    for index, _, scores in rows:
        coins = toss_coins(plan["seed"], index, len(scores))
        numbered = zip(coins.astype(int).tolist(), scores.tolist(), strict=True)
        found += [(index, canary, member, score) for canary, (member, score) in enumerate(numbered)]
    return _columns(("index", *KINDS[plan["evidence"]].columns, "score"), found)


def _by_index(trial: Trial) -> tuple[int, int]:
    world, index = trial
    return index, world


def _columns(names: Iterable[str], rows: list[tuple[Any, ...]]) -> Columns:
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def csv_of(columns: Columns) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()


def _pyarrow(argument: str) -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise InvalidInput(
            argument, ".parquet", "pyarrow to be installed", "pip install 'epsilometer[parquet]', or write .csv"
        ) from None
    return pyarrow


def _parquet(argument: str, columns: Columns) -> bytes:
    pyarrow = _pyarrow(argument)
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(arrays), buffer)
    return buffer.getvalue()
