"""The fixture `assert_private`, in pytest processes of their own that find it by its entry point."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, on a machine where this version is installed, whatever else is."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    info = tmp_path / "site" / "installed-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: installed\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[pytest11]\n" + "".join(f"{n} = {p}\n" for n, p in points.items()))
    known = os.environ.get("PYTHONPATH")
    path = [str(tmp_path / "site"), str(ROOT / "src"), *([known] if known else [])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def pytest_in(place: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments]
    shown = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, timeout=300)
    return shown.returncode, shown.stdout + shown.stderr


def properties(path: Path) -> dict[str, dict[str, str]]:
    cases = ElementTree.parse(path).iter("testcase")
    return {
        case.get("name", ""): {one.get("name", ""): one.get("value", "") for one in case.iter("property")}
        for case in cases
    }


def test_the_example_project_passes_fails_and_warns(place: Path) -> None:
    shutil.copytree(ROOT / "examples" / "ci", place, dirs_exist_ok=True)
    code, shown = pytest_in(place, "--junitxml", "report.xml")
    assert code == 1
    assert "1 failed, 2 passed, 1 warning" in shown
    assert "FAILED test_private.py::test_half_of_the_noise_is_caught" in shown
    for part in (
        "NotPrivate: violated: its trade-off curve is refuted with 95 % confidence: p ≤",
        "claim          ε = 4.377 at δ = 1e-05",
        "0.95 confidence",
        "TP 164, FP 47, FN 36, TN 153",
        "again          pytest test_private.py::test_half_of_the_noise_is_caught --epsilometer-trials 200",
        "again          epsilometer.audit(mechanism.train, data=…, claim=DpSgd(",
        "trials=200, confidence=0.95, seed=0",
        "InconclusiveAudit: inconclusive: no violation found",
    ):
        assert part in shown
    assert "epsilometer/" not in shown.split("warnings summary")[0]  # no lines of ours between the test and its failure
    kept = properties(place / "report.xml")
    expected = {"keeps_its_promise": "consistent", "half_of_the_noise": "violated", "too_few_trials": "inconclusive"}
    for name, verdict in expected.items():
        (found,) = [values for test, values in kept.items() if name in test]
        assert found["epsilometer.verdict"] == verdict
        assert found["epsilometer.confidence"] == "0.95"
        assert float(found["epsilometer.epsilon_claimed"]) == pytest.approx(4.4, abs=0.03)
        assert 0 <= float(found["epsilometer.epsilon_lower"]) < 4.4
        assert int(found["epsilometer.trials"]) in (1000, 200, 30)


MORE = """
import random
import warnings
from pathlib import Path

import numpy as np
import pytest
from epsilometer.errors import InconclusiveAudit, InvalidInput
from epsilometer.testing import NotPrivate

x, y = np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 2
np.savez(Path(__file__).parent / "d.npz", x=x, y=y)


def train(data, seed, noise=1.0):
    print("every time")
    warnings.warn("every time")
    sums = np.stack([data.x[data.y == label].sum(axis=0) for label in (0, 1)])
    sums += noise * np.random.default_rng(seed).normal(size=sums.shape)

    def predict(points):
        warnings.warn("every time")
        return points @ sums.T

    return predict


def test_by_name_and_with_a_file(assert_private):
    for name in ("test_more:train", "test_more.py:train", Path("test_more.py:train")):
        with pytest.raises(NotPrivate, match="violated") as caught:
            assert_private(name, data="d.npz", epsilon=1.0, delta=1e-5, trials=30, arguments={"noise": 0.001})
    assert "'test_more.py:train', data=" in str(caught.value)


def test_strict(assert_private):
    with pytest.raises(NotPrivate, match="inconclusive: "):
        assert_private(train, data=(x, y), epsilon=1.0, trials=20, strict=True)


def test_generators_are_left_as_they_were(assert_private):
    random.seed(1), np.random.seed(2)
    with pytest.warns(InconclusiveAudit):
        result = assert_private(train, data=(x, y), epsilon=1.0, trials=20)
    drawn = random.random(), np.random.random()
    random.seed(1), np.random.seed(2)
    assert drawn == (random.random(), np.random.random())
    assert result.plan.seed == 0


