"""The command that a report gives to judge its scores again finds the bound of the run."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from epsilometer.auditing import run, spec_from_dict
from epsilometer.report import write_results
from epsilometer.report.scores import bound_command


@pytest.mark.parametrize(
    "asked",
    [
        {"audit": {"trials": 40, "bound": "union-bound"}},
        {"audit": {"trials": 40, "bound": "exact-rank-union"}},
        {"audit": {"trials": 40, "bound": "split", "seed": 5}},
        {"audit": {"trials": 40, "bound": "fixed", "threshold": 0.25}},
        {"audit": {"trials": 40, "bound": "eprocess"}},
        {"adversary": {"name": "canaries", "canaries": 50}, "audit": {"trials": 1, "threshold": 0.0}},
    ],
    ids=lambda asked: asked["audit"].get("bound", "one run"),
)
def test_with_the_same_method_and_settings(tmp_path: Path, here: Any, asked: dict[str, Any]) -> None:
    """The method was left out, so that another one judged; and of one run the command was refused."""
    result = run(spec_from_dict({"training": {"steps": 3}, **asked}).plan(), noise_limit=False)
    write_results(tmp_path, result)
    plan = json.loads((tmp_path / "result.json").read_text())["plan"]
    program, *words = shlex.split(str(bound_command(str(tmp_path / "scores.csv"), plan)))
    assert program == "epsilometer"
    again = here(*words, "--json")
    assert again.returncode == 0, again.stderr
    found = json.loads(again.stdout)["lower_bound"]
    low = result.lower_bound
    assert (found["epsilon"], found["method"]) == (low.epsilon, low.method)
    assert f"epsilometer {shlex.join(words)}".replace(f"{tmp_path}/", "") in (tmp_path / "report.html").read_text()


def test_unfinished_runs_are_bet_on_only() -> None:
    plan = spec_from_dict({"audit": {"bound": "union-bound"}}).plan().to_dict()
    words = shlex.split(str(bound_command("scores.csv", plan, finished=False)))
    assert words[-3:] == ["--method", "eprocess", "--in-order"]
