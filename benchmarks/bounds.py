"""Bounds side by side with jax-privacy's on the same scores: mean bound and time for one, in one table."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from jax_privacy import auditing

from epsilometer import ClopperPearson, EProcess, ExactRank, Fixed, PairedRuns, Simultaneous, Split, UnionBound
from epsilometer.bounds import BestOnSame, Method

N, DELTA, ALPHA, MUS = 1000, 1e-5, 0.05, (0.5, 1.0, 2.0, 4.0)
# The threshold with the largest expected bound, from the true rates: nobody can know it.
ORACLE_THRESHOLDS = {0.5: 1.65, 1.0: 2.275, 2.0: -0.975, 4.0: 0.7}


def ours(method: Method) -> Callable[[PairedRuns, float], float]:
    return lambda runs, _: method.bound(runs, delta=DELTA, confidence=1 - ALPHA).epsilon


def oracle(runs: PairedRuns, mu: float) -> float:
    return ClopperPearson(Fixed(ORACLE_THRESHOLDS[mu])).bound(runs, delta=DELTA, confidence=1 - ALPHA).epsilon


def theirs(strategy: auditing.ThresholdStrategy) -> Callable[[PairedRuns, float], float]:
    def bound(runs: PairedRuns, _: float) -> float:
        auditor = auditing.CanaryScoreAuditor(runs.in_scores, runs.out_scores)
        return max(0.0, float(auditor.epsilon_clopper_pearson(ALPHA, DELTA, threshold_strategy=strategy)))

    return bound


METHODS = {
    "exact rank (default)": ours(ExactRank()),
    "exact rank, union bound": ours(ExactRank(calibrated=False)),
    "e-process": ours(EProcess(in_order=True)),
    "simultaneous bands": ours(ClopperPearson(Simultaneous())),
    "Clopper–Pearson, union bound": ours(ClopperPearson(UnionBound())),
    "Clopper–Pearson, split": ours(ClopperPearson(Split())),
    "jax-privacy Bonferroni": theirs(auditing.Bonferroni()),
    "jax-privacy Split": theirs(auditing.Split(seed=0)),
    "jax-privacy MultiSplit": theirs(auditing.MultiSplit(seed=0)),
    "oracle threshold, Clopper–Pearson": oracle,
    "best on same (not a bound)": ours(ClopperPearson(BestOnSame())),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=60, help="400 for the table of docs/measurements.md")
    seeds = parser.parse_args().seeds
    found = {(name, mu): [] for name in METHODS for mu in MUS}
    seconds = dict.fromkeys(METHODS, 0.0)
    for seed in range(seeds):
        for mu in MUS:
            rng = np.random.default_rng([seed, int(10 * mu)])
            runs = PairedRuns(rng.normal(size=N), rng.normal(mu, size=N))
            for name, method in METHODS.items():
                started = time.perf_counter()
                found[name, mu].append(method(runs, mu))
                seconds[name] += time.perf_counter() - started
    setting = f"{N} trials a world, Gaussian scores, δ = {DELTA:g}, {1 - ALPHA:.0%}, {seeds} seeds"
    print(f"mean bound (share of the oracle's), {setting}")
    print("| method | " + " | ".join(f"μ = {mu:g}" for mu in MUS) + " | ms a bound |")
    print("|---" * (len(MUS) + 2) + "|")
    best = {mu: np.mean(found["oracle threshold, Clopper–Pearson", mu]) for mu in MUS}
    for name in METHODS:
        means = " | ".join(f"{np.mean(found[name, mu]):.3f} ({np.mean(found[name, mu]) / best[mu]:.2f})" for mu in MUS)
        print(f"| {name} | {means} | {1000 * seconds[name] / (seeds * len(MUS)):.1f} |")


if __name__ == "__main__":
    main()
