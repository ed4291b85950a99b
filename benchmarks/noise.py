"""When the law of the noise refutes a training: the tutorial script with Opacus, whose noise is scaled where it is
drawn, and simulated noise of 200 coordinates; and how often right noise is accused."""

from __future__ import annotations

import argparse
import contextlib
import io
import runpy
import sys
from pathlib import Path

import numpy as np
import torch

from epsilometer.bounds import NoiseLaw
from epsilometer.noise_sample import NoiseSample
from epsilometer.watching.levels import Levels
from epsilometer.watching.monitor import Monitor
from epsilometer.watching.settings import Settings
from epsilometer.watching.training import Trainings

SCRIPT = Path(__file__).parents[1] / "examples" / "tutorial" / "train.py"
FACTORS = (0.5, 0.8, 0.9, 0.95, 0.98)


def tutorial(seed: int, factor: float, epochs: int) -> float:
    """The step at which the law is refuted, at its share of the level of a verdict; infinite if it is not."""
    import opacus.privacy_engine as engine_module
    from opacus.optimizers import optimizer as inner

    from epsilometer.watching.frameworks.opacus.attach import watch_engine

    monitor, engine, arguments = Monitor(), engine_module.PrivacyEngine, sys.argv
    trainings = Trainings(monitor, Settings(canaries=0))
    make_private, draw = engine.make_private, inner._generate_noise
    watch_engine(engine, trainings)
    inner._generate_noise = lambda std, reference, **others: draw(std=std * factor, reference=reference, **others)
    sys.argv = [str(SCRIPT), "--epochs", str(epochs)]
    torch.manual_seed(seed)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(SCRIPT))
    finally:
        engine.make_private, inner._generate_noise, sys.argv = make_private, draw, arguments
    (training,) = monitor
    return training.noise_law.refuted_at or np.inf


def simulated(seed: int, factor: float, confidence: float, steps: int = 300) -> float:
    rng, law = np.random.default_rng(seed), NoiseLaw(confidence)
    while law.refuted_at is None and law.steps < steps:
        law.add(NoiseSample.of({"weight": factor * rng.normal(size=190), "bias": factor * rng.normal(size=10)}))
    return law.refuted_at or np.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="trainings for each lack of noise")
    parser.add_argument("--right", type=int, default=100, help="trainings with right noise")
    options = parser.parse_args()
    inside = 1.0 - Levels.of(0.95).noise
    kinds = {
        "tutorial's script, 2410 coordinates": lambda seed, factor: tutorial(seed, factor, 2),
        "200 coordinates": lambda seed, factor: simulated(seed, factor, inside),
        "200 coordinates, a whole α": lambda seed, factor: simulated(seed, factor, 0.95),
    }
    print("| median step (latest) at noise × …", *FACTORS, "right noise accused |", sep=" | ")
    print("|---" * (len(FACTORS) + 2) + "|")
    for name, refuted_at in kinds.items():
        found = [[refuted_at(seed, factor) for seed in range(options.seeds)] for factor in FACTORS]
        accused = sum(refuted_at(1000 + seed, 1.0) < np.inf for seed in range(options.right))
        cells = [f"{np.median(one):g} ({max(one):g})" for one in found]
        print(f"| {name}", *cells, f"{accused} of {options.right} |", sep=" | ", flush=True)


if __name__ == "__main__":
    main()
