"""`epsilometer watch`."""

from __future__ import annotations

import enum
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.output import say
from epsilometer.errors import InvalidInput, one_line, unknown_name

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
        list[str], typer.Argument(metavar="-- COMMAND", help="What to run, after --, such as: -- python train.py.")
    ],
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
) -> int:
    """Run a training script once, unchanged, and audit every Opacus training in it, and JAX trainings with optax's DP
    aggregate or a plan of jax-privacy.

    Its output, exit code, random numbers, model and accountant are as without. In every step, canary gradients go
    through the script's own clipping and noise, each by the toss of a coin; guessing the coins from the noisy sums
    refutes a noise multiplier that is not true. What is found goes to stderr.

    Examples:

    - `epsilometer watch -- python train.py --epochs 3`

    - `epsilometer watch --require consistent --out audit -- python -m mypackage.train`
    """
    from epsilometer import checks
    from epsilometer.report.report_file import write_report
    from epsilometer.runs.store import now
    from epsilometer.watching.checks.names import JAX, NAMES
    from epsilometer.watching.launch.run import NotStarted, follow
    from epsilometer.watching.monitor import Monitor
    from epsilometer.watching.settings import MOST, Settings

    if "--" not in sys.argv:
        raise InvalidInput(
            "COMMAND", shlex.join(command), "-- before it", "as in: epsilometer watch -- python train.py"
        )
    for name in ignore or ():
        if name not in (*NAMES, *JAX):
            raise unknown_name("ignore", name, [*NAMES, *JAX])
    checks.whole("number", number, least=1, most=MOST)
    checks.real("confidence", confidence, above=0, below=1)
    if delta is not None:
        checks.real("delta", delta, above=0, below=1)
    if seed is not None:
        checks.whole("seed", seed, least=0)
    monitor, begun, clock = Monitor(confidence, delta, ignore or ()), now(), time.monotonic()
    display = _Display(monitor, stop_when_known)
    with _directory(out) as directory:
        settings = Settings(number, canaries.value, seed)
        ended = follow(command, directory, settings, sys.stdout.fileno(), display.look)
        if isinstance(ended, NotStarted):
            say(f"epsilometer: {shlex.join(command)}: {ended.reason}")
            return ended.code
        display.finish(ended)
        if display.broken:
            return ended if ended or require is None else TOO_WEAK
        if out is not None:
            times = {"begun": begun, "seconds": round(time.monotonic() - clock, 3)}
            found = {"schema": 1, "command": list(command), "exit_code": ended, **times, **_document(monitor)}
            document = _plain(found)
            (directory / RESULT).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
            write_report(directory, document)
    if ended == 0 and require is None and "violated" in _outcomes(monitor):
        say("epsilometer: the exit code is the command's own, 0; with --require not-violated it would be 1")
    return _exit_code(ended, monitor, require)


class _Display:
    """Says on stderr what happens, in few lines: the terminal belongs to the script."""

    def __init__(self, monitor: Monitor, stop: bool) -> None:
        self._monitor, self._stop = monitor, stop
        self._due: dict[int, float] = {}
        self._refuted: set[int] = set()
        self._damaged = 0  # lines of recordings that are none
        self.broken = ""  # what went wrong in the audit; the command goes on

    def look(self, follower: Follower) -> bool:
        """Take up what is new; True once a refuted training is to be stopped."""
        if not self.broken:
            try:
                self._take_up(follower)
            except Exception as error:
                self.broken = one_line(f"{type(error).__name__}: {error}", limit=200)
        return self._stop and bool(self._refuted)

    def _take_up(self, follower: Follower) -> None:
        changed = [self._monitor.take(record, source) for source, record in follower.new()]
        self._damaged = follower.damaged
        for one in {id(one): one for one in changed if one is not None}.values():
            self._remark(one)

    def finish(self, code: int) -> None:
        """The last word on each training; or why there is none."""
        from epsilometer.watching.checks.names import FAILED, IGNORED

        monitor = self._monitor
        if self.broken:
            say(f"epsilometer: the audit failed, and the command went on without it ({self.broken})")
            return
        if self._damaged:
            monitor.failures.append(f"{self._damaged} lines of the recordings make no sense, and were left out")
        for why in monitor.failures:
            say(f"epsilometer: not audited, because {why}")
        for one in monitor:
            name = f"epsilometer: {self._name(one)}"
            end = "" if one.ended else f"; its process was ended early (exit code {code})"
            say(f"{name}: {one.verdict()}{end}")
            say(f"{name}: quote: {one.quote()}")
            say(f"{name}: {one.epsilon()}")
            for check in one.checks:
                if check["status"] in (FAILED, IGNORED):
                    how = "failed" if check["status"] == FAILED else "failed, and is ignored"
                    say(f"{name}: check {how}: {check['name']}: {check['reason']}")
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
        several = len({watched.pid for watched in self._monitor}) > 1
        return f"training {one.made.training}" + (f" of process {one.pid}" if several else "")


def _exit_code(ended: int, monitor: Monitor, require: Required | None) -> int:
    """The command's own, unless it is 0 and something is required."""
    if ended != 0 or require is None:
        return ended
    outcomes = _outcomes(monitor)
    if "violated" in outcomes:
        return VIOLATED
    supported = bool(outcomes) and all(outcome == "consistent" for outcome in outcomes)
    weak = not supported or bool(monitor.failures) or any(one.faults for one in monitor)
    return TOO_WEAK if weak and require is Required.CONSISTENT else 0


def _outcomes(monitor: Monitor) -> list[str]:
    return [one.verdict().outcome.value for one in monitor]


def _document(monitor: Monitor) -> dict[str, Any]:
    from epsilometer.report import versions
    from epsilometer.watching.figures import figures_of

    trainings: Sequence[dict[str, Any]] = [one.to_dict() for one in monitor]
    return {
        "libraries": [{"name": one.library, "version": one.version} for one in monitor.libraries],
        "processes": [{"pid": one.pid, "argv": one.argv, "python": one.python} for one in monitor.processes.values()],
        "failures": monitor.failures,
        "trainings": trainings,
        "figures": {name: figure.to_dict() for name, figure in figures_of(monitor).items()},
        "versions": versions(),
    }


def _plain(document: dict[str, Any]) -> Any:
    from epsilometer.json_values import json_values

    return json_values(document)


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
