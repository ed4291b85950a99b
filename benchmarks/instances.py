"""What the mean rule costs in records, checkpoints and draws: `python benchmarks/instances.py` (MNIST is needed)."""

from __future__ import annotations

import argparse
import resource
import time

from epsilometer.auditing import noise_for
from epsilometer.data import load
from epsilometer.evidence import IN
from epsilometer.instances import InstancePlan, chosen_records
from epsilometer.runs import Preparation
from epsilometer.runs.trials import one_thread
from epsilometer.subjects import DpSgdTraining
from epsilometer.training import Recipe


def seconds(prepared: Preparation | None, records: int, checkpoints: int, tuples: int) -> tuple[float, Preparation]:
    """Of the checkpoints alone; training is quick, and shared."""
    data = load(name="mnist")
    rate = 128 / len(data)
    recipe = Recipe(
        records=len(data), sample_rate=rate, steps=100, noise_multiplier=noise_for(10.0, 1e-5, rate, 100),
        model="mlp", hidden=(32,), learning_rate=0.1,
    )  # fmt: skip
    subject = DpSgdTraining(recipe, data)
    plan = InstancePlan(
        subject, chosen_records(data, records, 0), 1e-5, rule="mean", trainings=1, every=1, tuples=tuples
    )  # fmt: skip
    prepared = plan.prepare() if prepared is None else prepared
    with one_thread():
        plan.play(prepared, [(IN, 0)]) if checkpoints > 1 else None  # what is made once, such as tables
        started = time.process_time()
        plan.play(prepared, [(IN, i) for i in range(checkpoints)])
    return time.process_time() - started, prepared


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoints", type=int, default=2)
    count = parser.parse_args().checkpoints
    prepared = None
    for records, checkpoints, tuples in (
        (500, count, 100), (250, count, 100), (500, 2 * count, 100), (500, count, 50),
    ):  # fmt: skip
        spent, prepared = seconds(prepared, records, checkpoints, tuples)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        what = f"{records} records × {checkpoints} checkpoints, 20 × {tuples} samples, α = 8"
        each = f"{spent / checkpoints:.2f} s a checkpoint"
        print(f"{what}: {spent:.1f} s of processor time, {each}; {most:.2f} GB at most so far", flush=True)


if __name__ == "__main__":
    main()
