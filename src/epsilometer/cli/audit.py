"""`epsilometer audit`."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epsilometer.cli.outlets import (
    JunitFile,
    MlflowExperiment,
    ModelCardFile,
    Require,
    SummaryFile,
    telling,
    this_command,
)
from epsilometer.cli.output import Interrupted, emit_json, print_text, say
from epsilometer.cli.plan import (
    Address,
    AdversaryName,
    AsJson,
    BoundName,
    Confidence,
    DataDir,
    DataFile,
    Delta,
    Deterministic,
    Epsilon,
    ExecutorName,
    Isolation,
    NoiseMultiplier,
    NoiseScale,
    Quiet,
    Record,
    SampleRate,
    Score,
    Seed,
    SpecOrTraining,
    Steps,
    TimeLimit,
    TrialCount,
    Workers,
    chosen_plan,
)
from epsilometer.cli.progress import broken_pipes_are_errors, downloads, progress
from epsilometer.cli.schedule import BatchSize, Epochs, Records
from epsilometer.errors import EpsilometerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from epsilometer.adversaries import Adversary
    from epsilometer.auditing import Plan
    from epsilometer.runs import Executor, Progress, SqliteStore, Trials


def audit(
    spec: SpecOrTraining = None,
    trials: TrialCount = None,
    confidence: Confidence = None,
    seed: Seed = None,
    data: DataFile = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    adversary: AdversaryName = None,
    record: Record = None,
    bound: BoundName = None,
    noise_scale: NoiseScale = None,
    sample_rate: SampleRate = None,
    noise_multiplier: NoiseMultiplier = None,
    steps: Steps = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    records: Records = None,
    score: Score = None,
    isolation: Isolation = None,
    time_limit: TimeLimit = None,
    deterministic: Deterministic = None,
    data_dir: DataDir = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for trials, result.json, scores.csv, report.html; a stopped audit goes on there."),
    ] = None,
    executor: ExecutorName = "auto",
    workers: Workers = None,
    address: Address = None,
    require: Require = None,
    summary_file: SummaryFile = None,
    junit: JunitFile = None,
    model_card: ModelCardFile = None,
    mlflow: MlflowExperiment = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Audit a training, your own or an embedded DP-SGD: theory, attack, verdict.

    Examples:

    - `epsilometer audit mymodule:train --data my.npz --epsilon 3 --delta 1e-5` audits your own `train(data, seed)`.

    - `epsilometer audit mymodule:train --data my.npz --sample-rate 0.1 --noise-multiplier 2 --steps 100` holds it to
      the curve of what it says it does, which needs far fewer trials; `--epochs 15 --batch-size 256 --records 60000`
      may stand in place of rate and steps.

    - `epsilometer audit mymodule:train --data my.npz --epsilon 3 --record mine.npz` asks whether a record of your own,
      which comes to the data, can be told from the model; `--record 17` asks that of row 17.

    - `epsilometer audit` audits the embedded default: logistic regression on digits, claimed ε = 4.

    - `epsilometer audit --noise-scale 0.5` audits the same training with half of its noise: violated.

    - `epsilometer audit --bound eprocess --noise-scale 0.5` stops as soon as the claim is refuted.

    - `epsilometer audit --adversary canaries` trains once, with many canaries.

    - `epsilometer audit my.toml --trials 1000 --out results --json`; the same again continues if it was stopped.

    - `epsilometer audit my.toml`, where the spec says `copies = [1, 2, 4, 8]`, lets a pilot choose.

    - `epsilometer audit my.toml --out results --executor ray --address 10.0.0.1:6379`

    - `epsilometer audit my.toml --require consistent --summary "$GITHUB_STEP_SUMMARY" --junit audit.xml` is for a CI.
    """
    from epsilometer.auditing import run
    from epsilometer.auditing.utility import held_out_part, with_accuracy
    from epsilometer.report import finding_of, summary, to_json, write_results
    from epsilometer.runs import executor_named, run_directory

    others = telling(require, summary_file, junit, model_card, mlflow)
    plan, rivals, written_spec = chosen_plan(
        spec, trials, confidence, seed, epsilon, adversary, bound, noise_scale, data_dir, quiet,
        data=data, delta=delta, score=score, isolation=isolation, time_limit=time_limit, deterministic=deterministic,
        sample_rate=sample_rate, noise_multiplier=noise_multiplier, steps=steps, record=record,
        epochs=epochs, batch_size=batch_size, records=records,
    )  # fmt: skip
    chosen_executor = executor_named(executor, workers, address)
    with ExitStack() as stack:
        told = stack.enter_context(progress(quiet))
        stack.enter_context(broken_pipes_are_errors())
        try:
            plan = _decided(plan, rivals, out, chosen_executor, told)
        except KeyboardInterrupt:
            raise Interrupted(f"the pilot is not finished; {_again(out is not None)}") from None
        store = None if out is None else stack.enter_context(run_directory(out, plan))
        with continued(out, plan, store):
            result = run(plan, told, store=store, executor=chosen_executor)
            if store is not None:  # a report will tell it
                held_out = partial(held_out_part, written_spec, plan, data_dir, downloads(quiet))
                result = with_accuracy(result, told, test=held_out, store=store, executor=chosen_executor)
    # Not before the bar is gone: while it lives, it sends what is printed to its own terminal.
    if as_json:
        emit_json(to_json(result))
    else:
        print_text(lambda width: summary(result, width))
    if out is not None:
        written = write_results(out, result, this_command())
        say(str(written) if written.paths else f"{out} had its results already")
    others.finish(lambda command: finding_of(result, command), result.verdict.outcome)


