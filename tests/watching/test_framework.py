"""A framework that an installed package brings is watched too, wherever the script finds that package or not."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from epsilometer.watching.framework import FRAMEWORKS, Framework

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
SCRIPT = """
import sys
import numpy as np
import tinydp

rng = np.random.default_rng(1)
for _ in range(30):
    tinydp.private_sum(rng.normal(size=(50, 4)), 1.0, 1.4, rng)
print(rng.random(), "watch_tinydp" in sys.modules and sys.modules["watch_tinydp"].__file__)
"""
WITHOUT_PATH = 'PYTHONPATH="${PYTHONPATH%%:*}" exec "$0" "$@"'  # only the hook's directory


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The page's library beside a script, and what watches it in a package of its own."""
    blocks = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    own, library = tmp_path / "installed", tmp_path / "work"
    info = own / "watch_tinydp-1.0.dist-info"
    info.mkdir(parents=True)
    library.mkdir()
    for name, text in blocks:
        if "tinydp" in name:
            (library if name == "tinydp.py" else own).joinpath(name).write_text(text)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: watch_tinydp\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[epsilometer.frameworks]\ntinydp = watch_tinydp:framework\n")
    (library / "train.py").write_text(SCRIPT)
    return own


def watch(package: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
    words = [
        sys.executable,
        "-m",
        "epsilometer",
        "watch",
        "--seed",
        "1",
        "--require",
        "consistent",
        "--assume",
        "sampling",
        "--assume",
        "accounting",
        "--",
        *command,
    ]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment, timeout=120)


@pytest.mark.parametrize("within", [[], ["sh", "-c", WITHOUT_PATH]], ids=["with the package", "without it"])
def test_a_framework_of_an_installed_package(package: Path, within: list[str]) -> None:
    command = [*within, sys.executable, str(package.parent / "work" / "train.py")]
    seen = watch(package, command)
    assert seen.returncode == 0, seen.stderr
    assert "epsilometer: training 1: held: clipping, noise; assumed: sampling, accounting" in seen.stderr
    assert "consistent: held: clipping, noise; assumed by whoever runs the audit: sampling, accounting" in seen.stderr
    drawn, file = seen.stdout.split()
    assert file == str(package / "watch_tinydp.py")
    plain = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": ""})
    assert plain.stdout.split() == [drawn, "False"]  # the same random numbers


def test_a_framework_that_cannot_be_used_is_said_and_spoils_nothing(package: Path) -> None:
    (package / "watch_tinydp.py").write_text("import no_such_module\n")
    seen = watch(package, [sys.executable, str(package.parent / "work" / "train.py")])
    assert seen.returncode == 4
    assert "framework = 'tinydp'" in seen.stderr
    assert "no_such_module" in seen.stderr
    assert seen.stdout.endswith("False\n")


def test_an_attach_that_fails_is_not_audited_and_the_script_goes_on(package: Path) -> None:
    file = package / "watch_tinydp.py"
    file.write_text(file.read_text().replace("    original, under_way", "    1 / 0\n    original, under_way"))
    seen = watch(package, [sys.executable, str(package.parent / "work" / "train.py")])
    assert seen.returncode == 4
    assert "not audited, because the hook failed (ZeroDivisionError" in seen.stderr
    assert seen.stdout.strip()


def test_versions_that_nobody_tried_are_told() -> None:
    opacus = FRAMEWORKS["opacus"]
    assert [opacus.remark("opacus", one) for one in ("1.0", "1.0.2", "1.5.4", "1.6.0", "", "main")] == [""] * 5 + [
        "opacus main is watched as versions 1.0 to 1.6 are, but was not tried"
    ]
    assert opacus.remark("opacus", "0.15.0")
    assert opacus.remark("opacus", "1.7.0")
    assert Framework("own", ("own",), "own:attach", "own.step").remark("own", "7") == ""
    assert FRAMEWORKS["jax"].libraries == ("optax", "jax_privacy")
