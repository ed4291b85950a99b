"""`epsilometer instances`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epsilometer.cli.audit import continued
from epsilometer.cli.outlets import this_command
from epsilometer.cli.output import emit_json, print_text, say
from epsilometer.cli.plan import (
    Address,
    AsJson,
    Confidence,
    DataDir,
    Epsilon,
    ExecutorName,
    Quiet,
    Seed,
    SpecFile,
    Workers,
    chosen_plan,
)
from epsilometer.cli.progress import broken_pipes_are_errors, progress
from epsilometer.errors import MALFORMED, InvalidInput
from epsilometer.wrapping import wrapped

if TYPE_CHECKING:
    from epsilometer.claims import Floats
    from epsilometer.data import Dataset


def instances(
    spec: SpecFile = None,
    records: Annotated[
        str | None,
        typer.Option(
            metavar="N|FILE", help="How many random records (500), or a file: a row number a line, or records.csv."
        ),
    ] = None,
    rule: Annotated[str, typer.Option(help="sum, mean or individual: see `docs/instances.md`.")] = "sum",
    trainings: Annotated[
        int | None, typer.Option(help="Trainings that expectations are taken over: 8 (sum), 2 (mean), 1 (individual).")
    ] = None,
    every: Annotated[
        int | None, typer.Option(help="Steps between checkpoints: 1, or a tenth of the training (mean).")
    ] = None,
    order: Annotated[float | None, typer.Option(help="Rényi order α > 1; else the best of several.")] = None,
    p: Annotated[float | None, typer.Option("--p", help="Hölder's p > 1 of the composition; else the best.")] = None,
    draws: Annotated[int, typer.Option(help="For the mean rule: batches at a checkpoint.")] = 20,
    tuples: Annotated[int, typer.Option(help="For the mean rule: tuples of 8 batches each at a checkpoint.")] = 100,
    last_layer: Annotated[
        bool, typer.Option("--last-layer", help="A cheap check: of the last layer's gradients only, which is no bound.")
    ] = False,
    against: Annotated[
        Path | None, typer.Option(help="Directory of a full run on the same records: how well does this one agree?")
    ] = None,
    measure: Annotated[
        int, typer.Option(help="Attack so many records of lowest and of highest ε, with and without each.")
    ] = 0,
    trials: Annotated[int, typer.Option(help="For --measure: trainings with a record, and as many without it.")] = 200,
    confidence: Confidence = None,
    seed: Seed = None,
    epsilon: Epsilon = None,
    data_dir: DataDir = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory for trainings and results; a stopped run continues there.")
    ] = None,
    executor: ExecutorName = "auto",
    workers: Workers = None,
    address: Address = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Whose ε is it? What each record of a training's data pays, beside the worst case.

    Values of single records are private themselves: do not publish them. The spec's adversary and bound do not matter.

    Examples:

    - `epsilometer instances my.toml --out records` gives 500 random records, with report.html.

    - `epsilometer instances my.toml --rule individual --records rows.txt` accounts one training for chosen rows.

    - `epsilometer instances my.toml --measure 5 --out records` also attacks the 5 least and the 5 most exposed.
    """
    from epsilometer.instances import Agreement, InstancePlan, ends, own_engine, run_instances
    from epsilometer.instances import measure as measure_leakage
    from epsilometer.report import instances_summary, instances_to_json, write_instances
    from epsilometer.runs import MemoryStore, executor_named, run_directory

    base, _, _ = chosen_plan(
        spec, None, confidence, seed, epsilon, "api", None, None, data_dir, quiet, own_bound=False
    )  # fmt: skip
    subject = own_engine(base.subject)
    plan = InstancePlan(
        subject=subject,
        records=_records(records, subject.data, base.seed),
        delta=base.delta,
        rule=rule,
        trainings=trainings,
        every=every,
        order=order,
        p=p,
        draws=draws,
        tuples=tuples,
        confidence=base.confidence,
        seed=base.seed,
        relation=base.relation,
        last_layer=last_layer,
    )
    full = None if against is None else _epsilons_in(against, plan.records)
    _require_measurable(measure, trials, len(plan.records))
    playing = executor_named(executor, workers, address)
    with ExitStack() as stack:
        told = stack.enter_context(progress(quiet))
        stack.enter_context(broken_pipes_are_errors())
        kept = None if out is None else stack.enter_context(run_directory(out, plan))
        store = MemoryStore() if kept is None else kept
        with continued(out, plan, kept):
            result = run_instances(plan, told, store=store, executor=playing)
            rows = ends(result, measure) if measure else ()
            measured = measure_leakage(
                result, rows, trials=trials, store=store, executor=playing, progress=told
            )  # fmt: skip
        written = None if out is None else write_instances(out, result, store, this_command(), measured)
    agreement = None if full is None else Agreement.of(full, result.epsilons)
    if as_json:
        more = {} if agreement is None else {"against": agreement.to_dict()}
        emit_json({**instances_to_json(result, measured), **more})
    else:
        print_text(lambda width: instances_summary(result, width, measured))
        if agreement is not None:
            print_text(lambda width: wrapped(f"against {against}: {agreement}", width))
    if written is not None:
        say(str(written))


def _epsilons_in(directory: Path, rows: tuple[int, ...]) -> Floats:
    """ε of these records, as an earlier run has written them."""
    import json

    import numpy as np

    path = directory / "result.json"
    try:
        content = path.read_bytes() if path.is_file() else b""  # a pipe would keep us waiting
        known = {row["row"]: float(row["epsilon"]) for row in json.loads(content)["records"]}
    except (OSError, *MALFORMED) as error:
        expected = f"the result of an earlier run ({type(error).__name__})"
        raise InvalidInput("--against", str(directory), expected, "name the --out of one") from None
    if missing := set(rows) - known.keys():
        expected = f"a run on the same records (it lacks {min(missing)})"
        raise InvalidInput("--against", str(directory), expected, "name another, or give the same --records")
    return np.array([known[row] for row in rows])


def _require_measurable(count: int, trials: int, records: int) -> None:
    """Before anything is trained."""
    from epsilometer import validate

    validate.whole("--measure", count, least=0, most=records // 2, remedy=f"at most half of the {records} records")
    validate.whole("--trials", trials, least=2, most=10**6)


def _records(given: str | None, data: Dataset, seed: int) -> tuple[int, ...]:
    """A number of random rows, or those that a file names."""
    from epsilometer.instances import USUAL_RECORDS, chosen_records

    if given is None:
        return chosen_records(data, min(USUAL_RECORDS, len(data)), seed)
    if given.isdecimal() and len(given) < 20:
        return chosen_records(data, int(given), seed)
    try:
        text = Path(given).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidInput("--records", given, f"a number, or a file of row numbers ({why})") from None
    lines = [line.split(",")[0].strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if lines[:1] == ["row"]:  # records.csv of another run
        lines = lines[1:]
    if not lines:
        raise InvalidInput("--records", given, "a file with a row number in each line (it is empty)")
    for place, word in enumerate(lines, start=1):
        if not (word.isdecimal() and len(word) < 20 and int(word) < len(data)):
            expected = f"row numbers from 0 to {len(data) - 1}, one a line (number {place} is {word[:40]!r})"
            raise InvalidInput("--records", given, expected, f"{data.name} has {len(data)} records")
    return tuple(int(word) for word in lines)
