"""Bounds side by side with jax-privacy's on the same scores, and with the best that any method could do."""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jax_privacy import auditing
from scipy import optimize, special, stats

from epsilometer import PairedRuns
from epsilometer.accounting import DpSgd, curve
from epsilometer.bounds import (
    BestOnSame,
    ClopperPearson,
    EProcess,
    ExactRank,
    Method,
    Simultaneous,
    UnionBound,
    draw_worlds,
)
from epsilometer.claims import Claim, GaussianClaim

ALPHA = 0.05
DEFAULT = "exact rank (default)"
LIMIT = "limit on the median of a valid bound"


@dataclass(frozen=True)
class Cell:
    """A mechanism by the laws of its scores: how to draw them, and their densities on a common grid."""

    name: str
    delta: float
    draw: Callable[[np.random.Generator, int], PairedRuns]
    laws: tuple[np.ndarray, np.ndarray]


def gaussian(mu: float) -> Cell:
    edges = special.ndtri(np.r_[0, special.expit(np.linspace(-16, 16, 199)), 1])
    laws = np.diff(stats.norm.cdf(edges)), np.diff(stats.norm.cdf(edges - mu))
    return Cell(
        f"Gaussian μ = {mu:g}", 1e-5, lambda rng, n: PairedRuns(rng.normal(size=n), rng.normal(mu, size=n)), laws
    )


def laplace(epsilon: float) -> Cell:
    edges = np.r_[-np.inf, np.linspace(-8 / epsilon, 1 + 8 / epsilon, 199), np.inf]
    laws = tuple(np.diff(stats.laplace.cdf(edges, centre, 1 / epsilon)) for centre in (0, 1))

    def draw(rng: np.random.Generator, n: int) -> PairedRuns:
        return PairedRuns(rng.laplace(0, 1 / epsilon, n), rng.laplace(1, 1 / epsilon, n))

    return Cell(f"Laplace ε = {epsilon:g}", 0.0, draw, laws)


def randomized_response(epsilon: float) -> Cell:
    truth = special.expit(epsilon)

    def draw(rng: np.random.Generator, n: int) -> PairedRuns:
        return PairedRuns((rng.random(n) > truth).astype(float), (rng.random(n) < truth).astype(float))

    return Cell(f"randomized response ε = {epsilon:g}", 0.0, draw,
                (np.array([truth, 1 - truth]), np.array([1 - truth, truth])))  # fmt: skip


def dp_sgd(noise: float) -> Cell:
    """An attack on the default training that attains the accountant's curve."""
    claim: Claim = curve(DpSgd(0.1, noise, 100))
    rates = np.r_[0, special.expit(np.linspace(-16, 16, 199)), 1]
    laws = np.diff(rates), np.diff(claim.max_tpr(rates))
    return Cell(f"DP-SGD σ = {noise:g}", 1e-5, lambda rng, n: draw_worlds(claim, n, n, rng), laws)


