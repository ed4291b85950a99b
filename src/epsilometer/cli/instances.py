"""`epsilometer instances`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.driver import Means, Players, Study, conduct
from epsilometer.cli.groups import Only, grouped
from epsilometer.cli.manner import Manner
from epsilometer.cli.outlets import this_command
from epsilometer.cli.plan import PlanOptions, SpecFile, chosen_plan
from epsilometer.errors import MALFORMED, InvalidInput
from epsilometer.wrapping import wrapped

if TYPE_CHECKING:
    from epsilometer.claims import Floats
    from epsilometer.data import Dataset
    from epsilometer.instances import Agreement, InstancePlan, InstanceResult, Leakage
    from epsilometer.report.files import Written


@dataclass(frozen=True)
class InstanceOptions:
    """Options: how what records pay is computed; each is a field of `InstancePlan`."""

    rule: Annotated[str, typer.Option(help="sum, mean or individual: see `docs/instances.md`.")] = "sum"
    trainings: Annotated[
        int | None, typer.Option(help="Trainings that expectations are taken over: 8 (sum), 2 (mean), 1 (individual).")
    ] = None
    every: Annotated[
        int | None, typer.Option(help="Steps between checkpoints: 1, or a tenth of the training (mean).")
    ] = None
    order: Annotated[float | None, typer.Option(help="Rényi order α > 1; else the best of several.")] = None
    p: Annotated[float | None, typer.Option("--p", help="Hölder's p > 1 of the composition; else the best.")] = None
    draws: Annotated[int, typer.Option(help="For the mean rule: batches at a checkpoint.")] = 20
    tuples: Annotated[int, typer.Option(help="For the mean rule: tuples of 8 batches each at a checkpoint.")] = 100
    last_layer: Annotated[
        bool, typer.Option("--last-layer", help="A cheap check: of the last layer's gradients only, which is no bound.")
    ] = False


@grouped
def instances(
    spec: SpecFile = None,
    records: Annotated[
        str | None,
        typer.Option(
            metavar="N|FILE", help="How many random records (500), or a file: a row number a line, or records.csv."
        ),
    ] = None,
    *,
    how: InstanceOptions,
    against: Annotated[
        Path | None, typer.Option(help="Directory of a full run on the same records: how well does this one agree?")
    ] = None,
    measure: Annotated[
        int, typer.Option(help="Attack so many records of lowest and of highest ε, with and without each.")
    ] = 0,
    trials: Annotated[int, typer.Option(help="For --measure: trainings with a record, and as many without it.")] = 200,
    options: Annotated[PlanOptions, Only("confidence", "seed", "epsilon", "data_dir")],
    out: Annotated[
        Path | None, typer.Option(help="Directory for trainings and results; a stopped run continues there.")
    ] = None,
    players: Players,
    manner: Manner,
) -> None:
    """Whose ε is it? What each record of a training's data pays, beside the worst case.

    Values of single records are private themselves: do not publish them. The spec's adversary and bound do not matter.

    Examples:

    - `epsilometer instances my.toml --out records` gives 500 random records, with report.html.

    - `epsilometer instances my.toml --rule individual --records rows.txt` accounts one training for chosen rows.

    - `epsilometer instances my.toml --measure 5 --out records` also attacks the 5 least and the 5 most exposed.
    """
    from epsilometer.instances import InstancePlan, own_engine

    base = chosen_plan(spec, replace(options, adversary="api"), quiet=manner.quiet, own_bound=False).plan
    subject = own_engine(base.subject)
    plan = InstancePlan(
        subject=subject,
        records=_records(records, subject.data, base.seed),
        delta=base.delta,
        confidence=base.confidence,
        seed=base.seed,
        relation=base.relation,
        **asdict(how),
    )
    full = None if against is None else _Earlier(against, _epsilons_in(against, plan.records))
    _require_measurable(measure, trials, len(plan.records))
    study = Study(
        plan=lambda *_: plan,
        play=lambda plan, means: _played(plan, means, measure, trials, out, full),
        document=_Found.document,
        text=_Found.text,
        write=lambda _, found: found.written,
    )
    conduct(study, out, players, manner)


@dataclass(frozen=True)
class _Earlier:
    """ε of the same records in an earlier run."""

    directory: Path
    epsilons: Floats


@dataclass(frozen=True)
class _Found:
    """What records pay, what attacks on some of them have shown, and how well an earlier run agrees."""

    result: InstanceResult
    measured: tuple[Leakage, ...]
    written: Written
    agreement: Agreement | None
    against: Path | None

    def document(self) -> dict[str, Any]:
        from epsilometer.report import instances_to_json

        more = {} if self.agreement is None else {"against": self.agreement.to_dict()}
        return {**instances_to_json(self.result, self.measured), **more}

    def text(self, width: int | None) -> str:
        from epsilometer.report import instances_summary

        told = instances_summary(self.result, width, self.measured)
        if self.agreement is None:
            return told
        return f"{told}\n{wrapped(f'against {self.against}: {self.agreement}', width)}"


def _played(
    plan: InstancePlan, means: Means, measure: int, trials: int, out: Path | None, full: _Earlier | None
) -> _Found:
    """What was found, and written already: the store is told that the run has ended."""
    from epsilometer.instances import Agreement, ends, run_instances
    from epsilometer.instances import measure as measure_leakage
    from epsilometer.report import write_instances
    from epsilometer.report.files import Written

    store, executor = means.store, means.executor
    result = run_instances(plan, means.told, store=store, executor=executor)
    rows = ends(result, measure) if measure else ()
    measured = measure_leakage(result, rows, trials=trials, store=store, executor=executor, progress=means.told)
    written = Written() if out is None else write_instances(out, result, store, this_command(), measured)
    if full is None:
        return _Found(result, measured, written, None, None)
    return _Found(result, measured, written, Agreement.of(full.epsilons, result.epsilons), full.directory)


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
