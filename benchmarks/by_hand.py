"""Loops by hand, right and with faults: what `epsilometer watch` says of each, and how long its runs take.

python benchmarks/by_hand.py [LOOPS] [FAULTS] [SEEDS]    # such as: vmap,hooks half-noise,right 40
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "tests" / "watching" / "scripts" / "by_hand.py"
LOOPS = ("vmap", "single", "hooks", "microbatches", "functional")
FAULTS = (
    "no-noise", "half-noise", "no-bias-noise", "sometimes", "same-noise", "divided", "no-clipping", "mean-clipping",
)  # fmt: skip


def said(loop: str, fault: str, seed: int) -> tuple[str, str, float]:
    """Verdict, broken statements, seconds."""
    with tempfile.TemporaryDirectory() as place:
        command = [
            sys.executable, "-m", "epsilometer", "watch", "--noise-multiplier", "1", "--clip-norm", "1",
            "--sample-rate", "0.08", "--out", f"{place}/out", "--", sys.executable, "-W", "ignore", str(SCRIPT),
            loop, fault, "--seed", str(seed),
        ]  # fmt: skip
        Path(place, "work").mkdir()
        begun = time.monotonic()
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run(command, check=True, cwd=f"{place}/work", env=environment, capture_output=True)
        seconds = time.monotonic() - begun
        (training,) = json.loads(Path(place, "out", "result.json").read_text())["trainings"]
    broken = [one["statement"] for one in training["statements"] if one["standing"] == "broken"]
    return training["verdict"], ", ".join(broken), seconds


def main(loops: str = ",".join(LOOPS), faults: str = ",".join(FAULTS), seeds: str = "1") -> None:
    print("| loop | fault | seed | verdict | broken | seconds |\n|---|---|---|---|---|---|")
    for loop in loops.split(","):
        for fault in faults.split(","):
            for seed in range(int(seeds)):
                verdict, broken, seconds = said(loop, fault, seed)
                print(f"| {loop} | {fault} | {seed} | {verdict} | {broken} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
