"""`epsilometer mechanism`: verdicts, exit codes, and one line for every mistake."""

import json
import re
from pathlib import Path

import pytest

QUIETLY = ("--quiet", "--executor", "inline")
OWN = """
import numpy as np
def release(value, rng, size):
    return np.rint(64 * (np.sum(value) + rng.laplace(0, 0.4, size))) / 64
"""


def test_without_a_name_it_lists_them(here) -> None:
    shown = here("mechanism")
    assert shown.returncode == 0
    assert "laplace\tLaplace noise of scale" in shown.stdout
    assert "sparse-vector-6\tBROKEN: never ends" in shown.stdout
    assert json.loads(here("mechanism", "--json").stdout)["mechanisms"]["laplace-half"]["fault"] == "half of the noise"


def test_right_and_wrong_mechanisms(here, place: Path) -> None:
    right = here("mechanism", "randomized-response", "--epsilon", "1", "--runs", "20000", "--seed", "1", *QUIETLY)
    assert right.returncode == 0
    assert right.stdout.startswith(("consistent: ", "inconclusive: "))
    assert "neighbours: " in right.stdout
    wrong = here("mechanism", "laplace-half", "--epsilon", "1", "--runs", "20000", "--json", "--out", "kept", *QUIETLY)
    assert wrong.returncode == 1
    found = json.loads(wrong.stdout)
    assert found["neighbours"] == {"out": 0.0, "in": 1.0, "score": found["neighbours"]["score"]}
    assert (place / "kept" / "result.json").exists()
    stopped = here(
        "mechanism", "laplace-half", "--epsilon", "1", "--runs", "100000", "--curve", "--bound", "eprocess", *QUIETLY
    )
    assert stopped.returncode == 1
    assert "stopped early" in stopped.stdout


def test_a_function_of_ones_own(here, place: Path) -> None:
    (place / "mine.py").write_text(OWN)
    (place / "a.json").write_text("[1, 1]")
    (place / "b.json").write_text("[1]")
    shown = here(
        "mechanism", "mine.py:release", "--epsilon", "1", "--neighbours", "a.json", "b.json", "--runs", "4000", *QUIETLY
    )
    assert shown.returncode == 1
    assert "neighbours: [1, 1] and [1]" in shown.stdout


def test_a_function_of_one_number_gets_a_number(here, place: Path) -> None:
    """A list was given to it, unless neighbours were named too."""
    (place / "one_number.py").write_text(
        "def release(value, rng, size):\n    return float(value) + rng.laplace(0, 1, size)\n"
    )
    own = ("mechanism", "one_number.py:release", "--epsilon", "1", "--sensitivity", "1", "--runs", "2000", *QUIETLY)
    shown = here(*own)
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"neighbours: -?[01]\.0 and -?[01]\.0;", shown.stdout)
    wrong = here(*own, "--entries", "2")
    assert wrong.returncode == 2
    assert "one_number:release raised TypeError" in wrong.stderr
    assert "(it was given [0.0, 0.0])" in wrong.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["laplace"], "--epsilon is missing: expected the claimed ε"),
        (["laplace", "--epsilon", "0"], "--epsilon = 0.0: expected a number in (0, inf)"),
        (["laplace", "--epsilon", "nan"], "--epsilon = nan"),
        (
            ["laplace", "--epsilon", "1", "--relation", "replace"],
            "--relation = 'replace': expected add-remove",
        ),
        (["laplace", "--epsilon", "1", "--sensitivity", "0"], "--sensitivity = 0.0"),
        (["laplace", "--epsilon", "1", "--sensitivity", "nan"], "--sensitivity = nan"),
        (["laplace", "--epsilon", "1", "--delta", "2"], "--delta = 2.0"),
        (["gaussian", "--epsilon", "1"], "Gaussian noise has no ε at δ = 0"),
        (["gaussian-classic", "--epsilon", "2", "--delta", "1e-5"], "proved for ε ≤ 1 only"),
        (["lapace", "--epsilon", "1"], "did you mean 'laplace'?"),
        (["laplace", "--epsilon", "1", "--neighbours", "0", "3"], "distance of neighbours = 3.0"),
        (["laplace", "--epsilon", "1", "--neighbours", "0", "x"], "--neighbours = 'x': expected a value in JSON"),
        (["laplace", "--epsilon", "1", "--neighbours", "0", "none.json"], "No such file"),
        (["laplace", "--epsilon", "1", "--neighbours", "0", "[" * 30_000], "expected a value in JSON"),
        (["laplace", "--epsilon", "1", "--neighbours", "0", "9" * 5000], "expected a value in JSON"),
        (["laplace", "--epsilon", "1", "--score", "best"], "--score = 'best'"),
        (["mine:release", "--epsilon", "1", "--curve"], "--curve = 'mine:release'"),
        (["exponential", "--epsilon", "1", "--entries", "0"], "--entries = 0"),
        (["mine:release", "--epsilon", "1", "--sensitivity", "1", "--norm", "l9"], "--norm = 'l9'"),
    ],
)
def test_mistakes_end_in_one_line(here, arguments: list[str], message: str) -> None:
    shown = here("mechanism", *arguments, *QUIETLY)
    assert shown.returncode == 2
    assert shown.stdout == ""
    assert shown.stderr.count("\n") == 1
    assert message in shown.stderr


def test_a_file_that_is_no_text_is_no_value(here, place: Path) -> None:
    (place / "odd.json").write_bytes(b"\xff\xfe\xfa\x00")
    shown = here("mechanism", "laplace", "--epsilon", "1", "--neighbours", "0", "odd.json", *QUIETLY)
    assert shown.returncode == 2
    assert "--neighbours = 'odd.json': expected a value in JSON" in shown.stderr