def test_several_audits(assert_private, request):
    with pytest.warns(InconclusiveAudit):
        for seed in (5, 6):
            assert_private(train, data=(x, y), epsilon=1.0, trials=20, seed=seed)
    assert ("epsilometer.2.seed", 6) in request.node.user_properties


def test_no_time(assert_private, request):
    with pytest.warns(InconclusiveAudit, match="budget_seconds = 1e-06"):
        assert assert_private(train, data=(x, y), epsilon=1.0, budget_seconds=1e-6) is None
    assert ("epsilometer.verdict", "inconclusive") in request.node.user_properties


@pytest.mark.parametrize(
    ("what", "settings", "expected"),
    [
        ("train.py", {"epsilon": 1.0}, "did you mean train.py:train"),
        ("train", {"epsilon": 1.0}, "train_or_script = 'train': expected mymodule:train"),
        (train, {}, "epsilon is missing: expected an ε, or a claim in its place"),
        (train, {"epsilon": 1.0, "claim": (1.0, 0.0)}, "an ε, or a claim in its place"),
        (train, {"epsilon": 1.0, "adversary": "nobody"}, "adversary = 'nobody'"),
        (train, {"epsilon": 1.0, "isolation": "jail"}, "isolation = 'jail'"),
        (train, {"epsilon": -1.0}, "epsilon = -1.0"),
        (3, {"epsilon": 1.0}, "train = 3: expected a function"),
    ],
)
def test_mistakes(assert_private, what, settings, expected):
    with pytest.raises(InvalidInput) as caught:
        assert_private(what, data=(x, y), **settings)
    assert expected in str(caught.value)
"""


def test_the_fixture_by_itself(place: Path) -> None:
    (place / "test_more.py").write_text(MORE)
    (place / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\njunit_family = xunit2\n")
    code, shown = pytest_in(place, "-q", "--junitxml", "report.xml")
    assert code == 0, shown
    assert "13 passed" in shown
    assert "every time" not in shown


ONE = """
import numpy as np

def test_one(assert_private):
    def train(data, seed):
        sums = np.stack([data.x[data.y == label].sum(axis=0) for label in (0, 1)])
        sums += np.random.default_rng(seed).normal(size=sums.shape)
        return lambda points: points @ sums.T

    x, y = np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 2
    assert_private(train, data=(x, y), epsilon=4.0, delta=1e-5, budget_seconds=1e-6)
"""


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["--epsilometer-strict", "--epsilometer-trials", "23"], 1, "NotPrivate: inconclusive"),
        (["-W", "error::epsilometer.errors.InconclusiveAudit"], 1, "InconclusiveAudit: inconclusive: budget_seconds"),
        (["--epsilometer-trials", "none"], 4, "'none': expected a whole number, at least 1"),
        (["-p", "no:epsilometer"], 1, "fixture 'assert_private' not found"),
    ],
    ids=["trials", "filter", "mistake", "blocked"],
)
def test_options(place: Path, arguments: list[str], code: int, part: str) -> None:
    (place / "test_one.py").write_text(ONE)
    found, shown = pytest_in(place, *arguments)
    assert part in shown
    assert found == code
    assert ("23 without and 23 with the canary" in shown) == ("23" in arguments)


def test_whoever_does_not_ask_for_it_waits_for_nothing(place: Path) -> None:
    """Every run of pytest loads the plugin: no module of weight may come with it."""
    (place / "test_plain.py").write_text(
        "import sys\n"
        "def test_plain(request):\n"
        "    assert request.config.pluginmanager.has_plugin('epsilometer')\n"
        "    heavy = {'numpy', 'scipy', 'torch', 'numba', 'pydantic', 'typer', 'rich', 'sklearn', 'mlflow'}\n"
        "    assert not heavy & set(sys.modules)\n"
        "    ours = {name.partition('.')[2] for name in sys.modules if name.partition('.')[0] == 'epsilometer'}\n"
        "    assert ours == {'', 'deprecated', 'errors', 'pytest_plugin'}\n"
    )
    code, shown = pytest_in(place, "-W", "error")
    assert code == 0, shown
