"""How long membership inference takes: 64 references on Location-30, and scoring 10,000 records by 64 models.

It needs Location-30 (EPSILOMETER_DATA). Peaks of memory are those of this process.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from epsilometer.membership import (
    ATTACKS,
    BLACK_BOX,
    Seen,
    Signals,
    attack_named,
    black_box,
    membership_from_dict,
    run_membership,
)
from epsilometer.runs import Inline, Local, MemoryStore

SPEC = {
    "data": {"name": "location30"},
    "model": {"hidden": [128]},
    "training": {"sample_rate": 0.05, "steps": 600, "learning_rate": 0.1},
    "membership": {"population": 1000, "references": 64},
}


def trained(workers: int) -> None:
    study = membership_from_dict(SPEC).study()
    started, used = time.perf_counter(), time.process_time()
    executor = Inline() if workers == 1 else Local(workers)
    found = run_membership(study.plan, study.attacks, store=MemoryStore(), executor=executor)
    seconds, own = time.perf_counter() - started, time.process_time() - used
    print(f"64 references and a target on Location-30: {seconds:.1f} s, of this process {own:.1f} s CPU; {found!r}")


def scored(records: int = 10_000, population: int = 1000, models: int = 64, classes: int = 10) -> None:
    rng = np.random.default_rng(0)
    y, z = rng.integers(classes, size=records), rng.integers(classes, size=population)
    logits = rng.standard_normal((records + population, classes))
    started = time.process_time()
    rows = np.array([black_box(logits + i, np.concatenate([y, z])) for i in range(models + 1)])
    print(f"signals of {models + 1} models × {records + population} records: {time.process_time() - started:.2f} s CPU")
    every = Signals(BLACK_BOX, rows + 0.01 * rng.standard_normal(rows.shape))
    half = rng.random((models // 2, records)) < 0.5
    inside, outside, rest = slice(0, records), slice(records, None), every.models(slice(1, None))
    first = every.models(0)
    seen = Seen(y, classes, first.records(inside), first.records(outside), z, rest.records(inside),
                rest.records(outside), np.concatenate([half, ~half]))  # fmt: skip
    total = 0.0
    for name, kind in ATTACKS.items():
        if kind.asks or kind.white_box:
            continue
        started = time.process_time()
        attack_named(name).scores(seen)
        total += (taken := time.process_time() - started)
        print(f"  {name}: {taken:.3f} s CPU")
    print(f"scoring {records} records × {models} models: {total:.2f} s CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    scored()
    trained(options.workers)
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"CPU of all processes {own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime:.0f} s; largest "
          f"process {max(own.ru_maxrss, children.ru_maxrss) / 2**20:.2f} GiB")  # fmt: skip


if __name__ == "__main__":
    main()
