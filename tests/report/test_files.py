"""What a run directory shows is what its store holds: whoever edits a result finds it put aside, not blessed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from epsilometer.auditing import AuditResult, run, spec_from_dict
from epsilometer.errors import InvalidInput
from epsilometer.report import write_results
from epsilometer.runs import run_directory

PLAN = spec_from_dict({"training": {"steps": 3}, "audit": {"trials": 25}}).plan()


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return run(PLAN)


@pytest.fixture
def out(tmp_path: Path, result: AuditResult) -> Path:
    assert [path.name for path in write_results(tmp_path, result).paths] == ["result.json", "scores.csv", "report.html"]
    return tmp_path


def edited(name: str, change: Callable[[dict], object]) -> Callable[[Path], Path]:
    def edit(out: Path) -> Path:
        document = json.loads((out / name).read_bytes())
        change(document)
        (out / name).write_text(json.dumps(document, indent=2) + "\n")
        return out / name

    return edit


def written(name: str, content: bytes) -> Callable[[Path], Path]:
    def write(out: Path) -> Path:
        (out / name).write_bytes(content)
        return out / name

    return write


def one_score_changed(out: Path) -> Path:
    path = out / "scores.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], "1,99.0"]) + "\n")
    return path


EDITS = {
    "verdict": edited("result.json", lambda document: document.update(verdict="approved")),
    "a number deep inside": edited("result.json", lambda document: document["lower_bound"].update(epsilon=3.0)),
    "another key": edited("result.json", lambda document: document.update(approved="yes")),
    "a key less": edited("result.json", lambda document: document.pop("power")),
    "no time": edited("result.json", lambda document: document.update(seconds="soon")),
    "no versions": edited("result.json", lambda document: document.update(versions=["1.0"])),
    "emptied": written("result.json", b""),
    "no JSON": written("result.json", b"consistent"),
    "not an object": written("result.json", b"[1, 2]"),
    "a score": one_score_changed,
    "no scores": written("scores.csv", b""),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edited_file_is_put_aside_and_written_again(out: Path, result: AuditResult, edit) -> None:
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    for number in (1, 2):  # whatever was put aside before stays
        path = edit(out)
        changed = path.read_bytes()
        found = write_results(out, result)
        assert found.paths == (path,)
        assert found.kept == (out / f"{path.stem}.edited-{number}{path.suffix}",)
        assert found.kept[0].read_bytes() == changed
        assert "\n" not in str(found)
        assert str(found.kept[0]) in str(found)
    assert {name: (out / name).read_bytes() for name in before} == before
    assert write_results(out, result).paths == ()


def test_another_time_and_other_versions_are_no_edits(out: Path, result: AuditResult) -> None:
    """Judging the same trials once more takes another time, maybe after an update."""
    edited("result.json", lambda document: document["versions"].update(numpy="1.0"))(out)
    before = (out / "result.json").read_bytes()
    found = write_results(out, replace(result, seconds=result.seconds + 1))
    assert [path.name for path in found.paths] == ["report.html"]  # which names the versions, and was ours
    assert found.kept == ()
    assert (out / "result.json").read_bytes() == before


def test_a_result_of_another_plan_is_refused(out: Path, result: AuditResult) -> None:
    edited("result.json", lambda document: document.update(plan_sha256="0" * 64))(out)
    before = (out / "result.json").read_bytes()
    with pytest.raises(InvalidInput, match=r"result\.json is of this plan"):
        write_results(out, result)
    assert (out / "result.json").read_bytes() == before


def test_a_run_with_an_emptied_result_goes_on(tmp_path: Path) -> None:
    for _ in range(2):
        with run_directory(tmp_path / "run", PLAN) as store:
            found = write_results(tmp_path / "run", run(PLAN, store=store))
        (tmp_path / "run" / "result.json").write_bytes(b"")
    assert [path.name for path in found.kept] == ["result.edited-1.json"]
