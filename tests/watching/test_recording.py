"""Records survive the process that wrote them, and damage to a file costs the damaged lines only."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epsilometer.watching.facts import Facts, Kept, Steps
from epsilometer.watching.monitor import Monitor
from epsilometer.watching.recording import (
    Ended,
    Imported,
    MadePrivate,
    NotAudited,
    Reader,
    Record,
    Started,
    Step,
    Told,
    Writer,
    decode,
    encode,
)

STEP = Step(1, np.array([0.25, -2.5, 1e300]), np.array([True, False, True]), 1.1, 0.5)
MADE = MadePrivate(1, "DPOptimizer", 1.1, 0.5, 3, "extra", {"poisson_sampling": True})
RECORDS: list[Record] = [
    Started(12, ["python", "ε.py"], "3.11.7"), Imported("opacus", "1.6.0"), MADE, NotAudited(1, "why\nnot"),
    Told(1, Facts(steps=Steps(3, 3), kept=Kept(3, {"bias": 1}), troubles={"sampling": "unknown"})), Ended(1, 4),
]  # fmt: skip


def test_records_come_back_as_they_were() -> None:
    for record in RECORDS:
        assert decode(encode(record)) == record
        assert encode(record).count(b"\n") == 1
    step = decode(encode(STEP))
    assert isinstance(step, Step)
    assert np.allclose(step.scores, [0.25, -2.5, 1e30])
    assert np.array_equal(step.coins, STEP.coins)


def test_a_torn_line_is_not_read_until_it_has_its_end(tmp_path: Path) -> None:
    path, line = tmp_path / "1.jsonl", encode(MADE)
    for cut in range(len(line)):
        path.write_bytes(encode(RECORDS[0]) + line[:cut])
        reader = Reader(path)
        assert [*reader.new()] == [RECORDS[0]]
        with path.open("ab") as file:
            file.write(line[cut:])
        assert [*reader.new()] == [MADE]
        assert [*reader.new()] == []
        assert reader.damaged == 0


def test_damaged_lines_are_counted_and_left_out(tmp_path: Path) -> None:
    writer, path = Writer(tmp_path / "1.jsonl"), tmp_path / "1.jsonl"
    writer.take(RECORDS[0])
    short = encode(STEP).replace(b'"canaries": 3', b'"canaries": 4')
    for line in (b"\xff\x00\n", b"3\n", b'{"kind": "none"}\n', b'{"kind": "ended"}\n', short):
        with path.open("ab") as file:
            file.write(line)
    writer.take(MADE)
    reader = Reader(path)
    assert [*reader.new()] == [RECORDS[0], MADE]
    assert reader.damaged == 5


def test_steps_of_an_unknown_training_are_left_out() -> None:
    assert Monitor().take(STEP, "1.jsonl") is None


@pytest.mark.parametrize("sigma", [0.0, float("inf"), float("nan")])
def test_a_step_that_states_nothing_is_counted_only(sigma: float) -> None:
    monitor = Monitor()
    watched = monitor.take(MADE)
    assert watched is not None
    monitor.take(Step(1, STEP.scores, STEP.coins, sigma, 0.5))
    assert (watched.vacuous, watched.process.steps) == (1, 0)


@pytest.mark.parametrize(
    ("name", "outcome", "refuted_at", "log_e_value", "accounted", "failed", "checks"),
    [
        ("opacus", "violated", 7, 4.84, [[1.386, 0.1, 8]], {"noise-scale", "nonfinite-record"}, 20),
        ("jax", "inconclusive", None, -0.36, [], set(), 4),
    ],
)
def test_recordings_of_the_first_version_are_judged_as_ever(
    name: str, outcome: str, refuted_at: int | None, log_e_value: float, accounted: Any, failed: set[str], checks: int
) -> None:
    """Half of the noise in Opacus, and a right training by optax: made before frameworks were a table."""
    monitor, reader = Monitor(), Reader(Path(__file__).parent / "recordings" / f"{name}-0.1.0.jsonl")
    for record in reader.new():
        monitor.take(record)
    assert reader.damaged == 0
    (seen,) = monitor
    assert (seen.verdict().outcome, seen.refuted_at, seen.history) == (outcome, refuted_at, accounted)
    assert seen.process.log_e_value == pytest.approx(log_e_value, abs=0.01)
    assert {one.name for one in seen.checks if one.status == "failed"} == failed
    assert len(seen.checks) == checks
