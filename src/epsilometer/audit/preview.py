"""What a plan costs and what it could show, before it is run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilometer.accounting import DpSgd, curve
from epsilometer.adversaries import CanaryGame
from epsilometer.audit.executors.executor import play_group
from epsilometer.audit.plan import Plan
from epsilometer.audit.trial import craft, worlds_of
from epsilometer.audit.verdict import ENOUGH_POWER
from epsilometer.bounds import Kind
from epsilometer.evidence import CoinFlips, PairedRuns

PROBE = 2  # trials


@dataclass(frozen=True, eq=False)
class Preview:
    """The cost of a plan, the most that it could prove, and whether that would refute its claim."""

    plan: Plan
    trials: int
    seconds_a_trial: float  # in one process
    best_epsilon: float  # of an attack that is always right
    can_refute: bool  # whether such an attack refutes the claim
    power: float  # probability of refuting it if the noise is half of what is claimed, and the attack as good as can be

    @property
    def seconds(self) -> float:
        """Of one process."""
        return self.trials * self.seconds_a_trial

    @property
    def has_power(self) -> bool:
        return self.can_refute and self.power >= ENOUGH_POWER

    def to_dict(self) -> dict[str, Any]:
        return {
            "trials": self.trials,
            "seconds_a_trial": self.seconds_a_trial,
            "seconds": self.seconds,
            "best_epsilon": self.best_epsilon,
            "can_refute": self.can_refute,
            "power": self.power,
            "has_power": self.has_power,
        }


def preview(plan: Plan) -> Preview:
    """Play two trials to see what they cost, and work out what all could show."""
    worlds = worlds_of(plan)
    probes = [(worlds[i % len(worlds)], i // len(worlds)) for i in range(PROBE)]
    seconds = []
    for trial in probes:
        started = time.perf_counter()
        play_group(plan, [trial])
        seconds.append(time.perf_counter() - started)
    best = _always_right(plan)
    refuted = plan.method.test(best, plan.claim, confidence=plan.confidence).refuted
    return Preview(
        plan=plan,
        trials=plan.trials * len(worlds),
        seconds_a_trial=min(seconds),  # the first may include compiling
        best_epsilon=plan.method.bound(best, delta=plan.delta, confidence=plan.confidence).epsilon,
        can_refute=refuted and plan.method.kind is Kind.CERTIFIED,
        power=_power(plan, best) if plan.method.kind is Kind.CERTIFIED else 0.0,
    )


def _always_right(plan: Plan) -> PairedRuns | CoinFlips:
    """The evidence of an attack that is always right."""
    game = craft(plan)
    if isinstance(game, CanaryGame):
        member = np.arange(game.canaries * plan.trials) % 2
        kind: type[CoinFlips] = plan.adversary.gives
        return kind(member.astype(np.float64), member, game.relation, game.group_size)
    scores = np.arange(plan.trials, dtype=np.float64)
    return PairedRuns(scores - plan.trials, scores, game.relation, game.group_size)


def _power(plan: Plan, best: PairedRuns | CoinFlips) -> float:
    """Against all that half of the noise could leak: groups count as if their records always came together."""
    recipe = plan.recipe
    noise = recipe.noise_multiplier / (2 * best.group_size)
    truth = curve(DpSgd(recipe.sample_rate, noise, recipe.steps), plan.relation)
    sizes = best.sizes
    power: float = plan.method.as_seen_by(best).power(
        plan.claim,
        truth,
        out_trials=sizes["out"],
        in_trials=sizes["in"],
        confidence=plan.confidence,
        group_size=best.group_size,
    )
    return power
