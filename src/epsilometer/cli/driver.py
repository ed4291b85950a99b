"""How commands play trials: who plays, where results are kept, what is told of them, and how to go on if stopped."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import typer

from epsilometer.cli.manner import Manner
from epsilometer.cli.output import Interrupted, emit_json, print_text, say, width
from epsilometer.cli.progress import broken_pipes_are_errors, progress
from epsilometer.errors import EpsilometerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epsilometer.report.files import Written
    from epsilometer.runs import Executor, Progress, SqliteStore, Store, Trials

Plan = TypeVar("Plan", bound="Trials")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Players:
    """Options: who plays trials."""

    executor: Annotated[
        str, typer.Option("--executor", help="Who plays trials: auto, inline, local or ray. Results are the same.")
    ] = "auto"
    workers: Annotated[int | None, typer.Option(help="Processes; without it, one for each core.")] = None
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster; without it, Ray on this machine.")] = None

    def chosen(self) -> Executor:
        """Who plays."""
        from epsilometer.runs import executor_named

        return executor_named(self.executor, self.workers, self.address)


@dataclass(frozen=True)
class Means:
    """What trials are played with: who is told, who plays, and the store, which is in memory if nothing is kept."""

    told: Progress | None
    executor: Executor
    store: Store
    kept: bool


@dataclass(frozen=True)
class Study(Generic[Plan, Result]):
    """What a command plays, and what it tells of that.

    `plan` is asked once progress can be told, since a pilot may have to choose it. `write` is asked last of all: what
    was found is on the screen before a disk can be full.
    """

    plan: Callable[[Progress | None, Executor], Plan]
    play: Callable[[Plan, Means], Result]
    document: Callable[[Result], dict[str, Any]]
    text: Callable[[Result, int | None], str]
    write: Callable[[Path, Result], Written]


def conduct(study: Study[Plan, Result], out: Path | None, players: Players, manner: Manner) -> Result:
    """Play a study, in the run directory `out` if there is one; print what it found; write it there."""
    from epsilometer.runs import MemoryStore, run_directory

    executor = players.chosen()
    with ExitStack() as stack:
        told = stack.enter_context(progress(manner.quiet))
        stack.enter_context(broken_pipes_are_errors())
        plan = study.plan(told, executor)
        kept = None if out is None else stack.enter_context(run_directory(out, plan))
        with stoppable(lambda: _how_to_continue(out, plan, kept)):
            store = MemoryStore() if kept is None else kept
            result = study.play(plan, Means(told, executor, store, kept=kept is not None))
    # Not before the bar is gone: while it lives, it sends what is printed to its own terminal.
    if manner.as_json:
        emit_json(study.document(result))
    else:
        print_text(study.text(result, width()))
    if out is not None:
        written = study.write(out, result)
        say(str(written) if written.paths else f"{out} had its results already")
    return result


@contextmanager
def stoppable(how_to_continue: Callable[[], str]) -> Iterator[None]:
    """Whatever stops a run in here ends it with a line that says what is kept, and how to go on."""
    from epsilometer.runs import StoreError, TrialsFailed

    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(how_to_continue()) from None
    except (StoreError, TrialsFailed) as error:
        raise EpsilometerError(f"{error}; {how_to_continue()}") from None


def again(kept: bool) -> str:
    """The command that goes on, if anything is kept."""
    if not kept:
        return "nothing is kept without --out DIR"
    return f"to continue: {shlex.join(['epsilometer', *sys.argv[1:]])}"


def _how_to_continue(out: Path | None, plan: Trials, store: SqliteStore | None) -> str:
    """What is kept of a run that was stopped, and the command that goes on."""
    trials = 0
    if store is None:
        return again(False)
    with suppress(EpsilometerError):
        trials = next(run.trials for run in store.runs() if run.fingerprint == plan.fingerprint())
    if not trials:
        return "nothing was stored yet"
    return f"{trials} trials are stored in {out}; {again(True)}"
