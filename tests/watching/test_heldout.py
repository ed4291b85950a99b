"""Scripts of people who had not read the checks: faults with the statement that each breaks, and right ones.

`expected.json` was written before any detector ran, and is not changed for one. The first set was looked at while
checks were made; each other was written after the one before, and what was found of it at first sight is in
docs/watch.md.
`python tests/watching/test_heldout.py` prints what is found of each.
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PLACE = Path(__file__).parent / "heldout"
SETS = ("", "second/", "third/")
LEAST_FOUND = 0.9  # with the right statement


@dataclass(frozen=True)
class Found:
    """What a watch of one script says: the worst of its trainings."""

    name: str
    expected: tuple[str, ...]  # statements, one of which is broken; none of a right script
    verdict: str
    broken: tuple[str, ...]
    reason: str

    @property
    def right(self) -> bool:
        if not self.expected:
            return self.verdict != "violated"
        return self.verdict == "violated" and bool(set(self.broken) & set(self.expected))

    def __str__(self) -> str:
        mark = "    " if self.right else "!!! "
        expected = "/".join(self.expected) or "right"
        return f"{mark}{self.name}\t{expected}\t{self.verdict}\t{'/'.join(self.broken)}\t{self.reason}"


def scripts() -> list[dict[str, Any]]:
    """Those of which it was decided beforehand that the run takes the path of the fault."""
    listed: list[dict[str, Any]] = [
        {**one, "file": f"{each}{one['file']}"}
        for each in SETS
        for one in json.loads((PLACE / each / "expected.json").read_text())
    ]
    return [one for one in listed if one.get("path_taken", True)]


def look(one: dict[str, Any], *options: str) -> Found:
    said = one.get("statement") or []
    expected = (said,) if isinstance(said, str) else tuple(said)
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "audit"
        words = [sys.executable, "-m", "epsilometer", "watch", "--seed", "1", "--out", str(out), *options]
        command = [*words, "--", sys.executable, "-W", "ignore", str(PLACE / one["file"])]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=place, env=environment, timeout=600, check=False
        )
        if not (out / "result.json").exists():
            return Found(one["file"], expected, "nothing", (), done.stderr[-300:])
        trainings = json.loads((out / "result.json").read_text())["trainings"]
    order = ("violated", "inconclusive", "consistent")
    worst = min(trainings, key=lambda training: order.index(training["verdict"]), default=None)
    if worst is None:
        return Found(one["file"], expected, "nothing", (), done.stderr[-300:])
    rows = [row for training in trainings for row in training["statements"]]
    broken = tuple(dict.fromkeys(row["statement"] for row in rows if row["standing"] == "broken"))
    return Found(one["file"], expected, worst["verdict"], broken, worst["reason"])


def look_at_all(*options: str, only: str = "") -> list[Found]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda one: look(one, *options), [one for one in scripts() if only in one["file"]]))


@pytest.mark.full
def test_faults_are_named_and_right_scripts_are_not_accused() -> None:
    found = look_at_all("--neighbours", "2")
    faults = [one for one in found if one.expected]
    assert len(faults) >= 25
    assert len(found) - len(faults) >= 20
    assert sum(one.right for one in faults) >= LEAST_FOUND * len(faults), "\n".join(map(str, faults))
    assert all(one.right for one in found if not one.expected), "\n".join(map(str, found))
    untold = [one for one in found if one.verdict == "inconclusive" and "next: " not in one.reason]
    assert not untold, "\n".join(map(str, untold))


if __name__ == "__main__":
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    results = look_at_all(*sys.argv[2:], only=only)
    print("\n".join(map(str, results)))
    for what, some in (
        ("faults", [one for one in results if one.expected]),
        ("right", [one for one in results if not one.expected]),
    ):
        print(f"{what}: {sum(one.right for one in some)} of {len(some)} as expected")
