"""One driver for commands that play trials: what is told, in which order, and what is said if they are stopped."""

from pathlib import Path
from typing import Any

import pytest

from epsilometer.auditing import run
from epsilometer.auditing.mechanism_audit import mechanism_plan
from epsilometer.cli.driver import Means, Players, Study, again, conduct, stoppable
from epsilometer.cli.manner import Manner
from epsilometer.cli.output import Interrupted
from epsilometer.errors import EpsilometerError
from epsilometer.report.files import Written
from epsilometer.runs import MemoryStore, SqliteStore, StoreError, TrialsFailed

PLAN = mechanism_plan("laplace", epsilon=1.0, runs=2000)
QUIET = Manner(quiet=True)


def study(play: Any, written: Written | None = None) -> Study[Any, Any]:
    def write(place: Path, result: str) -> Written:
        print(f"write {result}")
        return Written((place / "a",)) if written is None else written

    return Study(lambda *_: PLAN, play, lambda result: {"found": result}, lambda result, _: f"text {result}", write)


def test_what_was_found_is_told_before_it_is_written(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Means] = []

    def play(plan: Any, means: Means) -> str:
        assert plan is PLAN
        seen.append(means)
        return "it"

    assert conduct(study(play), None, Players(), QUIET) == "it"
    assert capsys.readouterr().out == "text it\n"
    conduct(study(play), place / "out", Players("inline"), QUIET)
    shown = capsys.readouterr()
    assert shown.out == "text it\nwrite it\n"
    assert shown.err.startswith("wrote ")
    conduct(study(play, Written()), place / "out", Players(), Manner(quiet=True, as_json=True))
    shown = capsys.readouterr()
    assert shown.out.startswith('{"schema": 1, "found": "it"}')
    assert shown.err == f"{place / 'out'} had its results already\n"
    assert [one.kept for one in seen] == [False, True, True]
    assert [type(one.store) for one in seen] == [MemoryStore, SqliteStore, SqliteStore]
    assert [one.told for one in seen] == [None] * 3


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), StoreError("the disk is full"), TrialsFailed("no worker")])
def test_who_is_stopped_learns_how_to_go_on(place: Path, stop: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["epsilometer", "mechanism", "a b"])

    def stopped(plan: Any, means: Means) -> str:
        raise stop

    def late(plan: Any, means: Means) -> str:
        run(plan, store=means.store)
        raise stop

    expected = Interrupted if isinstance(stop, KeyboardInterrupt) else EpsilometerError
    for play, out, words in (
        (stopped, None, "nothing is kept without --out DIR"),
        (stopped, place / "out", "nothing was stored yet"),
        (late, place / "out", f"trials are stored in {place / 'out'}; to continue: epsilometer mechanism 'a b'"),
    ):
        with pytest.raises(expected) as error:
            conduct(study(play), out, Players(), QUIET)
        assert str(error.value).endswith(words)
        assert str(stop) in str(error.value)


def test_other_mistakes_are_not_changed() -> None:
    with pytest.raises(ZeroDivisionError), stoppable(lambda: again(True)):
        raise ZeroDivisionError
