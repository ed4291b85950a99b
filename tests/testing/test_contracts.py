"""The contracts hold for our own adversaries and methods, and find what they are for; packages bring others."""

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from epsilometer.adversaries import ADVERSARIES, Api, Canaries, ClipBkd, Game, GradientSteps, MembershipAttack
from epsilometer.bounds import METHODS, BestOnSame, ClopperPearson, ExactRank, method_named
from epsilometer.subjects import Insertion
from epsilometer.testing import check_adversary, check_method

SMALL = {"canaries": Canaries(9), "membership": MembershipAttack(9), "gradient-steps": GradientSteps(4)}
SLOW = ("static-poison", "intermediate", "adaptive-poison", "worst-case-init", "backdoor", "learned")


@pytest.mark.parametrize("name", [name for name in ADVERSARIES if name not in SLOW])
def test_our_adversaries_keep_to_the_contract(name: str) -> None:
    adversary = SMALL.get(name) or ADVERSARIES[name]()
    relations = ["add-remove"] if name in ("canaries", "membership") else ["add-remove", "replace"]
    check_adversary(adversary, relations=relations)


JUDGES = [name for name, one in METHODS.items() if one.judges and name not in ("fixed", "best-on-same", "eprocess")]


@pytest.mark.parametrize("name", JUDGES)
def test_our_methods_keep_to_the_contract(name: str) -> None:
    check_method(method_named(name))


STATE = [0]


@dataclass(frozen=True)
class KeepsState(Api):
    def craft(self, subject, relation, prepared) -> Game:
        game = super().craft(subject, relation, prepared)

        def observe():
            STATE[0] += 1
            observer, times = game.observe(), STATE[0]
            plain = observer.score
            observer.score = lambda: plain() + times
            return observer

        return replace(game, observe=observe)


@dataclass(frozen=True)
class TwoRecords(Api):
    """Says one record, and takes away two."""

    def craft(self, subject, relation, prepared) -> Game:
        game = super().craft(subject, relation, prepared)

        def insert(world: int, seed: np.random.SeedSequence) -> Insertion:
            found = game.insert(world, seed)
            return found if world else replace(found, whole=found.data.without(0))

        return replace(game, insert=insert)


@dataclass(frozen=True)
class SaysTwo(ClipBkd):
    @property
    def group_size(self) -> int:
        return 2


@pytest.mark.parametrize(
    ("adversary", "words"),
    [(KeepsState(), "another score"), (TwoRecords(), "2 records more"), (SaysTwo(), "group_size")],
)
def test_what_would_spoil_an_audit_is_found(adversary, words: str) -> None:
    with pytest.raises(Exception, match=words):
        check_adversary(adversary)


def test_a_rule_that_pays_for_nothing_is_found() -> None:
    class Naive(ExactRank):
        def test(self, evidence, claim, *, confidence=0.95, direction="higher"):
            return ClopperPearson(BestOnSame()).test(evidence, claim, confidence=0.5, direction=direction)

    with pytest.raises(AssertionError):
        check_method(Naive())


def test_packages_bring_adversaries_and_methods(tmp_path: Path) -> None:
    """Registered by entry point, named in a spec."""
    (tmp_path / "brought.py").write_text(
        "from dataclasses import dataclass\nfrom typing import ClassVar\n\n"
        "from epsilometer.adversaries import Api\nfrom epsilometer.bounds import ExactRank\n\n\n"
        "@dataclass(frozen=True)\nclass Quiet(Api):\n    name: ClassVar[str] = 'quiet'\n\n\n"
        "def make(seed):\n    return ExactRank(rank=2, seed=seed)\n"
    )
    info = tmp_path / "brought-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[epsilometer.adversaries]\nquiet = brought:Quiet\nbroken = brought:nothing\n"
        "[epsilometer.methods]\nsecond-rank = brought:make\n"
    )
    code = "import sys; sys.path.insert(0, '.'); from epsilometer.cli.app import run; sys.exit(run())"
    spec = '[training]\nsteps = 3\n[adversary]\nname = "{}"\n[audit]\nbound = "{}"\ntrials = 20\n'

    def audited(adversary: str, bound: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "spec.toml").write_text(spec.format(adversary, bound))
        command = [sys.executable, "-c", code, "audit", "spec.toml", "--json", "--quiet"]
        return subprocess.run(command, check=False, cwd=tmp_path, text=True, capture_output=True, timeout=120)

    shown = audited("quiet", "second-rank")
    assert shown.returncode == 0, shown.stderr
    plan = json.loads(shown.stdout)["plan"]
    assert plan["adversary"]["name"] == "quiet"
    assert "brought.py" in plan["adversary"]["class"]["files"]
    assert plan["method"]["rank"] == 2
    for adversary, bound, words in (("broken", "second-rank", "package that can be imported"),
                                    ("quiet", "third-rank", "one-run-point, second-rank, simultaneous")):  # fmt: skip
        refused = audited(adversary, bound)
        assert refused.returncode == 2
        assert words in refused.stderr
