"""`epsilometer inspect`."""

from __future__ import annotations

import enum
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.groups import Only, grouped
from epsilometer.cli.output import TOO_WEAK, say, visible
from epsilometer.cli.watched import JudgingOptions
from epsilometer.cli.watched import Required as Needed
from epsilometer.errors import MALFORMED, InvalidInput, one_line

if TYPE_CHECKING:
    from epsilometer.watching.checks import Check
    from epsilometer.watching.judging import Judging
    from epsilometer.watching.launch.run import Follower, NotStarted
    from epsilometer.watching.monitor import Monitor

_KEYS = {"schema", "kind", "command", "exit_code", "libraries", "failures", "trainings"}  # of its document
_WRITTEN = (_KEYS, _KEYS - {"kind"})  # now, and by earlier versions


class Required(enum.StrEnum):
    """What all checks must be, or the verdict."""

    PASSED = "passed"
    NOT_VIOLATED = "not-violated"
    CONSISTENT = "consistent"


@grouped
def inspect(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND", help="What to run, after --, such as: -- python train.py.")
    ],
    second_run: Annotated[
        bool, typer.Option("--second-run", help="Run it once more with other seeds: its noise must be another one.")
    ] = False,
    require: Annotated[
        Required | None,
        typer.Option(
            help="Of a command that ends with 0. passed: exit with 4 if a check failed or none was made; not-violated, "
            "consistent: as watch has it."
        ),
    ] = None,
    to_json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all checks to this file.")
    ] = None,
    *,
    judged: Annotated[JudgingOptions, Only("confidence", "ignore", "assume")],
) -> int:
    """Run a training script once, unchanged, and test the statements on which its promise rests, without canaries.

    Sampler, sample rate and steps against what is accounted; the noise of every parameter and step; crafted records
    through the script's own clipping; layers that mix records; weights that others move. The verdict, a line for each
    statement and all checks go to stderr; the script's output and exit code are as without.

    Examples:

    - `epsilometer inspect -- python train.py --epochs 3`

    - `epsilometer inspect --second-run --require passed --ignore nonfinite-record -- python train.py`
    """
    if "--" not in sys.argv:
        given = shlex.join(command)
        raise InvalidInput("COMMAND", given, "-- before it", "as in: epsilometer inspect -- python train.py")
    judging = judged.judging()
    if to_json is not None:
        _require_place(to_json)
    first = _run(command, judging, other_seeds=False, stdout=sys.stdout.fileno())
    if not isinstance(first, tuple):
        say(f"epsilometer: {shlex.join(command)}: {first.reason}")
        return first.code
    code, monitor = first
    if second_run and code == 0 and monitor.trainings:
        _second_run(command, monitor)
    _show(monitor, code)
    if to_json is not None:
        document = {"schema": 2, "kind": "inspect", "command": list(command), "exit_code": code, **_document(monitor)}
        _write(to_json, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    return code or _exit_code(monitor, require)


def _exit_code(monitor: Monitor, require: Required | None) -> int:
    """Of a command that ended with 0."""
    if require is Required.PASSED:
        return 0 if _passed(monitor) else TOO_WEAK
    return JudgingOptions(require=None if require is None else Needed(require.value)).exit_code(0, monitor)


def _passed(monitor: Monitor) -> bool:
    """Whether no check failed that may not, and any was made at all."""
    statuses = {check.status.value for one in monitor for check in one.checks}
    return "failed" not in statuses and "passed" in statuses


def _require_place(path: Path) -> None:
    """It must be a new file, or one that an earlier inspection has written."""
    place = Path(os.path.realpath(path))
    if place.is_dir() or not place.parent.is_dir():
        raise InvalidInput("json", str(path), "a file in a directory that exists", "name another")
    if path.is_symlink() and not place.exists():
        raise InvalidInput("json", str(path), "a file, or none (this links to nothing)", "remove the link")
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        raise InvalidInput("json", str(path), "a file that can be written", "check its permissions")
    try:
        if place.is_file() and place.stat().st_size and set(json.loads(place.read_bytes())) not in _WRITTEN:
            raise ValueError("another file")
    except MALFORMED:
        expected = "a new file, or one that epsilometer inspect has written"
        raise InvalidInput("json", str(path), expected, "name another, or move it away") from None


def _write(path: Path, text: str) -> None:
    from epsilometer.runs.atomic_files import write_whole

    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():  # /dev/stderr, a pipe
        place.write_text(text, encoding="utf-8")
    else:
        write_whole(place, text.encode(), anew=True)


def _run(
    command: Sequence[str], judging: Judging, *, other_seeds: bool, stdout: int
) -> tuple[int, Monitor] | NotStarted:
    """One run of the command: its exit code, and what was recorded."""
    from epsilometer.watching.launch.run import follow
    from epsilometer.watching.monitor import Monitor
    from epsilometer.watching.settings import Settings

    monitor, broken, damage = Monitor(judging), "", ""

    def look(follower: Follower) -> bool:
        nonlocal monitor, broken, damage
        if not broken:
            try:
                for source, record in follower.new():
                    monitor.take(record, source)
                damage = follower.damage
            except Exception as error:  # a mistake of ours, or somebody emptied the directory: the command goes on
                broken = one_line(f"{type(error).__name__}: {error}", limit=200)
                monitor = Monitor(judging)
                monitor.failures.append(f"the inspection failed, and the command went on without it ({broken})")
        return False

    with tempfile.TemporaryDirectory(prefix="epsilometer-inspect-", ignore_cleanup_errors=True) as place:
        ended = follow(command, Path(place), Settings(canaries=0, other_seeds=other_seeds), stdout, look)
    if damage and not broken:
        monitor.failures.append(damage)
    monitor.ended()
    return (ended, monitor) if isinstance(ended, int) else ended


def _second_run(command: Sequence[str], first: Monitor) -> None:
    """Run it again, its output on stderr, and answer what one run cannot."""
    from epsilometer.watching.checks import repetition

    say("epsilometer: second run, with other seeds; its output goes to stderr")
    second = _run(command, first.judging, other_seeds=True, stdout=sys.stderr.fileno())
    if not isinstance(second, tuple) or second[0] != 0:
        say("epsilometer: the second run failed; what one run shows remains")
        return
    noise = [[one.facts.seeds.first if one.facts.seeds else [] for one in run] for run in (first, second[1])]
    for one, here, there in zip(first, noise[0], [*noise[1], *[[]] * len(noise[0])], strict=False):
        compared = first.accepted(repetition.compare_runs(here, there))
        one.checks = [_answered(check, compared) for check in one.checks]


def _answered(check: Check, compared: Check) -> Check:
    """The second run's answer in place of the first's, unless that was an accusation already."""
    if check.name != compared.name or check.status == "failed" or compared.status == "not applicable":
        return check
    remark = check.reason.partition("; ")[2]
    return replace(compared, reason=compared.reason + (f"; {remark}" if compared.status == "passed" and remark else ""))


def _show(monitor: Monitor, code: int) -> None:
    """The verdict and a line for each statement; then all checks, drawn in a terminal, tab-separated elsewhere."""
    for why in monitor.failures:
        say(f"epsilometer: not checked, because {why}")
    for number, one in enumerate(monitor, start=1):
        name, checks = f"training {number}", one.checks
        say(f"epsilometer: {name}: {one.verdict()}")
        for line in one.table():
            say(f"epsilometer: {name}: {line}")
        if not checks:
            say(f"epsilometer: {name}: its process ended before it could be checked (exit code {code})")
            continue
        title = name if len(monitor.trainings) > 1 else "checks"
        failed = [check.name for check in checks if check.status == "failed"]
        passed = sum(check.status == "passed" for check in checks)
        which = f"{len(failed)} failed ({', '.join(failed)})" if failed else "none failed"
        others = f"{passed} passed, {len(checks) - passed - len(failed)} not applicable"
        say(f"epsilometer: {title}: {which}, {others}")
        _print_table([(check.name, check.status.value, check.reason) for check in checks], title)
    if not monitor.trainings and not monitor.failures:
        say(f"epsilometer: nothing was checked: {monitor.why_nothing(code, canaries=False)}")


def _print_table(rows: Sequence[tuple[str, str, str]], title: str) -> None:
    if not sys.stderr.isatty():
        for row in rows:
            say("\t".join(row).replace("\t", "  "))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("check", "status", "reason", title=title, title_justify="left", box=box.SIMPLE_HEAD)
    styles = {"passed": "green", "failed": "bold red"}
    for name, status, reason in rows:
        table.add_row(Text(name), Text(status, styles.get(status, "dim")), Text(visible(reason)))
    Console(stderr=True).print(table)


def _document(monitor: Monitor) -> dict[str, Any]:
    return {
        "libraries": [{"name": one.library, "version": one.version} for one in monitor.libraries],
        "failures": monitor.failures,
        "trainings": [
            {
                "optimizer": one.made.optimizer,
                "verdict": one.verdict().outcome.value,
                "reason": one.verdict().reason,
                "statements": [row.to_dict() for row in one.statements],
                "checks": [check.to_dict() for check in one.checks],
            }
            for one in monitor
        ],
    }
