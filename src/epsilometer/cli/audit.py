"""`epsilometer audit`."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.output import emit_json, say
from epsilometer.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epsilometer.audit import AuditResult


def audit(
    spec: Annotated[Path | None, typer.Argument(help="A TOML file; without it, the embedded default.")] = None,
    trials: Annotated[int | None, typer.Option(help="Trainings in each world, or with all canaries.")] = None,
    confidence: Annotated[float | None, typer.Option(help="Of the lower bound and of a violation.")] = None,
    seed: Annotated[int | None, typer.Option(help="Every trial follows from it.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="The claimed ε; the noise is calibrated to it, whatever the spec says.")
    ] = None,
    adversary: Annotated[str | None, typer.Option(help="Who attacks: see `epsilometer list`.")] = None,
    bound: Annotated[
        str | None, typer.Option(help="How scores are judged: see `epsilometer list`; eprocess may stop early.")
    ] = None,
    noise_scale: Annotated[
        float | None, typer.Option(help="A FAULT TO INJECT: multiply the noise that is really added.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory for result.json and scores.csv.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Audit a DP-SGD training: theory, attack, verdict.

    Examples:

    - `epsilometer audit` audits the embedded default: logistic regression on digits, claimed ε = 4.

    - `epsilometer audit --noise-scale 0.5` audits the same training with half of its noise: violated.

    - `epsilometer audit --bound eprocess --noise-scale 0.5` stops as soon as the claim is refuted.

    - `epsilometer audit --adversary canaries` trains once, with many canaries.

    - `epsilometer audit my.toml --trials 1000 --out results --json`
    """
    from epsilometer.audit import Outcome, Spec, read_spec, run, spec_from_dict
    from epsilometer.report import summary, to_json

    chosen = read_spec(spec) if spec is not None else Spec()
    overrides: dict[str, dict[str, Any]] = {
        "audit": {"trials": trials, "confidence": confidence, "seed": seed, "bound": bound},
        "claim": {"epsilon": epsilon},
        "adversary": {"name": adversary},
        "faults": {"noise_scale": noise_scale},
    }
    values = chosen.model_dump(exclude_none=True)
    if epsilon is not None:
        values["training"].pop("noise_multiplier", None)
    if adversary is not None and adversary != values["adversary"]["name"]:
        values["adversary"] = {}  # another adversary has other settings
    for section, options in overrides.items():
        values[section] |= {key: value for key, value in options.items() if value is not None}
    options_of = {f"{section}.{key}": f"--{key}" for section, keys in overrides.items() for key in keys}
    options_of |= {"adversary.name": "--adversary", "faults.noise_scale": "--noise-scale"}
    given = {
        f"{section}.{key}" for section, keys in overrides.items() for key, value in keys.items() if value is not None
    }
    try:
        plan = spec_from_dict(values).plan()
    except InvalidInput as error:
        raise error.renamed(options_of[error.argument]) if error.argument in given else error from None
    with _output_directory(out), _progress() as report:
        result = run(plan, report)
    if out is not None:
        _write(out, result)
    if as_json:
        emit_json(to_json(result))
    else:
        print(summary(result))
    if result.verdict.outcome is Outcome.VIOLATED:
        raise typer.Exit(1)


_FILES = ("result.json", "scores.csv")


@contextmanager
def _output_directory(out: Path | None) -> Iterator[None]:
    """Fail before the trials, not after them; leave no empty directory behind when they fail."""
    if out is None:
        yield
        return
    if str(out) in ("", "."):
        raise InvalidInput("--out", str(out), "a directory of its own", "name one, for instance results")
    for name in _FILES:
        if os.path.lexists(out / name):
            raise InvalidInput("--out", str(out), f"a directory without {name}", "name another directory")
    try:
        made = not out.exists()
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise InvalidInput("--out", str(out), f"a directory to write to ({error.strerror})") from None
    try:
        yield
    except BaseException:
        if made:
            with suppress(OSError):
                out.rmdir()
        raise


def _write(out: Path, result: AuditResult) -> None:
    from epsilometer.report import to_json

    side, table = result.evidence.table()
    rows = [f"{side},score", *(f"{where},{score!r}" for where, score in table)]
    try:
        (out / "scores.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        (out / "result.json").write_text(json.dumps(to_json(result), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInput("--out", str(out), f"a directory to write to ({error.strerror})") from None
    say(f"wrote {out / 'result.json'} and {out / 'scores.csv'}")


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr in a terminal; a line at every tenth otherwise."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("trials"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("trials", total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
        return

    def lines(done: int, total: int) -> None:
        if done * 10 // total > (done - 2) * 10 // total:
            say(f"trials: {done} of {total}")

    yield lines
