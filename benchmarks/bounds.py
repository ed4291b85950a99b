"""Bounds side by side with jax-privacy's on the same scores: mean bound and time for one, in one table."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from jax_privacy import auditing

from epsilometer import BestOnSame, PairedRuns, Split, UnionBound, clopper_pearson

N, DELTA, ALPHA, SEEDS, MUS = 1000, 1e-5, 0.05, 100, (0.5, 1.0, 2.0, 4.0)


def ours(strategy: object) -> Callable[[PairedRuns], float]:
    return lambda runs: clopper_pearson(runs, delta=DELTA, confidence=1 - ALPHA, thresholds=strategy).epsilon  # type: ignore[arg-type]


def theirs(strategy: auditing.ThresholdStrategy) -> Callable[[PairedRuns], float]:
    def bound(runs: PairedRuns) -> float:
        auditor = auditing.CanaryScoreAuditor(runs.in_scores, runs.out_scores)
        return max(0.0, float(auditor.epsilon_clopper_pearson(ALPHA, DELTA, threshold_strategy=strategy)))

    return bound


METHODS = {
    "epsilometer UnionBound": ours(UnionBound()),
    "epsilometer Split": ours(Split()),
    "jax-privacy Bonferroni": theirs(auditing.Bonferroni()),
    "jax-privacy Split": theirs(auditing.Split(seed=0)),
    "jax-privacy MultiSplit": theirs(auditing.MultiSplit(seed=0)),
    "best on same (not a bound)": ours(BestOnSame()),
}


def main() -> None:
    found = {(name, mu): [] for name in METHODS for mu in MUS}
    seconds = dict.fromkeys(METHODS, 0.0)
    for seed in range(SEEDS):
        for mu in MUS:
            rng = np.random.default_rng([seed, int(10 * mu)])
            runs = PairedRuns(rng.normal(size=N), rng.normal(mu, size=N))
            for name, method in METHODS.items():
                started = time.perf_counter()
                found[name, mu].append(method(runs))
                seconds[name] += time.perf_counter() - started
    print(f"mean bound, {N} trials a world, Gaussian scores, δ = {DELTA:g}, {1 - ALPHA:.0%}, {SEEDS} seeds")
    print("| method | " + " | ".join(f"μ = {mu:g}" for mu in MUS) + " | ms a bound |")
    print("|---" * (len(MUS) + 2) + "|")
    for name in METHODS:
        means = " | ".join(f"{np.mean(found[name, mu]):.3f}" for mu in MUS)
        print(f"| {name} | {means} | {1000 * seconds[name] / (SEEDS * len(MUS)):.2f} |")


if __name__ == "__main__":
    main()
