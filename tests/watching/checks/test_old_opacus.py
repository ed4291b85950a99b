"""Faults of Opacus' own past, in the versions that have them.

They are looked for in directories made by `pip install --no-deps --target DIRECTORY/opacus-1.5.2 opacus==1.5.2` (and so
on), and `EPSILOMETER_OLD_OPACUS=DIRECTORY` says where.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = os.environ.get("EPSILOMETER_OLD_OPACUS", "")

TRAINING = """
import json, sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import opacus, torch
from conftest import trained
from test_right import Recurrent, sequences

assert opacus.__version__ == sys.argv[3], opacus.__version__

def loop(made, epochs):  # ghost clipping up to 1.5.2
    from opacus.utils.fast_gradient_clipping_utils import double_backward
    for _ in range(epochs):
        for x, y in made.loader:
            made.optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(made.module(x), y, reduction="none")
            double_backward(made.module, made.optimizer, loss)
            made.optimizer.step()

ghost = {"grad_sample_mode": "ghost"}
if sys.argv[3] == "1.5.2":
    ghost |= {"clipping": "ghost", "loop": loop}
options = {
    "plain": {"accountant": "rdp"},
    "ghost": ghost | {"max_grad_norm": 0.01},
    "sequences": ghost | {"max_grad_norm": 1.0, "model": Recurrent, "data": sequences()},
    "adaptive": {
        "clipping": "adaptive", "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2, "max_clipbound": 10.0,
        "min_clipbound": 0.01, "unclipped_num_std": 1.0,
    },
}[sys.argv[4]]
found = trained(**options)
print(json.dumps({name: [check.status.value, check.reason] for name, check in found.checks.items()}))
"""


@pytest.mark.skipif(not ROOT, reason="EPSILOMETER_OLD_OPACUS is not set: real old versions of Opacus are not tried")
@pytest.mark.parametrize(
    ("version", "training", "failing"),
    [
        ("1.1.3", "plain", set()),
        ("1.4.1", "plain", set()),
        ("1.5.2", "plain", set()),
        ("1.5.2", "ghost", {"ghost-clip-norm", "huge-record"}),  # PR 664
        ("1.5.3", "ghost", set()),
        ("1.5.3", "sequences", {"record-norms"}),  # PR 751
        ("1.5.4", "sequences", set()),
        ("1.5.4", "adaptive", {"multiplier"}),  # PR 807
    ],
)
def test_faults_of_old_versions(version: str, training: str, failing: set[str]) -> None:
    there = Path(ROOT) / f"opacus-{version}"
    assert there.is_dir(), f"pip install --no-deps --target {there} opacus=={version}"
    words = [sys.executable, "-c", TRAINING, str(there), str(Path(__file__).parent), version, training]
    shown = subprocess.run(words, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout.splitlines()[-1])
    assert {name for name, (status, _) in found.items() if status == "failed"} == failing | {"nonfinite-record"}
    assert not [reason for _, reason in found.values() if "could not be tried" in reason]
