"""`epsilometer audit`."""

from __future__ import annotations

import shlex
import signal
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.output import Interrupted, emit_json, say
from epsilometer.cli.progress import progress
from epsilometer.errors import EpsilometerError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epsilometer.audit import Plan, SqliteStore


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
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for trials, result.json and scores.csv; a stopped audit continues there."),
    ] = None,
    executor: Annotated[
        str, typer.Option(help="Who plays trials: auto, inline, local or ray. Results are the same.")
    ] = "auto",
    workers: Annotated[int | None, typer.Option(help="Processes; without it, one for each core.")] = None,
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster; without it, Ray on this machine.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Audit a DP-SGD training: theory, attack, verdict.

    Examples:

    - `epsilometer audit` audits the embedded default: logistic regression on digits, claimed ε = 4.

    - `epsilometer audit --noise-scale 0.5` audits the same training with half of its noise: violated.

    - `epsilometer audit --bound eprocess --noise-scale 0.5` stops as soon as the claim is refuted.

    - `epsilometer audit --adversary canaries` trains once, with many canaries.

    - `epsilometer audit my.toml --trials 1000 --out results --json`; the same again continues if it was stopped.

    - `epsilometer audit my.toml --out results --executor ray --address 10.0.0.1:6379`
    """
    from epsilometer.audit import (
        Outcome,
        Spec,
        StoreError,
        TrialsFailed,
        executor_named,
        read_spec,
        run,
        run_directory,
        spec_from_dict,
    )
    from epsilometer.report import summary, to_json, write_results

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
    chosen_executor = executor_named(executor, workers, address)
    with ExitStack() as stack:
        store = None if out is None else stack.enter_context(run_directory(out, plan))
        told = stack.enter_context(progress(quiet))
        stack.enter_context(_workers_may_go_away())
        try:
            result = run(plan, told, store=store, executor=chosen_executor)
        except KeyboardInterrupt:
            raise Interrupted(_how_to_continue(out, plan, store)) from None
        except (StoreError, TrialsFailed) as error:
            raise EpsilometerError(f"{error}; {_how_to_continue(out, plan, store)}") from None
        written = [] if out is None else write_results(out, result)
    if out is not None:
        say(f"wrote {' and '.join(str(path) for path in written)}" if written else f"{out} had its results already")
    if as_json:
        emit_json(to_json(result))
    else:
        print(summary(result))
    if result.verdict.outcome is Outcome.VIOLATED:
        raise typer.Exit(1)


@contextmanager
def _workers_may_go_away() -> Iterator[None]:
    """A pipe to a worker that died is no reason to end, as one to a reader of our output is (see app.py)."""
    if not hasattr(signal, "SIGPIPE"):
        yield
        return
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, before)


def _how_to_continue(out: Path | None, plan: Plan, store: SqliteStore | None) -> str:
    if store is None:
        return "nothing is kept without --out DIR"
    trials = store.begin(plan).trials
    if not trials:
        return "nothing was stored yet"
    return f"{trials} trials are stored in {out}; to continue: {shlex.join(['epsilometer', *sys.argv[1:]])}"
