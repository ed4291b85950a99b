"""A trial: a pure function of (plan, world, index)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epsilometer.adversaries import IN, CanaryGame, Game
from epsilometer.audit.plan import Plan
from epsilometer.evidence import OneRun
from epsilometer.training import train_many

_CRAFTING, _COINS, _WATCHING = 2, 3, 4  # spawn keys beside worlds 0 and 1


def craft(plan: Plan) -> Game | CanaryGame:
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


def run_canaries(plan: Plan, game: CanaryGame, index: int) -> OneRun:
    """One training with a fair coin for each canary; a pure function of (plan, index) as well."""
    coins_seed, watching, training = (
        np.random.SeedSequence(plan.seed, spawn_key=(key, index)) for key in (_COINS, _WATCHING, IN)
    )
    coins = np.random.default_rng(coins_seed).random(game.canaries) < 0.5
    watcher = game.watch(coins, watching)
    train_many(plan.recipe, [game.data(coins)], [training], [watcher], noise_scale=plan.faults.noise_scale)
    return OneRun(watcher.scores(), coins, game.relation, game.group_size)