def nearest(laws: tuple[np.ndarray, np.ndarray], epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """The pair of laws that keeps (ε, 0) and is hardest to tell from these (least Kullback–Leibler divergence)."""
    p, q, grow = laws[0] + 1e-300, laws[1] + 1e-300, np.exp(epsilon)

    def project(multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a, b = np.exp(multipliers)
        p0, q0 = p / a, q / b
        high, low = q0 > grow * p0, p0 > grow * q0
        p0 = np.where(high, (p + q) / (a + b * grow), np.where(low, grow * (p + q) / (b + a * grow), p0))
        q0 = np.where(high, grow * (p + q) / (a + b * grow), np.where(low, (p + q) / (b + a * grow), q0))
        return p0, q0

    found = optimize.root(lambda x: [law.sum() - 1 for law in project(x)], np.zeros(2), tol=1e-12)
    p0, q0 = project(found.x)
    return p0 / p0.sum(), q0 / q0.sum()


def best_possible(cell: Cell, n: int, draws: int = 2000) -> float:
    """The ε that the most powerful test (Neyman & Pearson), told both laws, refutes in half of the audits.

    δ is taken as 0, which makes the limit larger, if anything.
    """
    rng = np.random.default_rng(0)

    def power(epsilon: float) -> float:
        null = nearest(cell.laws, epsilon)
        scores = [np.log((law + 1e-300) / (law0 + 1e-300)) for law, law0 in zip(cell.laws, null, strict=True)]

        def totals(laws: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
            return sum(rng.multinomial(n, law / law.sum(), draws) @ s for law, s in zip(laws, scores, strict=True))

        return float(np.mean(totals(cell.laws) > np.quantile(totals(null), 1 - ALPHA)))

    low, high = 0.0, 12.0
    while high - low > 0.003:
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle) >= 0.5 else (low, middle)
    return low


def ours(method: Method) -> Callable[[PairedRuns, float], float]:
    return lambda runs, delta: method.bound(runs, delta=delta, confidence=1 - ALPHA).epsilon


def theirs(strategy: auditing.ThresholdStrategy) -> Callable[[PairedRuns, float], float]:
    def bound(runs: PairedRuns, delta: float) -> float:
        auditor = auditing.CanaryScoreAuditor(runs.in_scores, runs.out_scores)
        return max(0.0, float(auditor.epsilon_clopper_pearson(ALPHA, delta, threshold_strategy=strategy)))

    return bound


METHODS = {
    DEFAULT: ours(ExactRank()),
    "exact rank, union bound": ours(ExactRank(calibrated=False)),
    "e-process": ours(EProcess(in_order=True)),
    "simultaneous bands": ours(ClopperPearson(Simultaneous())),
    "Clopper–Pearson, union bound": ours(ClopperPearson(UnionBound())),
    "jax-privacy Bonferroni": theirs(auditing.Bonferroni()),
    "jax-privacy Split": theirs(auditing.Split(seed=0)),
    "jax-privacy MultiSplit": theirs(auditing.MultiSplit(seed=0)),
    "best on same (not a bound)": ours(ClopperPearson(BestOnSame())),
}
SLOW = {"e-process", "jax-privacy MultiSplit"}  # a tenth of the seeds


def bounds_table(seeds: int, sizes: list[int]) -> None:
    cells = [gaussian(mu) for mu in (0.5, 1.0, 2.0, 4.0)]
    cells += [laplace(1.0), randomized_response(1.0), dp_sgd(1.386), dp_sgd(0.7)]
    for n in sizes:
        fewer = f"a tenth for {', '.join(sorted(SLOW))}"
        print(f"\nmean bound, {n} trials per world, {1 - ALPHA:.0%}, {seeds} seeds ({fewer})\n")
        print("| method | " + " | ".join(cell.name for cell in cells) + " | ms a bound |")
        print("|---" * (len(cells) + 2) + "|")
        for name, method in METHODS.items():
            means, seconds, audits = [], 0.0, 0
            for cell in cells:
                found = []
                for seed in range(max(3, seeds // 10) if name in SLOW else seeds):
                    runs = cell.draw(np.random.default_rng([seed, n]), n)
                    started = time.perf_counter()
                    found.append(method(runs, cell.delta))
                    seconds += time.perf_counter() - started
                audits += len(found)
                means.append(float(np.mean(found)))
            print(f"| {name} | " + " | ".join(f"{m:.3f}" for m in means) + f" | {1000 * seconds / audits:.1f} |")
        print(f"| {LIMIT} | " + " | ".join(f"{best_possible(cell, n):.3f}" for cell in cells) + " | |", flush=True)


@functools.cache
def default_claim() -> Claim:
    return curve(DpSgd(0.1, 1.3860192220027354, 100))


def attack_scores(rng: np.random.Generator, trials: int, noise: float) -> PairedRuns:
    """The gradient attack on the default training with `noise` times its noise, which nobody told the attacker."""
    sigma = 1.3860192220027354

    def world(member: bool) -> np.ndarray:
        sums = rng.normal(0.0, noise * sigma, (trials, 100)) + member * (rng.random((trials, 100)) < 0.1)
        return np.log1p(0.1 * np.expm1((sums - 0.5) / sigma**2)).sum(axis=1)

    return PairedRuns(world(False), world(True))


def power_table(audits: int) -> None:
    """How often the default's curve claim is refuted when noise is missing, and when leaks are rare."""
    claim, sums, grid = default_claim(), ExactRank(), ExactRank().for_family(None)
    print(f"\nshare of {audits} audits that refute the default's claim (ε = 4 at δ = 1e-5), 95 %\n")
    print("| what is wrong | trials per world | rank sums (default) | grid of ranks alone |\n|---|---|---|---|")
    rng = np.random.default_rng(1)
    for noise, n in ((0.5, 42), (0.7, 250), (0.8, 620), (0.9, 4500), (1.0, 500)):
        runs = [attack_scores(rng, n, noise) for _ in range(audits)]
        shares = [np.mean([test.test(r, claim).refuted for r in runs]) for test in (sums, grid)]
        print(f"| noise × {noise:g} | {n} | {shares[0]:.3f} | {shares[1]:.3f} |", flush=True)
    for rate, n, rest in ((0.03, 1000, claim), (0.03, 2000, claim), (0.03, 2000, GaussianClaim(0.0)),
                          (0.01, 8000, GaussianClaim(0.0))):  # fmt: skip
        found = []
        for _ in range(audits):
            runs = draw_worlds(rest, n, n, rng)
            leaked = PairedRuns(runs.out_scores, np.where(rng.random(n) < rate, 1.0, runs.in_scores))
            found.append([test.test(leaked, claim).refuted for test in (sums, grid)])
        otherwise = "what the claim allows" if rest is claim else "nothing"
        shares = np.mean(found, axis=0)
        print(
            f"| everything leaks in {rate:.0%}, else {otherwise} | {n} | {shares[0]:.3f} | {shares[1]:.3f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30, help="100 for the table of docs/measurements.md")
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1000, 10_000])
    parser.add_argument("--audits", type=int, default=100, help="for the table of power; 0 leaves it out")
    options = parser.parse_args()
    bounds_table(options.seeds, options.sizes)
    if options.audits:
        power_table(options.audits)


if __name__ == "__main__":
    main()
