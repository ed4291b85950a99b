"""No change of design moves a score or a plan's fingerprint: old run directories go on."""

import json

import numpy as np
import pytest
from game_scores import FILE, MODULE, cells, machine, module, played

from epsilometer.training import MODELS, register

KEPT = json.loads(FILE.read_text())
SPECS = dict(cells())
EVERY = 6  # in the usual run


@pytest.fixture(autouse=True)
def _known_module() -> None:
    if MODULE not in MODELS:
        register(MODULE, module)


def test_every_cell_is_kept() -> None:
    assert SPECS.keys() == KEPT["cells"].keys()


@pytest.mark.parametrize(
    "name", [name if i % EVERY == 0 else pytest.param(name, marks=pytest.mark.full) for i, name in enumerate(SPECS)]
)
def test_scores_and_fingerprints_stay(name: str) -> None:
    kept, found = KEPT["cells"][name], played(SPECS[name])
    if KEPT["machine"] == machine():
        assert found == kept
        return
    # Another processor or library: its last bits differ, and nothing else may.
    assert found.get("refused") == kept.get("refused")
    assert found.get("plan") == kept.get("plan")
    assert found.get("scores", {}).keys() == kept.get("scores", {}).keys()
    for trial, scores in kept.get("scores", {}).items():
        ours = [float.fromhex(score) for score in found["scores"][trial]]
        np.testing.assert_allclose(ours, [float.fromhex(score) for score in scores], rtol=1e-3, atol=1e-4)
