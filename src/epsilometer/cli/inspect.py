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

from epsilometer.cli.output import say, visible
from epsilometer.errors import MALFORMED, InvalidInput, one_line

if TYPE_CHECKING:
    from epsilometer.watching.checks import Check
    from epsilometer.watching.launch.run import Follower, NotStarted
    from epsilometer.watching.monitor import Monitor

NOT_PASSED = 4
_KEYS = {"schema", "command", "exit_code", "libraries", "failures", "trainings"}  # of its document


class Required(enum.StrEnum):
    """What all checks must be."""

    PASSED = "passed"


def inspect(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND", help="What to run, after --, such as: -- python train.py.")
    ],
    second_run: Annotated[
        bool, typer.Option("--second-run", help="Run it once more with other seeds: its noise must be another one.")
    ] = False,
    require: Annotated[
        Required | None,
        typer.Option(help="Of a command that ends with 0: exit with 4 if a check failed or none was made."),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(help="A check that may fail under --require; may be given several times.")
    ] = None,
    to_json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all checks to this file.")
    ] = None,
) -> int:
    """Run a training script once, unchanged, and check every Opacus training in it, without attacking it.

    Sampler, sample rate and steps against what is accounted; the noise of every parameter and step; crafted records
    through the script's own clipping; layers that mix records; weights that others move. What is found goes to stderr;
    the script's output and exit code are as without. `epsilometer watch` makes the same checks and attacks as well.

    Examples:

    - `epsilometer inspect -- python train.py --epochs 3`

    - `epsilometer inspect --second-run --require passed --ignore nonfinite-record -- python train.py`
    """
    _require_sensible(command, ignore or (), to_json)
    first = _run(command, other_seeds=False, stdout=sys.stdout.fileno())
    if not isinstance(first, tuple):
        say(f"epsilometer: {shlex.join(command)}: {first.reason}")
        return first.code
    code, monitor = first
    trainings = [_checks(one.checks) for one in monitor]
    if second_run and code == 0 and trainings:
        trainings = _with_second_run(command, monitor, trainings)
    _show(monitor, trainings, code)
    if to_json is not None:
        document = {"schema": 1, "command": list(command), "exit_code": code, **_document(monitor, trainings)}
        _write(to_json, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    if code or require is None:
        return code
    return 0 if _passed(trainings, ignore or ()) else NOT_PASSED


def _require_sensible(command: Sequence[str], ignore: Sequence[str], to_json: Path | None) -> None:
    """Before the command is run, which may take hours."""
    from epsilometer.watching.checks.names import NAMES

    if "--" not in sys.argv:
        given = shlex.join(command)
        raise InvalidInput("COMMAND", given, "-- before it", "as in: epsilometer inspect -- python train.py")
    for name in ignore:
        if name not in NAMES:  # one that a package brings, or none
            from epsilometer.watching.checks.catalogue import CHECKS

            CHECKS.named(name, "ignore")
    if to_json is not None:
        _require_place(to_json)


def _passed(trainings: list[list[Check]], ignore: Sequence[str]) -> bool:
    """Whether no check failed that may not, and any was made at all."""
    checks = [check for training in trainings for check in training]
    if any(check.status == "failed" and check.name not in ignore for check in checks):
        return False
    return any(check.status == "passed" for check in checks)


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
        if place.is_file() and place.stat().st_size and set(json.loads(place.read_bytes())) != _KEYS:
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


def _run(command: Sequence[str], *, other_seeds: bool, stdout: int) -> tuple[int, Monitor] | NotStarted:
    """One run of the command: its exit code, and what was recorded."""
    from epsilometer.watching.launch.run import follow
    from epsilometer.watching.monitor import Monitor
    from epsilometer.watching.settings import Settings

    monitor, broken, damage = Monitor(), "", ""

    def look(follower: Follower) -> bool:
        nonlocal monitor, broken, damage
        if not broken:
            try:
                for source, record in follower.new():
                    monitor.take(record, source)
                damage = follower.damage
            except Exception as error:  # a mistake of ours, or somebody emptied the directory: the command goes on
                broken = one_line(f"{type(error).__name__}: {error}", limit=200)
                monitor = Monitor()
                monitor.failures.append(f"the inspection failed, and the command went on without it ({broken})")
        return False

    with tempfile.TemporaryDirectory(prefix="epsilometer-inspect-", ignore_cleanup_errors=True) as place:
        ended = follow(command, Path(place), Settings(canaries=0, other_seeds=other_seeds), stdout, look)
    if damage and not broken:
        monitor.failures.append(damage)
    return (ended, monitor) if isinstance(ended, int) else ended


def _with_second_run(command: Sequence[str], first: Monitor, trainings: list[list[Check]]) -> list[list[Check]]:
    """Run it again, its output on stderr, and answer what one run cannot."""
    from epsilometer.watching.checks import repetition

    say("epsilometer: second run, with other seeds; its output goes to stderr")
    second = _run(command, other_seeds=True, stdout=sys.stderr.fileno())
    if not isinstance(second, tuple) or second[0] != 0:
        say("epsilometer: the second run failed; what one run shows remains")
        return trainings
    noise = [[one.facts.seeds.first if one.facts.seeds else [] for one in run] for run in (first, second[1])]
    answers = []
    for checks, here, there in zip(trainings, noise[0], [*noise[1], *[[]] * len(trainings)], strict=False):
        compared = repetition.compare_runs(here, there)
        answers.append([_answered(check, compared) for check in checks])
    return answers


def _answered(check: Check, compared: Check) -> Check:
    """The second run's answer in place of the first's, unless that was an accusation already."""
    if check.name != compared.name or check.status == "failed" or compared.status == "not applicable":
        return check
    remark = check.reason.partition("; ")[2]
    return replace(compared, reason=compared.reason + (f"; {remark}" if compared.status == "passed" and remark else ""))


def _checks(rows: Sequence[dict[str, str]]) -> list[Check]:
    from epsilometer.watching.checks import Check

    return [Check.from_dict(row) for row in rows]


def _show(monitor: Monitor, trainings: list[list[Check]], code: int) -> None:
    """A table on stderr: drawn in a terminal, tab-separated elsewhere."""
    for why in monitor.failures:
        say(f"epsilometer: not checked, because {why}")
    for number, checks in enumerate(trainings, start=1):
        if not checks:
            say(f"epsilometer: training {number}: its process ended before it could be checked (exit code {code})")
            continue
        title = f"training {number}" if len(trainings) > 1 else "checks"
        failed = [check.name for check in checks if check.status == "failed"]
        passed = sum(check.status == "passed" for check in checks)
        which = f"{len(failed)} failed ({', '.join(failed)})" if failed else "none failed"
        others = f"{passed} passed, {len(checks) - passed - len(failed)} not applicable"
        say(f"epsilometer: {title}: {which}, {others}")
        _print_table([(check.name, check.status.value, check.reason) for check in checks], title)
    if not trainings and not monitor.failures:
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


def _document(monitor: Monitor, trainings: list[list[Check]]) -> dict[str, Any]:
    return {
        "libraries": [{"name": one.library, "version": one.version} for one in monitor.libraries],
        "failures": monitor.failures,
        "trainings": [
            {"optimizer": one.made.optimizer, "checks": [check.to_dict() for check in checks]}
            for one, checks in zip(monitor, trainings, strict=True)
        ],
    }
