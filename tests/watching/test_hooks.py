"""What is loaded into a watched script: numpy, its framework, and of ours what collects and records."""

import subprocess
import sys

import pytest

HEAVY = ("scipy", "sklearn", "matplotlib", "dp_accounting", "pydantic", "rich", "typer", "numba")
OURS = ("arrays", "deprecated", "errors", "noise_sample", "validate", "watching")


@pytest.mark.parametrize(
    ("framework", "hooks"),
    [
        ("numpy, torch", "opacus.attach"),
        ("numpy, jax, optax", "jax.transformation"),
    ],
)
def test_hooks_load_numpy_and_the_framework_only(framework: str, hooks: str) -> None:
    code = (
        f"import sys\nimport {framework}\nbefore = set(sys.modules)\n"
        f"import epsilometer.watching.launch.inside, epsilometer.watching.frameworks.{hooks}\n"
        "new = set(sys.modules) - before\n"
        f"heavy = [name for name in new if name.partition('.')[0] in {HEAVY!r}]\n"
        "ours = {name.split('.')[1] for name in new if name.startswith('epsilometer.')}\n"
        f"judging = [name for name in new if name.startswith(('epsilometer.watching.checks.', 'epsilometer.bounds'))]\n"
        f"assert not heavy and not judging and ours <= set({OURS!r}), (heavy, judging, ours)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert shown.returncode == 0, shown.stderr


def test_a_command_is_started_before_anything_heavy_is_loaded() -> None:
    text = (
        "import sys, epsilometer.watching.launch.run, epsilometer.watching.replay.runs; "
        "print(sorted({'torch', 'scipy.special', 'scipy.stats', 'dp_accounting'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout == "[]\n"
