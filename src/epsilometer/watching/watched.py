"""One watched training: what it states, and all that was seen of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from epsilometer.arrays import Floats
from epsilometer.bounds import NoiseLaw, StepProcess, share_refuted_in_steps
from epsilometer.claims import GaussianClaim, StepClaim
from epsilometer.noise_sample import Counts, NoiseSample
from epsilometer.statements import Basis
from epsilometer.watching.checks import Check, Status
from epsilometer.watching.checks.names import BATCHES, TARGET
from epsilometer.watching.epsilon import DELTA, EpsilonOfTraining, epsilon_of_training, promised_or_none
from epsilometer.watching.facts import Facts
from epsilometer.watching.judging import Judging
from epsilometer.watching.levels import Levels
from epsilometer.watching.recording import MadePrivate, Shared, Step, StepNoise
from epsilometer.watching.settings import MODEL, PLACES
from epsilometer.watching.unclipped import Unclipped

_MOST_SIMULATED = 200  # steps: if so many have power, more have it too
_EXACT = 8  # different noise multipliers that are taken as they are; each costs some time
_COARSE = 1.1  # others are rounded down by a tenth at most


@dataclass
class Watched:
    """One training: what it states, the evidence against that, and what else was found."""

    made: MadePrivate
    judging: Judging = field(default_factory=Judging)
    target_delta: float = DELTA  # that the script asked its noise for
    pid: int = 0
    process: StepProcess = field(init=False)
    vacuous: int = 0  # steps that state no noise
    levels: Levels = field(init=False)
    noise_law: NoiseLaw = field(init=False)  # on noise of the model's own parameters, as far as it is seen
    parameters: list[str] = field(default_factory=list)  # whose noise was seen
    unclipped: Unclipped = field(default_factory=Unclipped)
    not_audited: str = ""
    shared: list[Shared] = field(default_factory=list)  # what this process gave to steps that several take
    ranks: int = 1  # processes that take its steps together
    checks: list[Check] = field(default_factory=list)
    facts: Facts = field(default_factory=Facts)
    told: bool = False  # anything for the checks
    ended: bool = False
    lost: bool = False  # its process ended, and did not say so
    unseen: int = 0
    history: list[list[float]] = field(default_factory=list)  # what the accountant has: noise, sample rate, steps
    wealth: list[float] = field(default_factory=list)  # the logarithm of the e-value after every step
    _stated: dict[float, float] = field(default_factory=dict)
    _factor: tuple[int, float] = (0, math.inf)
    _powers: dict[tuple[int, float], float] = field(default_factory=dict)  # by steps and truth
    _epsilon: EpsilonOfTraining | None = None  # once the training has ended

    def __post_init__(self) -> None:
        self.levels = Levels.of(self.confidence)
        self.process, self.noise_law = StepProcess(1.0 - self.levels.coins), NoiseLaw(1.0 - self.levels.noise)

    @property
    def confidence(self) -> float:
        return self.judging.confidence

    @property
    def delta(self) -> float:
        """Of the ε that is shown."""
        return self.target_delta if self.judging.delta is None else self.judging.delta

    @property
    def by_hand(self) -> bool:
        """Is it a loop of which nothing is known but its optimizer's steps?"""
        return bool(self.made.settings.get("by_hand"))

    def add(self, step: Step) -> None:
        """One more step; one that states no noise promises nothing, and is counted only."""
        sigma = step.noise_multiplier
        if not (sigma > 0 and math.isfinite(sigma)):
            self.vacuous += 1
            return
        if sigma not in self._stated:
            exact = len(self._stated) < _EXACT
            # Less noise than is stated is a weaker statement: to refute it is to refute what is stated.
            rounded = sigma if exact else _COARSE ** math.floor(math.log(sigma) / math.log(_COARSE))
            self._stated[sigma] = rounded
        self.process.add(step.scores, step.coins, self._stated[sigma])
        self.unclipped.add(step)
        if len(step.noise):  # an old recording
            self.noise_law.add(_sizes(step.noise, sigma))
        self.wealth.append(self.process.log_e_value)

    def add_noise(self, seen: StepNoise) -> None:
        """The noise of one more step, if it was seen and any is stated."""
        self.noise_law.add(seen.sample(self.parameters) if seen.noise_multiplier > 0 else None)

    @property
    def law_may_differ(self) -> str:
        """Why what refutes the law of the noise is a hint only; empty if it is a test, at level `levels.noise`."""
        from epsilometer.watching.checks.noise_scale import may_be_meant

        facts = self.facts
        if facts.another_mechanism or facts.several_processes:
            return facts.another_mechanism or "several processes share the noise of a step"
        dependent = any((one.name, one.status) == ("independent-noise", Status.FAILED) for one in self.checks)
        if facts.own_optimizer and dependent:
            return "noise of a class of the script's own depends on other noise, and may be meant to"
        if facts.kept is None or facts.clipping is None or not facts.kept.steps:
            return "whether noise came in elsewhere was not seen"
        return "noise may have come in elsewhere, or records add less" if may_be_meant(facts) else ""

    @property
    def refuted_at(self) -> int | None:
        """The step from which on the stated noise is refuted; canaries on an extra parameter need more than bets."""
        at = self.process.refuted_at
        if at is None or self.made.place == MODEL or not self.made.own_noise:
            return at
        own = [since for since in (self.noise_law.refuted_at, self.unclipped.since) if since is not None]
        return max(at, min(own)) if own else None

    @property
    def idle(self) -> bool:
        """Was a training made private, and then never begun? It releases nothing, so that nothing is to be tested."""
        facts = self.facts
        taken, moved, others = facts.steps, facts.moved, facts.others
        if not self.ended or self.process.steps or self.unseen or taken is None or moved is None or others is None:
            return False
        still = not moved.moved or others.private > 0  # by another training, which has a verdict of its own
        return not (taken.taken or taken.followed or others.found or moved.unprotected_moved) and still

    @property
    def never_iterated(self) -> str:
        """What is known from the first step on, if the script goes over another loader than it was given."""
        found = (one for one in self.faults if one.name == BATCHES and one.basis is Basis.COUNTEREXAMPLE)
        return next((one.reason for one in found), "")

    def noise_factor(self) -> float:
        """The true noise is at most so many times the stated; canaries that say nothing of the model limit nothing."""
        if self._unlike:
            return math.inf
        if self._factor[0] != self.process.steps:
            self._factor = (self.process.steps, self.process.noise_factor())
        return self._factor[1]

    def epsilon(self) -> EpsilonOfTraining:
        """ε of the whole training, as far as it is known; an accountant's history comes with the end."""
        if self._epsilon is not None:
            return self._epsilon
        why = self.says_nothing()
        if why:
            seen = self.ended and bool(self.not_audited) and self.noise_law.seen
            upper = promised_or_none(self.history, self.delta) if seen else None
            return EpsilonOfTraining(upper=upper, why=why.removeprefix("not audited, because "))
        found = epsilon_of_training(
            self.history,
            self.noise_factor(),
            noise_multiplier=max(self._stated),
            steps=self.process.steps,
            scores=self.process.steps * self.made.canaries,
            delta=self.delta,
            sure=self.confidence,
            failed=[one.name for one in self.checks if one.status in (Status.FAILED, Status.IGNORED)],
        )
        found = replace(found, doubts=tuple(dict.fromkeys(one.name for one in self.faults if one.name != TARGET)))
        if self.ended:
            self._epsilon = found
        return found

    @property
    def _unlike(self) -> bool:
        """Do canaries find what the model's own parameters do not show?"""
        return self.process.refuted and self.refuted_at is None

    @property
    def stated_noise(self) -> str:
        """Its noise multiplier, or several."""
        stated = self._stated or [self.made.noise_multiplier]  # of no step with canaries
        low, high = min(stated), max(stated)
        return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"

    def power_now(self) -> float | None:
        """The same, where canaries say anything by now."""
        return None if self.says_nothing() or self.refuted_at is not None else self.power()

    def power(self) -> float:
        """The probability of a refutation by so many steps, had canaries twice the strength that they have for sure."""
        from epsilometer.verdict import FAULT

        factor = self.noise_factor()
        if math.isinf(factor):
            return 0.0
        sigma = sorted(self._stated.values())[len(self._stated) // 2]
        truth = GaussianClaim(FAULT / (sigma * max(factor, 1.0)))
        steps = min(self.process.steps, _MOST_SIMULATED)
        if (steps, truth.mu) not in self._powers:
            claim, sure = StepClaim.of_noise(sigma), 1.0 - self.levels.coins
            power = share_refuted_in_steps(claim, truth, steps, self.made.canaries, sure)
            self._powers = {(steps, truth.mu): power}
        return self._powers[steps, truth.mu]

    @property
    def faults(self) -> list[Check]:
        """Checks that failed and are not ignored, of those that some version of the library passes."""
        return [one for one in self.checks if one.status is Status.FAILED and not one.is_limit]

    @property
    def limits(self) -> list[Check]:
        """Checks that no version of the library passes."""
        return [one for one in self.checks if one.status is Status.FAILED and one.is_limit]

    def failed_checks(self) -> list[str]:
        """A line for each check that failed, also of those that are ignored."""
        how = {Status.FAILED: "check failed", Status.IGNORED: "check failed, and is ignored"}
        shown = [one for one in self.checks if one.status in how and one not in self.limits]
        return [f"{how[one.status]}: {one.name}: {one.reason}" for one in shown]

    def __str__(self) -> str:
        made = self.made
        if self.by_hand:
            return f"{made.optimizer}, noise multiplier {made.noise_multiplier:.4g} as stated"
        place = PLACES.get(made.place, made.place)
        return (
            f"{made.optimizer}, noise multiplier {made.noise_multiplier:.4g}, clip norm {made.clip_norm:.4g}, "
            f"{made.canaries} canaries {place}"
        )

    def says_nothing(self) -> str:
        """Why canaries say nothing; empty if they do."""
        if self.not_audited:
            return f"not audited, because {self.not_audited}"
        if self._unlike:
            own = "has no less noise than is stated" if self.noise_law.seen else "could not be looked at"
            return (
                f"canaries on an extra parameter refute the stated noise at step {self.process.refuted_at}, but the "
                f"model itself {own}: the script may treat parameters that it does not know unlike its own; use "
                "--canaries model"
            )
        if self.vacuous:
            return f"{self.vacuous} steps state a noise multiplier of 0, which promises nothing"
        if self.idle:
            return "it was made private, and took no step: nothing of it is released"
        if not self.made.canaries:
            return "no canaries were played"
        return "" if self.process.steps else self._no_step()

    def _no_step(self) -> str:
        unseen = f", though {self.unseen} were accounted for" if self.unseen else ""
        return f"not audited, because no step was seen{unseen}"


def _sizes(noise: Floats, sigma: float) -> NoiseSample:
    """Of some coordinates of the model, in no order that tells which they are; written down as float32."""
    units = noise / sigma
    return NoiseSample(("the model",), (len(noise),), (float(units @ units),), Counts.of(units, steps=2.0**-20))
