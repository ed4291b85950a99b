"""How soon missing noise is refuted inside one training, and how often right noise is: simulated Gaussian steps."""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy import special

from epsilometer.bounds.step_bets import RightCounts, right_so_far
from epsilometer.bounds.step_process import log_wealth

SIGMA, STEPS, ALPHA = 1.386, 100, 0.05
NOISE = (0.5, 0.7, 0.8, 0.9, 0.95)


def refuted_at(counts: RightCounts) -> np.ndarray:
    """Step of refutation of each training; infinite where there is none."""
    wealth = log_wealth(counts, 1 / SIGMA)
    over = wealth >= -np.log(ALPHA)
    return np.where(over.any(axis=1), over.argmax(axis=1) + 1.0, np.inf)


def independent(rng: np.random.Generator, trainings: int, canaries: int, noise: float) -> RightCounts:
    coins = rng.random((trainings, STEPS, canaries)) < 0.5
    scores = coins + SIGMA * noise * rng.standard_normal(coins.shape)
    return right_so_far(scores, coins, np.full(coins.shape[:2], 0.5))


def equally_clear(rng: np.random.Generator, trainings: int, canaries: int) -> RightCounts:
    mu = 1 / SIGMA
    chance = special.expit(np.abs(rng.normal(mu**2 / 2, mu, (trainings, STEPS, 1))))
    counts = np.zeros((trainings, STEPS, canaries + 1), dtype=np.uint16)
    np.cumsum(rng.random((trainings, STEPS, canaries)) < chance, axis=-1, out=counts[..., 1:])
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainings", type=int, default=200, help="for each amount of noise")
    parser.add_argument("--null", type=int, default=10_000, help="with right noise")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started, rng = time.perf_counter(), np.random.default_rng(options.seed)
    print(f"σ = {SIGMA}, {STEPS} steps, α = {ALPHA:g}: median step of refutation (share refuted) at noise × …")
    print("| canaries |", " | ".join(f"{noise:g}" for noise in NOISE), "| false alarms | equally clear canaries |")
    print("|---|" + "---|" * (len(NOISE) + 2))
    for canaries in (20, 200, 1000):
        cells = []
        for noise in NOISE:
            found = np.concatenate(
                [refuted_at(independent(rng, 20, canaries, noise)) for _ in range(options.trainings // 20)]
            )
            middle = np.median(found)
            cells.append(
                f"{middle:g} ({np.isfinite(found).mean():.0%})"
                if np.isfinite(middle)
                else f"– ({np.isfinite(found).mean():.0%})"
            )
        for law in (lambda n, m=canaries: independent(rng, n, m, 1.0), lambda n, m=canaries: equally_clear(rng, n, m)):
            chunks = [np.isfinite(refuted_at(law(100))).sum() for _ in range(options.null // 100)]
            cells.append(f"{sum(chunks) / options.null:.2%}")
        print(f"| {canaries} |", " | ".join(cells), "|", flush=True)
    print(
        f"seed {options.seed}, {options.trainings} and {options.null} trainings, {time.perf_counter() - started:.0f} s"
    )


if __name__ == "__main__":
    main()
