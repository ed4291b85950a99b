"""`epsilometer watch`."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from epsilometer.cli.groups import grouped
from epsilometer.cli.output import TOO_WEAK, say
from epsilometer.cli.watched import Display, JudgingOptions
from epsilometer.errors import MALFORMED, InvalidInput

RESULT = "result.json"


class Place(enum.StrEnum):
    """Where canaries are put."""

    EXTRA = "extra"
    MODEL = "model"


@grouped
def watch(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="What to run, after --, such as: -- python train.py."),
    ] = None,
    canaries: Annotated[
        Place,
        typer.Option(
            help="Where canaries are: on an unused extra parameter (nothing changes), or at coordinates of the model "
            "(sees noise that misses a layer; changes the training by rounding)."
        ),
    ] = Place.EXTRA,
    number: Annotated[int, typer.Option(help="How many canaries a step has.")] = 200,
    out: Annotated[Path | None, typer.Option(help="A new directory for result.json, report.html, recordings.")] = None,
    stop_when_known: Annotated[
        bool, typer.Option("--stop-when-known", help="End the command (SIGTERM) once a training is refuted.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Of coins and canaries' noise; without it, the system's.")] = None,
    neighbours: Annotated[
        int | None,
        typer.Option(
            help="Also run the command beside itself with one record changed and the same noise, to find whatever else "
            "depends on the data; so many times with a record changed for good, every second time where the script "
            "reads its data, and four runs more. All runs work in private copies of the working directory, and leave "
            "nothing. 0 unless given; with --noise-multiplier 1."
        ),
    ] = None,
    noise_multiplier: Annotated[
        float | None,
        typer.Option(
            help="Of a loop by hand that steps a torch optimizer: the noise multiplier that is accounted. Each of its "
            "optimizers is watched, in several runs."
        ),
    ] = None,
    sample_rate: Annotated[float | None, typer.Option(help="Of a loop by hand: the sample rate that is accounted.")] = (
        None
    ),
    clip_norm: Annotated[float | None, typer.Option(help="Of a loop by hand: the norm that it clips to.")] = None,
    again: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Run nothing, and judge what --out DIR has recorded once more."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Say a line for each statement, and what happens meanwhile.")
    ] = False,
    *,
    options: JudgingOptions,
) -> int:
    """Run a training script once, unchanged, and audit every Opacus training in it, and JAX trainings with optax's DP
    aggregate or a plan of jax-privacy.

    Its output, exit code, random numbers, model and accountant are as without. In every step, canary gradients go
    through the script's own clipping and noise, each by the toss of a coin; guessing the coins from the noisy sums
    refutes a noise multiplier that is not true. What is found goes to stderr.

    Examples:

    - `epsilometer watch -- python train.py --epochs 3`

    - `epsilometer watch --require consistent --out audit -- python -m mypackage.train`

    - `epsilometer watch --again audit --ignore sampler`
    """
    from epsilometer.watching.launch.run import follow
    from epsilometer.watching.replay.runs import lockstep
    from epsilometer.watching.watch import declared, validated

    if again is None and ("--" not in sys.argv or not command):
        given = shlex.join(command) if command else None
        raise InvalidInput("COMMAND", given, "-- before it", "as in: epsilometer watch -- python train.py")
    settings = validated(number, canaries.value, seed, argument="number")
    settings = dataclasses.replace(settings, declared=declared(noise_multiplier, sample_rate, clip_norm))
    neighbours = int(settings.declared is not None) if neighbours is None else neighbours
    display = Display(options.judging(), stop_when_known, verbose)
    if again is not None:
        return _again(again, display, options)
    assert command
    begun, clock = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), time.monotonic()
    with _directory(out) as directory, lockstep(command, neighbours, settings, out) as runs:
        if runs is not None:
            say(f"epsilometer: {runs}")
        ended = follow(command, directory, settings, sys.stdout.fileno(), display.look, runs)
        if not isinstance(ended, int):
            say(f"epsilometer: {shlex.join(command)}: {ended.reason}")
            return ended.code
        display.finish(ended)
        if display.broken:
            return ended if ended or options.require is None else TOO_WEAK
        from epsilometer.watching.result import document_of

        monitor, seconds = display.monitor, round(time.monotonic() - clock, 3)
        document = functools.partial(
            document_of, monitor, command=command, exit_code=ended, begun=begun, seconds=seconds
        )
        if out is not None:
            from epsilometer.report.report_file import write_report

            (directory / RESULT).write_text(json.dumps(document(), indent=2) + "\n", encoding="utf-8")
            write_report(directory, document())
        options.tell(document)
    if ended == 0 and options.require is None and monitor.violated:
        say("epsilometer: the exit code is the command's own, 0; with --require not-violated it would be 1")
    return options.exit_code(ended, monitor)


def _again(directory: Path, display: Display, options: JudgingOptions) -> int:
    """What was recorded there, by today's rules; nothing in it is changed."""
    from epsilometer.watching.launch.run import Follower
    from epsilometer.watching.result import document_of

    try:
        before = json.loads((directory / RESULT).read_bytes())
        ended, command = int(before["exit_code"]), [str(word) for word in before["command"]]
        begun, seconds = str(before["begun"]), float(before["seconds"])
    except (OSError, *MALFORMED):
        expected = f"a directory that epsilometer watch --out has written, with {RESULT}"
        raise InvalidInput("again", str(directory), expected, "check the path") from None
    display.look(Follower(directory))
    display.finish(ended)
    if display.broken:
        return TOO_WEAK
    monitor = display.monitor
    options.tell(
        functools.partial(document_of, monitor, command=command, exit_code=ended, begun=begun, seconds=seconds)
    )
    return options.exit_code(0, monitor)


@contextmanager
def _directory(out: Path | None) -> Iterator[Path]:
    """Where recordings go: a new directory to keep, or one that is gone afterwards."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="epsilometer-watch-", ignore_cleanup_errors=True) as place:
            yield Path(place)
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        used = any(out.iterdir())
    except OSError as error:
        raise InvalidInput("out", str(out), f"a directory to write to ({error.strerror})") from None
    if used:
        raise InvalidInput("out", str(out), "a new or empty directory", "each watch has a directory of its own")
    yield out
