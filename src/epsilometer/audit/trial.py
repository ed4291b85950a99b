"""A trial: a pure function of (plan, world, index), whichever process plays it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from epsilometer.adversaries import IN, OUT, CanaryGame, Game
from epsilometer.audit.plan import Plan
from epsilometer.audit.scores import require_scores
from epsilometer.bounds import pool_runs
from epsilometer.claims import Floats, require_same_relation
from epsilometer.errors import InvalidInput
from epsilometer.evidence import CoinFlips, OneRun, PairedRuns, PerStep
from epsilometer.training import factories_of, train_many

Trial = tuple[int, int]  # (world, index); a training with canaries has them by coins, and counts as world 1
Results = Mapping[Trial, Floats]  # what was seen: one score, or one for each canary

_CRAFTING, _COINS, _WATCHING = 2, 3, 4  # spawn keys beside worlds 0 and 1


@functools.lru_cache(maxsize=2)
def craft(plan: Plan) -> Game | CanaryGame:
    """The plan's game; the adversary has randomness of its own."""
    seed = np.random.SeedSequence(plan.seed, spawn_key=(_CRAFTING, 0))
    with one_thread(plan):
        game = plan.adversary.craft(plan.recipe, plan.data, plan.relation, seed)
    require_same_relation("the claim", plan.relation, "the game", game.relation)
    if game.group_size != plan.adversary.group_size:
        expected = f"the adversary's {plan.adversary.group_size}"
        raise InvalidInput("group_size of the game", game.group_size, expected, "override the adversary's group_size")
    return game


@contextmanager
def one_thread(plan: Plan) -> Iterator[None]:
    """Small products gain nothing from more threads, and their number would change rounding."""
    with threadpool_limits(limits=1):
        if not factories_of(plan.recipe):  # no torch then
            yield
            return
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def worlds_of(plan: Plan) -> tuple[int, ...]:
    """The worlds of which a plan has trials."""
    return (IN,) if issubclass(plan.adversary.gives, CoinFlips) else (OUT, IN)


def run_trials(plan: Plan, trials: Sequence[Trial]) -> list[Floats]:
    """The scores of trials: the same in any group, order and process, and after a resume."""
    seen = accepted(plan, dict(zip(trials, _play(plan, trials), strict=True)))
    return [seen[trial] for trial in trials]


def accepted(plan: Plan, results: Mapping[Trial, Any], **remedy: str) -> dict[Trial, Floats]:
    """The same results, if they are what trials of the plan's game can give."""
    if not results:  # nobody needs the game yet
        return {}
    game = craft(plan)
    length = game.canaries if isinstance(game, CanaryGame) else 1
    return require_scores(results, plan.adversary.name, length, **remedy)


def _play(plan: Plan, trials: Sequence[Trial]) -> list[Any]:
    game = craft(plan)
    if isinstance(game, CanaryGame):
        return [_run_canaries(plan, game, index) for _, index in trials]
    watchers = [game.watch(world) for world, _ in trials]
    train_many(
        plan.recipe,
        [game.data(world) for world, _ in trials],
        [np.random.SeedSequence(plan.seed, spawn_key=trial) for trial in trials],
        watchers,
        noise_scale=plan.faults.noise_scale,
    )
    return [watcher.score() for watcher in watchers]


def evidence_of(plan: Plan, results: Results, count: int) -> PairedRuns | CoinFlips:
    """What the first `count` trials of each world have shown."""
    game = craft(plan)
    needed = ((world, index) for world in worlds_of(plan) for index in range(count))
    results = accepted(plan, {trial: results[trial] for trial in needed})
    if isinstance(game, CanaryGame):
        coins = [toss_coins(plan.seed, index, game.canaries) for index in range(count)]
        if plan.adversary.gives is PerStep:
            seen = np.concatenate([results[IN, index] for index in range(count)])
            return PerStep(seen, np.concatenate(coins), game.relation, game.group_size)
        return pool_runs(
            OneRun(results[IN, index], tossed, game.relation, game.group_size) for index, tossed in enumerate(coins)
        )
    out_scores, in_scores = (np.concatenate([results[world, i] for i in range(count)]) for world in (OUT, IN))
    return PairedRuns(out_scores, in_scores, game.relation, game.group_size)


def _run_canaries(plan: Plan, game: CanaryGame, index: int) -> Floats:
    """One training with a fair coin for each canary; a pure function of (plan, index) as well."""
    coins = toss_coins(plan.seed, index, game.canaries)
    watching, training = (np.random.SeedSequence(plan.seed, spawn_key=(key, index)) for key in (_WATCHING, IN))
    watcher = game.watch(coins, watching)
    train_many(plan.recipe, [game.data(coins)], [training], [watcher], noise_scale=plan.faults.noise_scale)
    return watcher.scores()


def toss_coins(seed: int, index: int, canaries: int) -> NDArray[np.bool_]:
    """Which canaries are in the training `index` of a plan with that seed."""
    own = np.random.SeedSequence(seed, spawn_key=(_COINS, index))
    tossed: NDArray[np.bool_] = np.random.default_rng(own).random(canaries) < 0.5
    return tossed
