"""A trial: a pure function of (plan, world, index)."""

from __future__ import annotations

import numpy as np

from epsilometer.adversaries import Game
from epsilometer.audit.plan import Plan
from epsilometer.training import train

_CRAFTING = 2  # the spawn key beside worlds 0 and 1


def craft(plan: Plan) -> Game:
    """The plan's game; the adversary has randomness of its own."""
    rng = np.random.default_rng(np.random.SeedSequence(plan.seed, spawn_key=(_CRAFTING, 0)))
    return plan.adversary.craft(plan.recipe, plan.data, plan.relation, rng)


def run_trial(plan: Plan, game: Game, world: int, index: int) -> float:
    """The score of one training: the same in any process, in any order, and after a resume."""
    rng = np.random.default_rng(np.random.SeedSequence(plan.seed, spawn_key=(world, index)))
    watcher = game.watch(world)
    train(plan.recipe, game.data(world), rng, watcher, plan.faults.noise_scale)
    return watcher.score()
