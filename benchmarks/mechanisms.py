"""Audits of mechanisms beside what jax-privacy's bounds make of the very same scores.

jax-privacy takes scores only, so it is given ours: neighbours and score that other releases have chosen. dp_auditorium,
which could do the whole, is not on PyPI.
"""

from __future__ import annotations

import argparse
import time

from jax_privacy import auditing

from bounds import theirs
from epsilometer.auditing.mechanism_audit import audit_mechanism
from epsilometer.evidence import PairedRuns
from epsilometer.mechanisms import MECHANISMS

THEIRS = {"Bonferroni": theirs(auditing.Bonferroni()), "Split": theirs(auditing.Split(seed=0))}
RIGHT = [(name, epsilon, 0.0) for name in ("laplace", "randomized-response", "exponential") for epsilon in (0.1, 1, 4)]
BROKEN = [(name, 1.0, 1e-5 if name.startswith("gaussian") else 0.0) for name, one in MECHANISMS.items() if one.fault]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000, help="of each world, of right mechanisms")
    parser.add_argument("--broken-runs", type=int, default=100_000, help="of each world, of broken ones")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    named = [f"jax-privacy {name}" for name in THEIRS]
    print("| mechanism | claimed ε | certified ε | verdict | seconds |", " | ".join(named), "|")
    print("|---" * (5 + len(named)) + "|")
    for (name, epsilon, delta), runs in [
        *((case, options.runs) for case in RIGHT),
        *((case, options.broken_runs) for case in BROKEN),
    ]:
        started = time.perf_counter()
        result = audit_mechanism(name, epsilon=epsilon, delta=delta, runs=runs, seed=options.seed, executor="inline")
        seconds = time.perf_counter() - started
        assert isinstance(result.evidence, PairedRuns)
        beside = [f"{bound(result.evidence, delta):.4g}" for bound in THEIRS.values()]
        certified = f"{result.lower_bound.epsilon:.4g} | {result.verdict.outcome} | {seconds:.0f}"
        print(f"| {name} | {epsilon:g} | {certified} |", " | ".join(beside), "|", flush=True)


if __name__ == "__main__":
    main()
