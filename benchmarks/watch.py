"""An Opacus script as it is, watched: when missing noise is refuted, how often right noise is, and what it costs."""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "tests" / "watching" / "scripts" / "digits.py"
LARGE = "10 million parameters"
MODES = {
    "hooks": (),
    "ghost clipping": ("--mode", "ghost"),
    "BatchMemoryManager": ("--physical", "50"),
    "ghost, BatchMemoryManager": ("--mode", "ghost", "--physical", "50"),
    LARGE: ("--hidden", "3100", "3100", "--batch", "16"),
}


def run(command: list[str]) -> tuple[float, float]:
    """Seconds of processor time and by the clock, of a command that must end well and what it starts."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, time.perf_counter() - started


def script(seed: int, steps: int, noise: float, mode: str) -> list[str]:
    settings = ("--seed", str(seed), "--steps", str(steps), "--noise-scale", str(noise))
    return [sys.executable, "-W", "ignore", str(SCRIPT), *settings, *MODES[mode]]


def refuted_at(seed: int, steps: int, noise: float, mode: str) -> float:
    """Step of refutation of a watched script; infinite without one."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "audit"
        watch = [sys.executable, "-m", "epsilometer", "watch", "--seed", str(seed), "--out", str(out), "--"]
        run([*watch, *script(seed, steps, noise, mode)])
        (training,) = json.loads((out / "result.json").read_text())["trainings"]
    found = training["refuted_at"]
    return float("inf") if found is None else float(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wrong", type=int, default=20, help="trainings for each lack of noise")
    parser.add_argument("--right", type=int, default=100, help="trainings with right noise")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of runs with and without watch, one after another")
    parser.add_argument("--steps", type=int, default=200, help="of the trainings that are timed")
    parser.add_argument("--mode", choices=MODES, action="append")
    options = parser.parse_args()
    print(
        "| script | noise × 0.5: median step (latest) | × 0.8 | right noise accused | with : without | by the clock |"
    )
    print("|---|---|---|---|---|---|")
    for mode in options.mode or MODES:
        cells = []
        for noise, steps in ((0.5, 20), (0.8, 60)):
            found = [refuted_at(seed, steps, noise, mode) for seed in range(options.wrong)]
            cells.append(f"{statistics.median(found):g} ({max(found):g})" if found else "–")
        accused = sum(refuted_at(seed, 60, 1.0, mode) < float("inf") for seed in range(options.right))
        cells.append(f"{accused} of {options.right}")
        ratios = []
        for seed in range(options.rounds):
            plain = script(seed, options.steps // (40 if mode == LARGE else 1), 1.0, mode)
            without = run(plain)
            watched = run([sys.executable, "-m", "epsilometer", "watch", "--", *plain])
            ratios.append([one / other for one, other in zip(watched, without, strict=True)])
        cells += [f"{statistics.median(one):.2f}" for one in zip(*ratios, strict=True)] or ["–", "–"]
        print(f"| {mode} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
