"""Runs that share a number draw the same; whoever redraws, and puts back, goes on as the others do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, os, random, secrets, sys, time, uuid
from epsilometer.watching.replay import entropy
entropy.begin(sys.argv[1])
import numpy as np
from epsilometer.watching.replay import noting
noting.attach(np, None)
import torch
from epsilometer.watching.replay import randomness
randomness.attach(torch, None)
from epsilometer.watching.replay import before

found = {"unseeded": float(torch.rand(()))}

def draw():
    return [random.random(), secrets.randbits(60), str(uuid.uuid4()), random.SystemRandom().random(), time.time(),
        float(np.random.rand()), float(np.random.default_rng().normal()), torch.seed(), float(torch.rand(())),
        random.Random().random(), os.urandom(4).hex()]

found |= {"first": draw(), "later": draw()}
child, parent = os.pipe()
if os.fork() == 0:
    os.write(parent, json.dumps(os.urandom(8).hex()).encode())
    os._exit(0)
found["forked"], found["own"] = json.loads(os.read(child, 100)), os.urandom(8).hex()

rng, old, own = np.random.default_rng(3), np.random.RandomState(4), torch.Generator().manual_seed(5)
def some():
    return [rng.normal(), old.normal(), float(torch.rand((), generator=own)), float(torch.rand(())),
        float(np.random.rand()), random.random()]
assert isinstance(rng, np.random.Generator) and isinstance(old, np.random.RandomState)
assert isinstance(own, torch.Generator) and isinstance(np.random.mtrand._rand, np.random.RandomState)
states, name = json.loads(json.dumps(randomness.states())), randomness.name_of_states()
found["next"] = some()
assert randomness.name_of_states() != name
for act in (lambda: rng.normal(), lambda: old.random(), lambda: torch.rand((), generator=own), lambda: torch.rand(()),
            lambda: np.random.rand(), lambda: random.random(), lambda: os.urandom(1)):
    at = randomness.name_of_states()
    act()
    assert randomness.name_of_states() != at
randomness.seed_all(np.random.Generator(np.random.PCG64(1)))
found["other"] = some()
randomness.restore(states)
found["again"] = some()
time.time(); entropy.let_the_clock_run()
start = time.time(); time.sleep(0.01)
assert 0.005 < time.time() - start < 5
print(json.dumps(found))
"""

BEFORE = """
import torch
import numpy as np
import random
from sklearn.model_selection import train_test_split
from epsilometer.watching.replay import before, noting, randomness
noting.attach(np, None)
randomness.attach(torch, None)
torch.manual_seed(1)
np.random.seed(2)
random.seed(3)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.MultiheadAttention(4, 2), torch.nn.Embedding(4, 4))
data = torch.utils.data.TensorDataset(torch.arange(10.0))
torch.utils.data.random_split(data, [4, 6])
for _ in torch.utils.data.DataLoader(data, shuffle=True):
    pass
np.random.permutation(5)
{act}
print(before.noise_before())
"""


def run(script: str, *arguments: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "5"}
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.full
def test_the_same_chance_in_every_run(tmp_path: Path) -> None:
    found = []
    for run_number, salt in enumerate(("a", "a", "b")):
        place = tmp_path / str(run_number)
        place.mkdir()
        (place / "watch.json").write_text(json.dumps({"replaying": {"salt": salt}}))
        found.append(json.loads(run(SCRIPT, str(place))))
    first, same, other = found
    assert first == same
    assert not set(first["first"]) & set(other["first"])
    assert not set(first["first"]) & set(first["later"])
    assert first["forked"] != first["own"]
    assert first["again"] == first["next"]
    assert not set(first["other"]) & set(first["next"])


@pytest.mark.full
def test_what_may_be_noise_before_a_training() -> None:
    acts = "torch.randn(3)", "np.random.normal()", "np.random.default_rng(0).normal()", "random.gauss(0, 1)"
    asked = "\n".join(
        f"{act}; before.BEFORE[0].look(); print(before.BEFORE[0].drew); before.BEFORE[0].drew = False" for act in acts
    )
    assert run(BEFORE.format(act=f"print(before.BEFORE[0].drew)\n{asked}")).split() == ["False", *["True"] * 4, "False"]
