"""What `watch` and `inspect` share: how a verdict is asked for, what is said of watched trainings, and exit codes."""

from __future__ import annotations

import enum
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.output import TOO_WEAK, say
from epsilometer.errors import one_line

if TYPE_CHECKING:
    from epsilometer.watching.judged import JudgedTraining
    from epsilometer.watching.judging import Judging
    from epsilometer.watching.launch.run import Follower
    from epsilometer.watching.monitor import Monitor

VIOLATED = 1
_FIRST_WORD, _LATER_WORDS = 5.0, 60.0  # seconds until the first remark on a training, and between later ones


class Required(enum.StrEnum):
    """What the verdict on every training must be."""

    NOT_VIOLATED = "not-violated"
    CONSISTENT = "consistent"
    CONSISTENT_REPLAYED = "consistent-replayed"


@dataclass(frozen=True)
class JudgingOptions:
    """Options: how a verdict is found, what it must be, and who else is told."""

    require: Annotated[
        Required | None,
        typer.Option(
            help="Of a command that ends with 0: exit with 1 if violated, and with 4 if not 'consistent', or not by "
            "replay as well."
        ),
    ] = None
    confidence: Annotated[float, typer.Option(help="Of the verdict on each training.")] = 0.95
    delta: Annotated[
        float | None, typer.Option(help="Of the ε that is shown; without it the script's target_delta, else 1e-5.")
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option(help="A check that may fail, and is shown as ignored; may be given several times."),
    ] = None
    assume: Annotated[
        list[str] | None,
        typer.Option(
            help="A statement that you vouch for where nothing tests it, such as sampling; may be given several times."
        ),
    ] = None
    junit: Annotated[Path | None, typer.Option(help="JUnit XML file: a test for each statement of each training.")] = (
        None
    )
    summary: Annotated[
        Path | None, typer.Option(help="Markdown file to add a section to, e.g. a CI's job summary; the rest stays.")
    ] = None

    def judging(self) -> Judging:
        """How to judge, if that makes sense; files that could not be written are refused before anything runs."""
        from epsilometer.watching.judging import Judging

        if self.junit is not None or self.summary is not None:
            from epsilometer.report.statements import require_writable

            require_writable(self.junit, self.summary)
        return Judging(self.confidence, self.delta, tuple(self.ignore or ()), tuple(self.assume or ()))

    def tell(self, document: Callable[[], dict[str, Any]]) -> None:
        """Whoever else is to know; the document is made if somebody is."""
        if self.junit is None and self.summary is None:
            return
        from epsilometer.report.statements import write_statements

        consistent = self.require in (Required.CONSISTENT, Required.CONSISTENT_REPLAYED)
        written = write_statements(document(), self.junit, self.summary, require_consistent=consistent)
        say(f"wrote {' and '.join(map(str, written))}")

    def exit_code(self, ended: int, monitor: Monitor) -> int:
        """The command's own, unless it is 0 and something is required."""
        if ended or self.require is None:
            return ended
        if monitor.violated:
            return VIOLATED
        if self.require is Required.CONSISTENT:
            return 0 if monitor.supported else TOO_WEAK
        if self.require is Required.CONSISTENT_REPLAYED:
            return 0 if monitor.replayed else TOO_WEAK
        return 0


class Display:
    """Says on stderr what happens, in few lines: the terminal belongs to the script. With `verbose`, all of it."""

    def __init__(self, judging: Judging, stop: bool = False, verbose: bool = False) -> None:
        self._judging, self._stop, self._verbose = judging, stop, verbose
        self._due: dict[int, float] = {}
        self._refuted: set[int] = set()
        self._damage = ""  # of recordings
        self.broken = ""  # what went wrong in the audit; the command goes on

    @functools.cached_property
    def monitor(self) -> Monitor:
        """Made when the command runs: what it needs takes longer to load than the command to start."""
        from epsilometer.watching.monitor import Monitor

        return Monitor(self._judging)

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

    def finish(self, code: int, *, canaries: bool = True) -> None:
        """The last word on each training: the verdict, then its statements; or why there is none."""
        from epsilometer.watching.lines import in_brief, in_full

        if self.broken:
            say(f"epsilometer: the audit failed, and the command went on without it ({self.broken})")
            return
        monitor = self.monitor
        monitor.ended()
        if self._damage:
            monitor.failures.append(self._damage)
        for why in monitor.failures:
            say(f"epsilometer: not audited, because {why}")
        for line in monitor.remarks():
            say(f"epsilometer: {line}")
        for one in monitor:
            name = f"epsilometer: {self.name(one)}"
            end = "" if one.ended else f"; its process was ended early (exit code {code})"
            first, *others = in_full(one) if self._verbose else in_brief(one)
            for line in (f"{first}{end}", *others):
                say(f"{name}: {line}")
        for line in monitor.limits():
            say(f"epsilometer: {line}")
        if not monitor.trainings and not monitor.failures:
            say(f"epsilometer: nothing was audited: {monitor.why_nothing(code, canaries=canaries)}")

    def _remark(self, one: JudgedTraining) -> None:
        now, name = time.monotonic(), self.name(one)
        if self._verbose and id(one) not in self._due:
            self._due[id(one)] = now + _FIRST_WORD
            say(f"epsilometer: {name}: {one}")
        if one.refuted_at is not None and id(one) not in self._refuted:
            self._refuted.add(id(one))
            if self._verbose:
                say(f"epsilometer: {name}: {one.verdict()}")
            elif not one.ended:  # a training of hours; its last word says more
                say(f"epsilometer: {name}: {one.verdict().outcome} at step {one.refuted_at}, while it goes on")
        elif not one.ended and one.never_iterated and id(one) not in self._refuted:
            self._refuted.add(id(one))
            say(f"epsilometer: {name}: {one.never_iterated}")
        elif self._verbose and now > self._due[id(one)] and one.process.steps:
            from epsilometer.bounds.step_process import e_value

            self._due[id(one)] = now + _LATER_WORDS
            limit = f"noise at most {one.noise_factor():.3g} × the stated"
            say(f"epsilometer: {name}: step {one.process.steps}, e-value {e_value(one.process.log_e_value)}, {limit}")

    def name(self, one: JudgedTraining) -> str:
        """As lines on it begin."""
        several = len({watched.pid for watched in self.monitor}) > 1
        ranks = f" ({one.ranks} ranks)" if one.ranks > 1 else ""
        return f"training {one.made.training}{ranks}" + (f" of process {one.pid}" if several else "")
