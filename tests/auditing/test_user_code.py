"""Code of the user's own: whatever of it decides scores is part of the plan, and a changed game is never continued."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import make_dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from epsilometer.adversaries import Gradient
from epsilometer.auditing import Plan, run, spec_from_dict
from epsilometer.runs import MemoryStore, run_directory
from epsilometer.runs.replay import ROUNDING, ReplayDiffers
from epsilometer.subjects.user_code import NO_FILE, code_of
from epsilometer.training import ModuleNetwork

PLAN = spec_from_dict({"training": {"steps": 3}, "audit": {"trials": 25}}).plan()

PACKAGE = {
    "attack/__init__.py": "",
    "attack/base.py": "from epsilometer.adversaries import Gradient\nclass Base(Gradient):\n    bias = 1.0\n",
    "attack/watch.py": "from attack.deep import far\nclass Watcher:\n    def score(self): return far()\n",
    "attack/deep.py": "import scipy\ndef far(): return 1.0\n",
    "attack/unused.py": "x = 1\n",
    "helpers.py": "SCALE = 2.0\n",
    "attack/adversary.py": """
from dataclasses import dataclass
from .base import Base
from . import watch
LIMIT = 3.0
@dataclass(frozen=True)
class Mine(Base):
    name = "mine"
    @staticmethod
    def shift(): return 1.0
    @classmethod
    def scale(cls): return 2.0
    @property
    def size(self): return 3.0
    def late(self):
        import helpers
        return helpers.SCALE
""",
}


@contextmanager
def written(root: Path, changes: dict[str, str]) -> Iterator[Plan]:
    """A plan with the adversary of a package, as it is with some of its texts replaced."""
    for name, text in PACKAGE.items():
        for old, new in changes.items():
            text = text.replace(old, new)  # noqa: PLW2901
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    try:
        yield replace(PLAN, adversary=importlib.import_module("attack.adversary").Mine())
    finally:
        sys.path.remove(str(root))
        for name in [name for name in sys.modules if name.split(".")[0] in ("attack", "helpers")]:
            del sys.modules[name]


def fingerprint(root: Path, changes: dict[str, str]) -> str:
    with written(root, changes) as plan:
        return plan.fingerprint()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bias = 1.0", "bias = 1.5"),  # a base class
        ("return far()", "return -far()"),  # a watcher
        ("def far(): return 1.0", "def far(): return 1.5"),  # a helper of a helper
        ("LIMIT = 3.0", "LIMIT = 3.5"),  # a constant
        ("SCALE = 2.0", "SCALE = 2.5"),  # what is imported late
        ("def shift(): return 1.0", "def shift(): return 1.5"),
        ("def scale(cls): return 2.0", "def scale(cls): return 2.5"),
        ("def size(self): return 3.0", "def size(self): return 3.5"),
    ],
)
def test_a_change_anywhere_in_an_adversarys_code_is_another_plan(tmp_path: Path, old: str, new: str) -> None:
    assert fingerprint(tmp_path / "before", {}) != fingerprint(tmp_path / "after", {old: new})


def test_the_same_code_elsewhere_is_the_same_plan(tmp_path: Path) -> None:
    """As on another machine; and what is not imported does not matter."""
    assert fingerprint(tmp_path / "here", {}) == fingerprint(tmp_path / "there", {"x = 1": "x = 2"})
    with written(tmp_path / "again", {}) as plan:
        code = plan.to_dict()["adversary"]["class"]
    assert sorted(code["files"]) == sorted(set(PACKAGE) - {"attack/unused.py"})
    assert list(code["packages"]) == ["scipy"]


def test_code_without_a_file_is_said_to_be_so() -> None:
    hidden = make_dataclass("Hidden", [], bases=(Gradient,), frozen=True)
    assert replace(PLAN, adversary=hidden()).to_dict()["adversary"]["class"]["files"] == NO_FILE


def test_a_modules_gradients_are_part_of_its_plan(tmp_path: Path) -> None:
    """Two modules with the same layers and outputs; `detach` makes another training of one."""
    source = (
        "from torch import nn\n"
        "class Net(nn.Sequential):\n"
        "    def forward(self, x): return super().forward(x)\n"
        "def make(features, classes): return Net(nn.Linear(features, classes))\n"
    )
    seen = []
    for name, text in (("plain", source), ("detached", source.replace("forward(x)\n", "forward(x.detach())\n"))):
        root = tmp_path / name
        root.mkdir()
        (root / "own_net.py").write_text(text)
        sys.path.insert(0, str(root))
        try:
            factory = importlib.import_module("own_net").make
            seen.append((ModuleNetwork(factory, 5, 2).fingerprint(), code_of(factory)["files"]))
        finally:
            sys.path.remove(str(root))
            del sys.modules["own_net"]
    assert seen[0][0] == seen[1][0]
    assert seen[0][1] != seen[1][1]


def test_our_own_plans_keep_their_fingerprints() -> None:
    assert PLAN.to_dict()["adversary"] == {"name": "gradient", "coordinates": 20, "direction": "watermark"}
    assert "module_code" not in spec_from_dict({"model": {"name": "cnn"}}).plan().to_dict()["recipe"]


# -------------------------------------------------------------------------------------------------------- replay
def begun(change: float) -> MemoryStore:
    """A store with the first ten trials of each world, in which one score is off."""
    whole, store = MemoryStore(), MemoryStore()
    run(PLAN, store=whole)
    store.begin(PLAN)
    first = {trial: scores for trial, scores in whole.results(PLAN.fingerprint()).items() if trial[1] < 10}
    spread = float(np.std(np.concatenate(list(first.values()))))
    store.add(PLAN.fingerprint(), {**first, (1, 0): first[1, 0] + change * spread}, 0.0)
    return store


def test_a_stored_trial_that_has_another_score_now_stops_the_run() -> None:
    store = begun(change=10 * ROUNDING)
    with pytest.raises(ReplayDiffers, match=r"trial 0 of world 1, played again, .* there, .* now\); undo") as caught:
        run(PLAN, store=store)
    assert "\n" not in str(caught.value)
    assert store.runs()[0].trials == 20
    assert store.runs()[0].conclusion is None


def test_rounding_of_another_processor_is_told_and_accepted(caplog: pytest.LogCaptureFixture) -> None:
    run(PLAN, store=begun(change=0.1 * ROUNDING))
    (told,) = caplog.messages
    assert "trial 0 of world 1, played again, differs by rounding" in told


def test_the_same_game_goes_on_without_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    expected, store = run(PLAN), begun(change=0.0)
    assert run(PLAN, store=store).evidence.in_scores.tobytes() == expected.evidence.in_scores.tobytes()
    with run_directory(tmp_path / "finished", PLAN) as kept:
        kept.add(PLAN.fingerprint(), store.results(PLAN.fingerprint()), 0.0)
        run(PLAN, store=kept)
    assert caplog.messages == []