def _decided(
    plan: Plan, rivals: Sequence[Adversary], out: Path | None, executor: Executor, told: Progress | None
) -> Plan:
    """The plan with one of the adversaries: that of the run in `out`, or else the one that a pilot chooses."""
    from epsilometer.auditing import choose_adversary
    from epsilometer.runs import begun_in, pilot_directory

    if len(rivals) == 1:
        return plan
    plans = [replace(plan, adversary=rival) for rival in rivals]
    begun = None if out is None else begun_in(out)
    if begun is not None:
        return next((one for one in plans if one.fingerprint() == begun), plan)
    with nullcontext() if out is None else pilot_directory(out) as store:
        choice = choose_adversary(plan, rivals, progress=told, store=store, executor=executor)
    expected = ", ".join(f"{one.adversary}: ε ≥ {one.expected:.3g}" for one in choice.candidates)
    say(f"a pilot of {len(choice.chosen.pilot.out_scores)} trials per world expects, with caution, {expected}")
    return choice.plan


@contextmanager
def continued(out: Path | None, plan: Trials, store: SqliteStore | None) -> Iterator[None]:
    """Whatever stops a run in here ends it with a line that says what is kept, and how to go on."""
    from epsilometer.runs import StoreError, TrialsFailed

    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(_how_to_continue(out, plan, store)) from None
    except (StoreError, TrialsFailed) as error:
        raise EpsilometerError(f"{error}; {_how_to_continue(out, plan, store)}") from None


def _how_to_continue(out: Path | None, plan: Trials, store: SqliteStore | None) -> str:
    """What is kept of a run that was stopped, and the command that goes on."""
    trials = 0
    if store is None:
        return _again(False)
    with suppress(EpsilometerError):
        trials = next(run.trials for run in store.runs() if run.fingerprint == plan.fingerprint())
    if not trials:
        return "nothing was stored yet"
    return f"{trials} trials are stored in {out}; {_again(True)}"


def _again(kept: bool) -> str:
    if not kept:
        return "nothing is kept without --out DIR"
    return f"to continue: {shlex.join(['epsilometer', *sys.argv[1:]])}"
