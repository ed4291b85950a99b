"""What a plan costs and what it could show, before it is run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from epsilometer.accounting import LARGEST_EPSILON, curve
from epsilometer.auditing.executors.child import carefully
from epsilometer.auditing.executors.executor import Job, play_group
from epsilometer.auditing.plan import Plan
from epsilometer.auditing.verdict import ENOUGH_POWER
from epsilometer.bounds import Kind
from epsilometer.claims import Claim, GaussianClaim
from epsilometer.evidence import Evidence

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
    job = Job.of(plan, carefully(plan.precautions, "preparing the attack", plan.prepare))
    scores = plan.game(job.prepared).scores
    best = plan.adversary.gives.always_right(plan.planned_trials, scores, plan.relation, plan.adversary.group_size)
    method = plan.planned_method
    refuted = method.test(best, plan.claim, confidence=plan.confidence).refuted
    return Preview(
        plan=plan,
        trials=plan.planned_trials * len(plan.worlds),
        seconds_a_trial=carefully(plan.precautions, "the training", _seconds_a_trial, job),
        best_epsilon=method.bound(best, delta=plan.delta, confidence=plan.confidence).epsilon,
        can_refute=refuted and method.kind is Kind.CERTIFIED,
        power=_power(plan, best) if method.kind is Kind.CERTIFIED else 0.0,
    )


def _seconds_a_trial(job: Job) -> float:
    """As an audit plays them: in groups, and once everything is compiled, which each world's first trial does."""
    worlds = job.work.worlds
    trials = [(world, index) for index in range(min(job.work.planned_trials, MOST)) for world in worlds][:MOST]
    cold = play_group(job, trials[: len(worlds)]).seconds / len(worlds)
    if cold > LONG:
        return cold
    size = len(worlds)
    while True:
        seconds = play_group(job, trials[:size]).seconds
        if seconds > ENOUGH or size >= len(trials):
            return seconds / min(size, len(trials))
        size *= 4


def _power(plan: Plan, best: Evidence) -> float:
    """Against all that half of the noise could leak: groups count as if their records always came together."""
    noise = plan.subject.mechanism
    if noise is None:
        truth: Claim = _twice(plan)
    else:
        truth = curve(replace(noise, noise_multiplier=noise.noise_multiplier / (2 * best.group_size)), plan.relation)
    sizes = best.sizes
    power: float = plan.planned_method.as_seen_by(best).power(
        plan.claim,
        truth,
        out_trials=sizes["out"],
        in_trials=sizes["in"],
        confidence=plan.confidence,
        group_size=best.group_size,
    )
    return power


def _twice(plan: Plan) -> Claim:
    """Where nobody says how much noise there is: a Gaussian mechanism of the claimed ε, with half of its noise."""
    claimed = min(plan.claimed_epsilon, LARGEST_EPSILON)
    return GaussianClaim(2 * GaussianClaim.through(claimed, max(plan.delta, 1e-12)).mu, plan.relation)
