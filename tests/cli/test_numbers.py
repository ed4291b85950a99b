"""Numbers as people write them: none is taken for another, and ten million are read in seconds."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from program import Shown

from epsilometer.auditing import parse_spec
from epsilometer.cli import scores
from epsilometer.cli.columns import find_columns
from epsilometer.errors import InvalidInput


@pytest.mark.parametrize(
    "arguments",
    [
        ["power", "--epsilon", "1", "--true-epsilon", "1e400"],
        ["power", "--epsilon", "1", "--true-epsilon=1e400"],
        ["bound", "--counts", "97", "2", "3", "98", "--claim", "1e999"],
        ["preview", "--noise-scale", "9" * 400],
        ["power", "--epsilon", "1", "--delta", "1e-400"],
    ],
)
def test_options_too_large_for_a_float_are_not_infinite(here: Callable[..., Shown], arguments: list[str]) -> None:
    shown = here(*arguments)
    assert shown.returncode == 2, shown
    assert len(shown.stderr.splitlines()) == 1
    assert "write inf for infinity" in shown.stderr or "write 0 for none" in shown.stderr


def test_infinity_may_be_written(here: Callable[..., Shown]) -> None:
    assert here("bound", "--counts", "97", "2", "3", "98", "--claim", "inf").returncode == 0


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1_0e4_00", "1e-400"])
def test_numbers_of_a_spec_are_not_infinite(number: str) -> None:
    with pytest.raises(InvalidInput, match=rf"audit.toml = '{number}': expected (a number of at most|0, or)"):
        parse_spec(f"[training]\nlearning_rate = {number}", "audit.toml")
    assert parse_spec("[audit]\ntarget = inf\n[training]\nlearning_rate = 0.0").training.learning_rate == 0.0


cells = st.sampled_from(["0", "1", "10", "1.0", "", " 1", "1 ", "01", "-1"])
numbers = st.sampled_from(["1", "-2.5e3", ".5", "1e400", "inf", "nan", " 3", "4 ", "", "0x1", "1d3", "1_0", "+1", "x"])
rows = st.tuples(cells, numbers, st.sampled_from(["", "a b", "3", "#4"])).map(",".join)
odd = st.sampled_from(["", " ", ",", ",,", "0,1", "0,1,2,3", "#", "1,2,3 #"])


@given(st.lists(st.one_of(rows, rows, rows, odd), max_size=6), st.sampled_from(["\n", "\r\n", "\r"]))
@example(["0,1,a", "1,-2.5e3,"], "\n")
def test_the_quick_way_to_read_scores_reads_no_others(lines: list[str], end: str) -> None:
    """Whatever it reads, the thorough way reads as well, and the same; it finds what is wrong."""
    content = end.join(["world,score,more", *lines]).encode()
    header = ["world", "score", "more"]
    found = scores._plain_rows(content, header, find_columns(header, "world"))
    if found is None:
        return
    reader = csv.reader(scores._lines(content), skipinitialspace=True)
    next(reader)
    for quick, thorough in zip(found, scores._any_rows(reader, header, find_columns(header, "world")), strict=True):
        np.testing.assert_array_equal(quick, thorough)


def test_ordinary_files_are_read_the_quick_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten million rows took 30 seconds and 1.75 GB."""
    monkeypatch.delattr(scores, "_any_rows")
    content = "world,index,score\n" + "".join(f"{i % 2},{i},{0.1 * i!r}\n" for i in range(1000))
    outs, ins = scores.parse_scores(content.encode())
    assert outs.tolist() == [0.1 * i for i in range(0, 1000, 2)]
    assert ins.tolist() == [0.1 * i for i in range(1, 1000, 2)]
