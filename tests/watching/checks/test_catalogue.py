"""Checks are a table to which packages may add, and none of them can spoil the others."""

from pathlib import Path

import pytest

from epsilometer.errors import InvalidInput
from epsilometer.watching.checks import catalogue
from epsilometer.watching.checks.catalogue import CHECKS, judge
from epsilometer.watching.checks.names import QUESTIONS
from epsilometer.watching.facts import Facts, Steps
from epsilometer.watching.watch import Watch

MODULE = """
from epsilometer.statements import Basis, Statement
from epsilometer.watching.checks.catalogue import NamedCheck
from epsilometer.watching.checks.check import failed

def never(facts):
    return failed("nothing", "something", "try again")

def broken(facts):
    raise RuntimeError("out of luck")

good = NamedCheck("never-right", "is it?", ((never, ("steps",)),), Statement.NOISE, Basis.COUNTEREXAMPLE)
bad = NamedCheck("broken", "is it?", ((broken, ("steps",)),), Statement.NOISE)
unknown = NamedCheck("unknown", "is it?", ((never, ("no-such-part",)),), Statement.NOISE)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "brought_checks.py").write_text(MODULE)
    info = tmp_path / "brought_checks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought_checks\nVersion: 1.0\n")
    points = {"never-right": "good", "broken": "bad", "unknown": "unknown", "sampler": "good"}
    lines = [f"{name} = brought_checks:{what}" for name, what in points.items()]
    (info / "entry_points.txt").write_text("[epsilometer.checks]\n" + "\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(catalogue, "_all", catalogue._all.__wrapped__)


def test_every_check_asks_something_and_has_one_place() -> None:
    assert set(CHECKS.own) == set(QUESTIONS)
    assert all(one.question.endswith("?") and one.answers for one in CHECKS.own.values())


@pytest.mark.usefixtures("package")
def test_checks_that_a_package_brings() -> None:
    facts = Facts(steps=Steps(3, 3))
    found = {one.name: (one.status.value, one.reason, one.basis.value) for one in judge(facts)}
    assert found["never-right"] == ("failed", "nothing; expected something; try again", "counterexample")
    assert found["broken"][:2] == ("not applicable", "could not be judged (RuntimeError: out of luck)")
    assert set(found) == {"never-right", "broken"}  # what asks for parts that nobody knows is left out
    assert any("'unknown'" in line for line in CHECKS.problems)
    assert any("'sampler'" in line for line in CHECKS.problems)  # our own wins
    Watch(ignore=["never-right", "sampler"], quiet=True)
    with pytest.raises(InvalidInput, match=r"ignore = 'never-wrong': .* did you mean 'never-right'"):
        Watch(ignore=["never-wrong"], quiet=True)
