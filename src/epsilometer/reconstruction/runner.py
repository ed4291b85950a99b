"""Releases → estimates → how good they are. What is stored is not rebuilt again."""

from __future__ import annotations

import time

import numpy as np

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.claims import LARGEST_MU, GaussianClaim, Relation
from epsilometer.metrics import share
from epsilometer.reconstruction.limits import gaussian_renyi, renyi_limit
from epsilometer.reconstruction.plan import ReconstructionPlan
from epsilometer.reconstruction.quality import Reconstruction
from epsilometer.reconstruction.result import AtNoise, ReconstructionResult
from epsilometer.runs import Executor, Inline, MemoryStore, Progress, Store, play
from epsilometer.runs.play import prepared_for


def run_reconstruction(
    plan: ReconstructionPlan,
    progress: Progress | None = None,
    *,
    delta: float = 1e-5,
    confidence: float = 0.95,
    store: Store | None = None,
    executor: Executor | None = None,
) -> ReconstructionResult:
    """Rebuild what is missing of the plan's records, and say how well, beside limits and what the noise promises."""
    validate.real("delta", delta, above=0, below=1, remedy="a common choice is 1e-5")
    validate.confidence(confidence)
    store = MemoryStore() if store is None else store
    results = play(plan, store, executor or Inline(), progress).results
    started = time.perf_counter()
    fisher = prepared_for(plan, store).arrays["fisher"]
    rebuilt = tuple(tuple(plan.reconstructions(results, world)) for world in plan.worlds)
    at = tuple(
        _at(plan, noise, several, fisher, delta, confidence)
        for noise, several in zip(plan.noises, rebuilt, strict=True)
    )
    begun = store.begin(plan)
    end = {"verdict": None, "lower_bound": None, "stopped_early": False, "judged": plan.records}
    store.conclude(begun.fingerprint, end)
    seconds = begun.seconds + time.perf_counter() - started
    return ReconstructionResult(plan, at, rebuilt, delta, confidence, seconds)


def _at(
    plan: ReconstructionPlan,
    noise: float,
    several: tuple[Reconstruction, ...],
    fisher: Floats,
    delta: float,
    confidence: float,
) -> AtNoise:
    records, (low, high) = plan.data.x.astype(np.float64), plan.value_range
    cut = [one.within(low, high) for one in several]
    found = sum(one.finds(records, row) for one, row in zip(cut, plan.rows.tolist(), strict=True))
    # Of m releases the mean is as good as all of them: one release with noise of s/√m.
    noise_std = plan.noise_std(noise) / plan.attack.releases**0.5
    sensitivity = plan.attack.sensitivity(plan.data)
    epsilon = gaussian_renyi(sensitivity, noise_std)
    mu = (epsilon * plan.attack.in_parts) ** 0.5
    return AtNoise(
        noise_multiplier=noise,
        noise_std=plan.noise_std(noise),
        mse=float(np.median([one.mse for one in several])),
        mean_mse=float(np.mean([one.mse for one in several])),
        cut_mse=float(np.mean([one.mse for one in cut])),
        guess_mse=float(np.mean((records[plan.rows] - records.mean(axis=0)) ** 2)),
        found=share(found, len(several), confidence),
        fisher_limit=float(np.mean(fisher) * noise_std**2) if noise_std else 0.0,
        renyi_limit=renyi_limit(np.full(records.shape[1], high - low), epsilon),
        renyi_epsilon=epsilon,
        epsilon=GaussianClaim(mu if mu <= LARGEST_MU else np.inf, Relation.REPLACE).epsilon_at(delta),
    )
