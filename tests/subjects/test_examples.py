"""The examples: short, audited from the command line, killed and continued, caught with half of the noise."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_digits

from epsilometer.accounting import DpSgd, curve
from epsilometer.adversaries import ClipBkd
from epsilometer.auditing import Plan
from epsilometer.data import own_data
from epsilometer.runs import SqliteStore
from epsilometer.subjects import CallableTraining

EXAMPLES = Path(__file__).parents[2] / "examples"
SAYS = {"torch_loop": (0.2, 2.0, 100), "opacus_training": (0.25, 2.0, 40), "private_estimator": (1.0, 1.0, 1)}


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = load_digits()
    path = tmp_path_factory.mktemp("data") / "digits.npz"
    np.savez(path, x=found.data / 16, y=found.target % 2)
    return path


def spec(place: Path, digits: Path, name: str, trials: int, noise: float) -> Path:
    rate, says, steps = SAYS[name]
    path = place / f"{name}.toml"
    path.write_text(
        f'[subject]\ntrain = "{EXAMPLES / name}.py:train"\narguments = {{noise = {noise * says}}}\n'
        f"sample_rate = {rate}\nnoise_multiplier = {says}\nsteps = {steps}\n[data]\n"
        f"path = {str(digits)!r}\n[audit]\ntrials = {trials}\n"
    )
    return path


def audit(place: Path, path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "epsilometer", "audit", str(path), "--quiet", "--json", *options]
    return subprocess.run(command, check=False, cwd=place, text=True, capture_output=True, timeout=600)


@pytest.mark.parametrize("name", SAYS)
def test_they_are_short(name: str) -> None:
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) <= 20


@pytest.mark.parametrize(
    ("name", "trials"),
    [
        pytest.param("torch_loop", 120, marks=pytest.mark.full),
        pytest.param("private_estimator", 1000, marks=pytest.mark.full),
        pytest.param("opacus_training", 200, marks=pytest.mark.full),
    ],
)
def test_half_of_the_noise_is_caught_after_a_kill(tmp_path: Path, digits: Path, name: str, trials: int) -> None:
    path = spec(tmp_path, digits, name, trials, noise=0.5)
    command = [sys.executable, "-m", "epsilometer", "audit", str(path), "--quiet", "--json", "--out", "run"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + 300
    while stored(tmp_path) < trials // 3 and process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert 0 < stored(tmp_path) < 2 * trials
    shown = audit(tmp_path, path, "--out", "run", "--executor", "local")
    assert shown.returncode == 1, shown.stderr
    assert json.loads(shown.stdout)["verdict"] == "violated"


@pytest.mark.full
def test_opacus_plays(tmp_path: Path, digits: Path) -> None:
    path = spec(tmp_path, digits, "opacus_training", trials=5, noise=1.0)
    shown = audit(tmp_path, path, "--executor", "local")
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr == ""


@pytest.mark.parametrize("audits", [60, pytest.param(200, marks=pytest.mark.full)])
def test_the_right_noise_is_not_accused(digits: Path, tmp_path: Path, audits: int) -> None:
    """The fastest example, up to 200 audits: no more than α of them refute its curve; with half the noise, most do.

    Sums of few records have as much noise, and the audited record as much of an effect, as those of many.
    """
    with np.load(digits) as whole:
        np.savez(tmp_path / "few.npz", x=whole["x"][:200], y=whole["y"][:200])
    data, claim = own_data(tmp_path / "few.npz"), curve(DpSgd(*SAYS["private_estimator"]))
    loaded = importlib.util.spec_from_file_location("private_estimator", EXAMPLES / "private_estimator.py")
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)
    trials = [(world, index) for index in range(60) for world in (0, 1)]

    def refuted(noise: float, seed: int) -> bool:
        subject = CallableTraining(lambda data, seed: module.train(data, seed, noise), data)
        plan = Plan(subject, claim, 1e-5, ClipBkd(), trials=60, seed=seed)
        results = dict(zip(trials, plan.play(prepared, trials), strict=True))
        method = replace(plan.planned_method, seed=0)  # what it simulates is then simulated once for all
        return method.test(plan.evidence(results, 60), claim).refuted

    prepared = Plan(CallableTraining(lambda d, s: module.train(d, s, 1.0), data), claim, 1e-5, ClipBkd()).prepare()
    accused = sum(refuted(1.0, seed) for seed in range(audits))
    assert stats.binomtest(accused, audits, 0.05, alternative="greater").pvalue > 1e-3
    assert sum(refuted(0.5, seed) for seed in range(20)) >= 6


def stored(place: Path) -> int:
    path = place / "run" / "trials.sqlite"
    if not path.exists() or path.stat().st_size == 0:
        return 0
    with SqliteStore.reading(path) as store:
        return sum(run.trials for run in store.runs() if not run.is_part)
