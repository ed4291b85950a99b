"""What a plan costs and what it could show, before it is run."""

from __future__ import annotations

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

LONG = 20.0  # seconds of the first trials, beside which compiling does not count
ENOUGH, MOST = 0.5, 64  # seconds and trials of a group that tells what trials cost


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
    """Play a few trials to see what they cost, and work out what all could show."""
    worlds, seconds = worlds_of(plan), _seconds_a_trial(plan)
    best = _always_right(plan)
    refuted = plan.method.test(best, plan.claim, confidence=plan.confidence).refuted
    return Preview(
        plan=plan,
        trials=plan.trials * len(worlds),
        seconds_a_trial=seconds,
        best_epsilon=plan.method.bound(best, delta=plan.delta, confidence=plan.confidence).epsilon,
        can_refute=refuted and plan.method.kind is Kind.CERTIFIED,
        power=_power(plan, best) if plan.method.kind is Kind.CERTIFIED else 0.0,
    )


def _seconds_a_trial(plan: Plan) -> float:
    """As an audit plays them: in groups, and once everything is compiled, which each world's first trial does."""
    worlds = worlds_of(plan)
    trials = [(world, index) for index in range(min(plan.trials, MOST)) for world in worlds][:MOST]
    cold = play_group(plan, trials[: len(worlds)]).seconds / len(worlds)
    if cold > LONG:
        return cold
    size = len(worlds)
    while True:
        seconds = play_group(plan, trials[:size]).seconds
        if seconds > ENOUGH or size >= len(trials):
            return seconds / min(size, len(trials))
        size *= 4


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
