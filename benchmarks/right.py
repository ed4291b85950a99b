"""How often right scripts are accused: four of the held-out ones, each with many seeds, one after another in a process.

`python benchmarks/right.py --seeds 100` prints verdicts by script. α of each is .05; canaries, noise, batches and all
checks are looked at as by `epsilometer watch`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import runpy
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import torch

from epsilometer.watching.frameworks.opacus import spending
from epsilometer.watching.frameworks.opacus.attach import watch_engine
from epsilometer.watching.monitor import Monitor
from epsilometer.watching.settings import Settings
from epsilometer.watching.training import Trainings

PLACE = Path(__file__).parents[1] / "tests" / "watching" / "heldout" / "right"
SCRIPTS = ("01_tutorial_sgd", "04_ghost_cnn", "06_batch_memory_manager", "09_dropout_mlp")


def verdict(script: str, seed: int) -> str:
    """Of this script's training, whose own seeds are others."""
    import opacus.privacy_engine as engine_module

    monitor, engine, manual_seed = Monitor(), engine_module.PrivacyEngine, torch.manual_seed
    trainings = Trainings(monitor, Settings(seed=seed))
    make_private, with_epsilon = engine.make_private, engine.make_private_with_epsilon
    watch_engine(engine, trainings)
    spending._ALL.clear()  # each as if it were the first of its process
    torch.manual_seed = lambda own: manual_seed(int(own) + 1000 * (seed + 1))
    arguments, sys.argv = sys.argv, [script]
    manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (the script's)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runpy.run_path(str(PLACE / f"{script}.py"), run_name="__main__")
            trainings.finish()
    finally:
        engine.make_private, engine.make_private_with_epsilon = make_private, with_epsilon
        torch.manual_seed, sys.argv = manual_seed, arguments
    return max((one.verdict().outcome.value for one in monitor), default="nothing")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    options = parser.parse_args()
    print("| script | violated | inconclusive | consistent |\n|---|---|---|---|")
    for script in SCRIPTS:
        found = Counter(verdict(script, seed) for seed in range(options.seeds))
        print(f"| {script} |", *(f"{found[one]} |" for one in ("violated", "inconclusive", "consistent")), flush=True)


if __name__ == "__main__":
    main()
