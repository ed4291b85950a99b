"""How the trial engine scales: two processes against one, memory of a worker, cost against trials, width and batch."""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import multiprocessing
import resource
import statistics
import time

import numpy as np

from epsilometer import Recipe
from epsilometer.data import Dataset
from epsilometer.training import train_many

N, FEATURES = 6000, 784


def made() -> Dataset:
    rng = np.random.default_rng(0)
    return Dataset("made", rng.random((N, FEATURES)), rng.integers(0, 2, N), 2)


def recipe(width: int = 32, batch: int = 250, steps: int = 100) -> Recipe:
    return Recipe(records=N, sample_rate=batch / N, steps=steps, learning_rate=0.15, model="mlp", hidden=(width,))


def run(trials: int, settings: Recipe, data: Dataset) -> float:
    """Seconds for a group of trials."""
    started = time.perf_counter()
    train_many(settings, [data] * trials, [np.random.SeedSequence(0, spawn_key=(0, i)) for i in range(trials)])
    return time.perf_counter() - started


def work(barrier, queue, trials: int) -> None:  # type: ignore[no-untyped-def]
    data = made()
    run(1, recipe(), data)
    for _ in range(5):
        barrier.wait()
        run(trials, recipe(), data)
        barrier.wait()
    queue.put(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def processes(count: int, trials: int) -> tuple[float, float]:
    """Median seconds for `trials` trials in each of `count` processes, and the largest worker's megabytes."""
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(count + 1), context.Queue()
    workers = [context.Process(target=work, args=(barrier, queue, trials)) for _ in range(count)]
    for worker in workers:
        worker.start()
    seconds = []
    for _ in range(5):
        barrier.wait()
        started = time.perf_counter()
        barrier.wait()
        seconds.append(time.perf_counter() - started)
    memory = max(queue.get() for _ in workers)
    for worker in workers:
        worker.join()
    return statistics.median(seconds), memory


def main() -> None:
    one, memory = processes(1, 10)
    two, _ = processes(2, 10)
    _, many = processes(1, 60)
    print(f"10 trials a process: one process {one:.2f} s, two {two:.2f} s: {2 * one / two:.2f} × the throughput")
    print(f"memory of a worker: {memory:.0f} MB with groups of 10, {many:.0f} MB with groups of 60")
    data = made()
    run(1, recipe(), data)
    print("| what | value | ms a step | µs a step and unit |")
    print("|---|---|---|---|")
    for name, unit, values in (
        ("trials", 1, [(n, recipe(), n) for n in (1, 4, 16)]),
        ("hidden units", 32, [(4, recipe(width=w), w) for w in (32, 64, 128, 256)]),
        ("batch", 250, [(4, recipe(batch=b), b) for b in (125, 250, 500, 1000)]),
    ):
        for trials, settings, value in values:
            seconds = statistics.median(run(trials, settings, data) for _ in range(5))
            a_step = 1000 * seconds / (settings.steps * (1 if name == "trials" else trials))
            print(f"| {name} | {value} | {a_step:.3f} | {1000 * a_step / (value / unit):.0f} |")


if __name__ == "__main__":
    main()
