"""How far a run is: no time is estimated before a rate is known."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from epsilometer.cli.progress import _state
from epsilometer.runs import progress
from epsilometer.runs.progress import Reporter, Snapshot
from epsilometer.runs.tally import Tally

TOTAL = 20_000


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is said after each of some groups: (seconds since the last one, trials of it)."""

    def say(groups: Iterable[tuple[float, int]]) -> list[Snapshot]:
        clock, seen = SimpleNamespace(now=1000.0), list[Snapshot]()
        monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: clock.now))
        work = SimpleNamespace(describe=lambda: "an attack")
        tally = SimpleNamespace(work=work, done=0, total=TOTAL, complete=0, results={})
        reporter = Reporter(seen.append, cast(Tally, tally))
        for seconds, trials in groups:
            clock.now += seconds
            tally.done += trials
            reporter.tell()
        return seen

    return say


def test_a_worker_that_compiles_makes_no_estimate_of_days(told: Any) -> None:
    """Of an audit of two minutes it was said "44 h 0 min left" while kernels were compiled."""
    start = [(9.0, 2), (16.0, 2), (0.1, 2)]  # this process, then two workers
    steady = [(0.25, 40)] * 40
    seen = told([*start, *steady])
    assert [now.seconds_left for now in seen[:3]] == [None] * 3
    assert "left" not in "".join(map(_state, seen[:3]))
    known = [now for now in seen if now.rate is not None]
    assert len(known) > 30  # it takes about a second
    assert all(now.rate == pytest.approx(160.0, rel=0.3) for now in known)
    assert "min" in _state(known[-1])
    assert "left" in _state(known[-1])


@pytest.mark.parametrize(
    ("groups", "rate"),
    [
        ([(60.0, 1)] * 6, 1 / 60),  # trials of a minute each
        ([(60.0, 1), *[(0.01, 1)] * 7] * 5, 8 / 60),  # eight at a time
        ([(0.4, 3), (0.6, 3)] * 20, 6.0),
    ],
)
def test_rates_of_rare_groups_are_known_too(groups: list[tuple[float, int]], rate: float, told: Any) -> None:
    seen = told(groups)
    assert seen[0].rate is None
    assert seen[-1].rate == pytest.approx(rate, rel=0.15)


def test_a_stall_ends_an_estimate_and_comes_into_none(told: Any) -> None:
    seen = told([*[(0.5, 10)] * 40, (3600.0, 10), *[(0.5, 10)] * 40])
    assert seen[39].rate == pytest.approx(20.0)
    assert seen[40].rate is None
    assert all(now.rate == pytest.approx(20.0) for now in seen[43:])
