"""`epsilometer watch`."""

from __future__ import annotations

import datetime
import enum
import functools
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epsilometer.cli.output import say
from epsilometer.errors import MALFORMED, InvalidInput, one_line

if TYPE_CHECKING:
    from epsilometer.watching.launch.run import Follower
    from epsilometer.watching.monitor import Monitor, Watched

VIOLATED, TOO_WEAK = 1, 4
RESULT = "result.json"
_FIRST_WORD, _LATER_WORDS = 5.0, 60.0  # seconds until the first remark on a training, and between later ones


class Place(enum.StrEnum):
    """Where canaries are put."""

    EXTRA = "extra"
    MODEL = "model"


class Required(enum.StrEnum):
    """What the verdict must be."""

    NOT_VIOLATED = "not-violated"
    CONSISTENT = "consistent"


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
    confidence: Annotated[float, typer.Option(help="Of the verdict on each training.")] = 0.95,
    require: Annotated[
        Required | None,
        typer.Option(help="Of a command that ends with 0: exit with 1 if violated, and with 4 if not 'consistent'."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(help="A check that may fail, and is shown as ignored; may be given several times."),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Of the ε that is shown; without it the script's target_delta, else 1e-5.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A new directory for result.json, report.html, recordings.")] = None,
    stop_when_known: Annotated[
        bool, typer.Option("--stop-when-known", help="End the command (SIGTERM) once a training is refuted.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Of coins and canaries' noise; without it, the system's.")] = None,
    again: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Run nothing, and judge what --out DIR has recorded once more."),
    ] = None,
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
    from epsilometer.watching.watch import validate_judging, validated

    if again is None and ("--" not in sys.argv or not command):
        given = shlex.join(command) if command else None
        raise InvalidInput("COMMAND", given, "-- before it", "as in: epsilometer watch -- python train.py")
    settings = validated(number, canaries.value, seed, argument="number")
    validate_judging(confidence, delta, ignore or ())
    display = _Display(confidence, delta, ignore or (), stop_when_known)
    if again is not None:
        return _again(again, display, require)
    assert command
    begun, clock = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), time.monotonic()
    with _directory(out) as directory:
        ended = follow(command, directory, settings, sys.stdout.fileno(), display.look)
        if not isinstance(ended, int):
            say(f"epsilometer: {shlex.join(command)}: {ended.reason}")
            return ended.code
        display.finish(ended)
        if display.broken:
            return ended if ended or require is None else TOO_WEAK
        monitor = display.monitor
        if out is not None:
            from epsilometer.report.report_file import write_report
            from epsilometer.watching.result import document_of

            seconds = round(time.monotonic() - clock, 3)
            document = document_of(monitor, command=command, exit_code=ended, begun=begun, seconds=seconds)
            (directory / RESULT).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
            write_report(directory, document)
    if ended == 0 and require is None and monitor.violated:
        say("epsilometer: the exit code is the command's own, 0; with --require not-violated it would be 1")
    return _exit_code(ended, monitor, require)


def _again(directory: Path, display: _Display, require: Required | None) -> int:
    """What was recorded there, by today's rules; nothing is written."""
    from epsilometer.watching.launch.run import Follower

    try:
        ended = int(json.loads((directory / RESULT).read_bytes())["exit_code"])
    except (OSError, *MALFORMED):
        expected = f"a directory that epsilometer watch --out has written, with {RESULT}"
        raise InvalidInput("again", str(directory), expected, "check the path") from None
    display.look(Follower(directory))
    display.finish(ended)
    return TOO_WEAK if display.broken else _exit_code(0, display.monitor, require)


def _exit_code(ended: int, monitor: Monitor, require: Required | None) -> int:
    """The command's own, unless it is 0 and something is required."""
    if ended or require is None:
        return ended
    if monitor.violated:
        return VIOLATED
    return TOO_WEAK if require is Required.CONSISTENT and not monitor.supported else 0


class _Display:
    """Says on stderr what happens, in few lines: the terminal belongs to the script."""

    def __init__(self, confidence: float, delta: float | None, ignored: Sequence[str], stop: bool) -> None:
        self._asked, self._stop = (confidence, delta, ignored), stop
        self._due: dict[int, float] = {}
        self._refuted: set[int] = set()
        self._damage = ""  # of recordings
        self.broken = ""  # what went wrong in the audit; the command goes on

    @functools.cached_property
    def monitor(self) -> Monitor:
        """Made when the command runs: what it needs takes longer to load than the command to start."""
        from epsilometer.watching.monitor import Monitor

        return Monitor(*self._asked)

    def look(self, follower: Follower) -> bool:
        """Take up what is new; True once a refuted training is to be stopped."""
        if not self.broken:
            try:
                self._take_up(follower)
            except Exception as error:
                self.broken = one_line(f"{type(error).__name__}: {error}", limit=200)
        return self._stop and bool(self._refuted)

    def _take_up(self, follower: Follower) -> None:
        changed = [self.monitor.take(record, source) for source, record in follower.new()]
        self._damage = follower.damage
        for one in {id(one): one for one in changed if one is not None}.values():
            self._remark(one)

    def finish(self, code: int) -> None:
        """The last word on each training; or why there is none."""
        if self.broken:
            say(f"epsilometer: the audit failed, and the command went on without it ({self.broken})")
            return
        monitor = self.monitor
        if self._damage:
            monitor.failures.append(self._damage)
        for why in monitor.failures:
            say(f"epsilometer: not audited, because {why}")
        for line in monitor.remarks():
            say(f"epsilometer: {line}")
        for one in monitor:
            name = f"epsilometer: {self._name(one)}"
            end = "" if one.ended else f"; its process was ended early (exit code {code})"
            say(f"{name}: {one.verdict()}{end}")
            say(f"{name}: quote: {one.quote()}")
            say(f"{name}: {one.epsilon()}")
            for line in one.failed_checks():
                say(f"{name}: {line}")
            if one.unseen and one.process.steps:
                say(
                    f"{name}: the accountant has {one.unseen} steps more than were seen "
                    "(of a checkpoint that was loaded, or taken around the optimizer)"
                )
        if not monitor.trainings and not monitor.failures:
            say(f"epsilometer: nothing was audited: {monitor.why_nothing(code)}")

    def _remark(self, one: Watched) -> None:
        now, name = time.monotonic(), self._name(one)
        if id(one) not in self._due:
            self._due[id(one)] = now + _FIRST_WORD
            say(f"epsilometer: {name}: {one}")
        if one.refuted_at is not None and id(one) not in self._refuted:
            self._refuted.add(id(one))
            say(f"epsilometer: {name}: {one.verdict()}")
        elif now > self._due[id(one)] and one.process.steps:
            from epsilometer.bounds.step_process import e_value

            self._due[id(one)] = now + _LATER_WORDS
            limit = f"noise at most {one.noise_factor():.3g} × the stated"
            say(f"epsilometer: {name}: step {one.process.steps}, e-value {e_value(one.process.log_e_value)}, {limit}")

    def _name(self, one: Watched) -> str:
        several = len({watched.pid for watched in self.monitor}) > 1
        return f"training {one.made.training}" + (f" of process {one.pid}" if several else "")


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
