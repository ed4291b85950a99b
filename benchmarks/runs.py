"""What the store and the executors cost, beside the time of the trials themselves in the same run."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from epsilometer.auditing import spec_from_dict
from epsilometer.evidence import Trial
from epsilometer.runs import Executor, Inline, Local, SqliteStore, run_directory
from epsilometer.runs.directory import STORE
from epsilometer.runs.executors.executor import Job, play_group
from epsilometer.runs.groups import Groups
from epsilometer.runs.tally import Tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    overhead(rounds)
    resume()


def overhead(rounds: int) -> None:
    """Groups of about a second: how much longer they take with a store and an executor than the trials themselves."""
    plan = spec_from_dict({"training": {"steps": 200}, "audit": {"trials": 10_000}}).plan()
    job, trials = Job.of(plan), Tally(plan, {}).missing()
    size = round(40 / min(play_group(job, trials[:40]).seconds for _ in range(3)))
    print(f"groups of {size} trials, about 1 s; time with store and executor / time of the trials, median of {rounds}:")
    for name, executor in (("inline", Inline()), ("local", Local(1))):
        ratios = [ratio(job, trials[: 5 * size], size, executor) for _ in range(rounds)]
        print(f"  {name:<7} {statistics.median(ratios):.4f}   ({min(ratios):.4f} – {max(ratios):.4f})")


def ratio(job: Job, trials: list[Trial], size: int, executor: Executor) -> float:
    """In the steady state: the first group, with the start of a process, does not count."""
    with tempfile.TemporaryDirectory() as where, run_directory(where, job.work) as store:
        tally, started, played_for = Tally(job.work, {}), 0.0, 0.0
        for played in executor.play(job, Groups(trials, first=size)):
            if started:
                played_for += played.seconds
            store.add(job.fingerprint, played.results, played.seconds)
            tally.add(played.results)
            started = started or time.perf_counter()
        return (time.perf_counter() - started) / played_for


def resume() -> None:
    plan = spec_from_dict({"audit": {"trials": 50_000}}).plan()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as where:
        path = Path(where) / STORE
        with SqliteStore(path) as store:
            store.begin(plan)
            for start in range(0, 50_000, 500):
                results = {(world, i): rng.normal(size=1) for i in range(start, start + 500) for world in (0, 1)}
                store.add(plan.fingerprint(), results, 1.0)
        started = time.perf_counter()
        with SqliteStore(path) as store:
            tally = Tally(plan, store.results(plan.fingerprint()))
            missing = len(tally.missing())
        seconds = time.perf_counter() - started
        print(f"100,000 stored trials: {path.stat().st_size / 1e6:.1f} MB; opened, checked and read in {seconds:.2f} s")
        assert missing == 0


if __name__ == "__main__":
    main()
