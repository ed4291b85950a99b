"""A trial: a pure function of (plan, world, index)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epsilometer.adversaries import Game
from epsilometer.audit.plan import Plan
from epsilometer.training import train_many

_CRAFTING = 2  # the spawn key beside worlds 0 and 1


def craft(plan: Plan) -> Game:
    """The plan's game; the adversary has randomness of its own."""
    seed = np.random.SeedSequence(plan.seed, spawn_key=(_CRAFTING, 0))
    return plan.adversary.craft(plan.recipe, plan.data, plan.relation, seed)


def run_trials(plan: Plan, game: Game, trials: Sequence[tuple[int, int]]) -> list[float]:
    """The scores of trials (world, index): the same in any group, order and process, and after a resume."""
    watchers = [game.watch(world) for world, _ in trials]
    train_many(
        plan.recipe,
        [game.data(world) for world, _ in trials],
        [np.random.SeedSequence(plan.seed, spawn_key=trial) for trial in trials],
        watchers,
        noise_scale=plan.faults.noise_scale,
    )
    return [watcher.score() for watcher in watchers]
