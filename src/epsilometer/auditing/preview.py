"""What a plan costs and what it could show, before it is run: by a pilot of the real attack, whose trials have seeds of
their own and are used for nothing else."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from epsilometer.auditing.decision import FEWEST_TRIALS, least_power
from epsilometer.auditing.plan import MOST_TRIALS, Plan
from epsilometer.bounds import EProcess, Kind, OneRunPoint, attack_strength
from epsilometer.bounds.strength import area_under_curve
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Evidence, PairedRuns
from epsilometer.runs.executors.child import isolated
from epsilometer.runs.executors.executor import Job, play_group
from epsilometer.runs.trials import Results
from epsilometer.seeds import Stream, seed_of
from epsilometer.subjects import DpSgdTraining, KnowsRecipe
from epsilometer.verdict import ENOUGH_POWER

LONG = 20.0  # seconds of the first trials, beside which compiling does not count
ENOUGH, MOST = 2.0, 400  # seconds and trials of a group that tells what trials cost, and what the attack sees
MANY_STEPS, SOME_STEPS = 50_000, 1000  # of a training that is estimated by a part of it
KNOWN = 0.95  # confidence of the strength that a verdict takes an attack to have at least
LUCK = 0.8  # share of pilots, and of audits, that are to have no more luck than is reckoned with
UNLUCKY = float(special.ndtr(special.ndtri(KNOWN) + special.ndtri(LUCK)))  # what such an audit knows, had it no luck
FEWEST_PAIRS = 10  # scores of each world from which an attack's strength is told at all
SIMULATED = 20  # audits for each power of a method that has to play them, which takes its time
SEARCH = (4, 5)  # how often the number of trials is halved, or doubled, in search of the one that is needed
SLOW_SEARCH = (2, 2)  # of a method whose audits are simulated one by one


@dataclass(frozen=True)
class Pilot:
    """What a few trials saw of the attack. Its strength is a μ, as in `attack_strength`."""

    trials: int  # of each world
    area: float  # how often the attack picks the member out of two
    strength: float  # at least, with 95 % confidence
    likely_strength: float
    cautious_strength: float  # four pilots of five, or more, see no stronger attack than there is

    def to_dict(self) -> dict[str, Any]:
        return {
            "trials": self.trials,
            "area": self.area,
            "strength": self.strength,
            "likely_strength": self.likely_strength,
            "cautious_strength": self.cautious_strength,
        }


@dataclass(frozen=True, eq=False)
class Preview:
    """The cost of a plan, the most that it could certify, and what it can be expected to show.

    `power` is that of a verdict: the probability of refuting the claim by an attack twice as strong as the pilot's (the
    lower of those for Gaussian and for randomized-response scores), for its least strength (`power`) and for the likely
    one (`likely_power`); none without a pilot. `needed_trials` of each
    world are enough for `consistent`, also after a pilot that was luckier than four of five and in an audit that is
    unluckier; none where no number is.
    """

    plan: Plan
    trials: int
    seconds_a_trial: float  # in one process
    best_epsilon: float  # of an attack that is always right
    can_refute: bool  # whether such an attack refutes the claim
    pilot: Pilot | None  # none if trials take too long for one
    power: float | None
    likely_power: float | None
    needed_trials: int | None

    @property
    def seconds(self) -> float:
        """Of one process."""
        return self.trials * self.seconds_a_trial

    @property
    def has_power(self) -> bool:
        return self.power is not None and self.power >= ENOUGH_POWER

    def to_dict(self) -> dict[str, Any]:
        return {
            "trials": self.trials,
            "seconds_a_trial": self.seconds_a_trial,
            "seconds": self.seconds,
            "best_epsilon": self.best_epsilon,
            "can_refute": self.can_refute,
            "power": self.power,
            "has_power": self.has_power,
            "likely_power": self.likely_power,
            "needed_trials": self.needed_trials,
            "pilot": self.pilot and self.pilot.to_dict(),
        }


def preview(plan: Plan) -> Preview:
    """Play a pilot to see what trials cost and how strong the attack is, and work out what all could show."""
    _require_a_short_one(plan)
    rehearsal = replace(plan, seed=int(seed_of(plan.seed, Stream.CHECKING).generate_state(1)[0]))
    job = Job.of(rehearsal, isolated(plan.safeguards, "preparing the attack", rehearsal.prepare))
    scores = rehearsal.game(job.prepared).scores
    best = _always_right(plan, plan.planned_trials, scores)
    method = plan.planned_method
    can_refute = _can_refute(plan, best)
    seconds, played = isolated(plan.safeguards, "the training", _played, job)
    pilot = _pilot(rehearsal, played)
    power = likely_power = needed = None
    if not can_refute:
        power = likely_power = 0.0
    elif pilot is not None:
        power = _power(plan, scores, pilot.strength, plan.planned_trials)
        likely_power = _power(plan, scores, pilot.likely_strength, plan.planned_trials)
    if method.kind is Kind.CERTIFIED and pilot is not None and pilot.strength > 0:
        needed = _needed(plan, scores, pilot.cautious_strength)
    return Preview(
        plan=plan,
        trials=plan.planned_trials * len(plan.worlds),
        seconds_a_trial=seconds,
        best_epsilon=method.bound(best, delta=plan.delta, confidence=plan.confidence).epsilon,
        can_refute=can_refute,
        pilot=pilot,
        power=power,
        likely_power=likely_power,
        needed_trials=needed,
    )


def _played(job: Job) -> tuple[float, Results]:
    """What a trial costs as an audit plays them, in groups, once everything is compiled, which each world's first trial
    does; and the scores of the last group."""
    worlds = job.work.worlds
    trials = [(world, index) for index in range(min(job.work.planned_trials, MOST)) for world in worlds][:MOST]
    first = play_group(job, trials[: len(worlds)])
    if first.seconds / len(worlds) > LONG:
        return first.seconds / len(worlds), first.results
    size = len(worlds)
    while True:
        group = play_group(job, trials[:size])
        if group.seconds > ENOUGH or size >= len(trials):
            return group.seconds / len(group.trials), group.results
        size *= 4


def _require_a_short_one(plan: Plan) -> None:
    """Refuse a training of so many steps that not even one can be tried; what it takes is told by a part of them."""
    known = plan.subject.offers(KnowsRecipe)
    if known is None or known.recipe.steps <= MANY_STEPS:
        return
    try:
        part = DpSgdTraining(replace(known.recipe, steps=SOME_STEPS), plan.subject.data)
    except InvalidInput:  # a schedule that is for more of them
        return
    seeds = seed_of(plan.seed, Stream.CHECKING).spawn(2)
    part.rehearse(part.data, seeds[:1])  # compiles
    started = time.perf_counter()
    part.rehearse(part.data, seeds[1:])
    seconds = (time.perf_counter() - started) * known.recipe.steps / SOME_STEPS
    if seconds > LONG:
        trials = plan.planned_trials * len(plan.worlds)
        expected = f"a training to try a few times (one takes about {seconds:.0f} s, and {trials} are planned)"
        remedy = "check and audit fewer steps of it: they say as much about the code"
        raise InvalidInput("steps", known.recipe.steps, expected, remedy)


def _pilot(rehearsal: Plan, played: Results) -> Pilot | None:
    count = len(played) // len(rehearsal.worlds)
    evidence = rehearsal.evidence(played, count)
    if min(evidence.sizes.values()) < FEWEST_PAIRS:
        return None
    pairs = evidence.as_pairs()
    strengths = (attack_strength(pairs, sure) for sure in (KNOWN, 0.5, LUCK))
    return Pilot(count, area_under_curve(pairs), *strengths)


def _needed(plan: Plan, scores: int, strength: float) -> int | None:
    """How many trials of each world give a verdict its power, by halves or doubles of the plan's.

    A verdict rests on the strength that the audit sees, so it must have its power with little luck as well.
    """
    fewest = max(
        plan.adversary.evidence_type.least_trials, FEWEST_TRIALS if plan.adversary.evidence_type.independent else 1
    )
    trials, (halves, doubles) = plan.planned_trials, SEARCH if _is_quick(plan) else SLOW_SEARCH

    def suffices(n: int) -> bool:
        return _power(plan, scores, strength, n, UNLUCKY) >= ENOUGH_POWER

    if _can_refute(plan, _always_right(plan, trials, scores)) and suffices(trials):
        fewer = itertools.takewhile(lambda n: n >= fewest, (trials >> shift for shift in range(1, halves + 1)))
        enough = itertools.takewhile(suffices, fewer)
        return min(enough, default=trials)
    more = (max(trials, fewest) << shift for shift in range(1, doubles + 1))
    affordable = itertools.takewhile(lambda n: n <= MOST_TRIALS, more)
    able = (n for n in affordable if _can_refute(plan, _always_right(plan, n, scores)))
    return next((n for n in able if suffices(n)), None)


def _can_refute(plan: Plan, best: Evidence) -> bool:
    """Whether the claim is refuted by an attack that is always right: what that cannot do, none can."""
    method = plan.planned_method
    return method.kind is Kind.CERTIFIED and method.test(best, plan.claim, confidence=plan.confidence).refuted


def _power(plan: Plan, scores: int, strength: float, trials: int, sure: float = KNOWN) -> float:
    """As the verdict computes it (see verdict.py): of the strength, an audit of so many trials would know a part."""
    best = _always_right(plan, trials, scores)
    known = attack_strength(_normal_scores(strength, best), sure)
    return least_power(
        plan.planned_method.as_seen_by(best),
        plan.claim,
        known,
        out_trials=best.sizes["out"],
        in_trials=best.sizes["in"],
        confidence=plan.confidence,
        group_size=best.group_size,
        **({} if _is_quick(plan) else {"repetitions": SIMULATED}),
    )


def _is_quick(plan: Plan) -> bool:
    """Whether the method knows its power without playing audits one by one."""
    return plan.planned_method.name not in (EProcess.name, OneRunPoint.name)


def _always_right(plan: Plan, trials: int, scores: int) -> Evidence:
    """What so many trials show at best; also, how their scores are arranged."""
    kind, adversary = plan.adversary.evidence_type, plan.adversary
    arranged: Evidence = adversary.arranged(
        plan.subject, kind.always_right(trials, scores, plan.neighbours, adversary.group_size), trials
    )
    return arranged


def _normal_scores(strength: float, like: Evidence) -> PairedRuns:
    """Scores of N(0, 1) and N(μ, 1), as many as there, without luck."""
    outs, ins = (special.ndtri((np.arange(size) + 0.5) / size) for size in (like.sizes["out"], like.sizes["in"]))
    return PairedRuns(outs, ins + strength, like.neighbours)
