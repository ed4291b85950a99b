"""A plan: everything that decides an audit's result, frozen before the first trial."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, cast

import numpy as np

import epsilometer.auditing.per_step  # noqa: F401  it registers its methods
from epsilometer import validate
from epsilometer.accounting import ACCOUNTANTS, DpSgd, Promise, UpperBound
from epsilometer.adversaries import ADVERSARIES, Adversary, Game
from epsilometer.arrays import Floats
from epsilometer.bounds import (
    METHODS,
    LowerBound,
    Method,
    Sequential,
    default_method,
    is_sequential,
    method_as_dict,
)
from epsilometer.bounds.named_method import Settings
from epsilometer.claims import Claim
from epsilometer.deprecated import renamed_attributes
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Evidence, Trial
from epsilometer.isolation import Isolation
from epsilometer.neighbours import Neighbours, Relation, require_same_neighbours
from epsilometer.rounding import down
from epsilometer.runs.identity import Fingerprinted
from epsilometer.runs.scores import require_scores
from epsilometer.runs.trials import Preparation, Rehearsal, Results, one_thread
from epsilometer.seeds import Seeds, Stream, seed_of
from epsilometer.subjects import Access, Insertion, Observer, Subject, code_of

TRIAL_VERSION = 3  # raised whenever the same plan would give other scores
MOST_TRIALS = 10**6  # of a world: more trainings than anybody waits for, in as much memory as anybody has


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Fingerprinted):
    """Subject, claim, adversary, number of trials per world, confidence, method, seed.

    Where `trials` and `method` are left out, the adversary's kind of evidence decides (`planned_trials`,
    `planned_method`); so they fit if another adversary takes its place.
    """

    kind: ClassVar[str] = "audit"
    subject: Subject
    claim: Claim
    delta: float
    adversary: Adversary
    trials: int | None = None
    confidence: float = 0.95
    method: Method | None = None
    seed: int = 0
    accountant: str = "pld"
    access: Access = field(default_factory=Access)  # decides no score, only who may play

    def __post_init__(self) -> None:
        validate.instance("subject", self.subject, Subject, "a subject such as DpSgdTraining(recipe, data)")
        promises = "a promise of epsilometer.accounting, such as ClaimPromise(claim) or NoPromise()"
        validate.instance("promise of the subject", self.promise, Promise, promises)
        claims = "a claim such as claim_curve(recipe) or PointClaim(epsilon, delta)"
        validate.instance("claim", self.claim, Claim, claims)
        if self.claim.of_single_steps:
            expected = "a claim about whole trainings; what is stated of steps follows from the training"
            raise InvalidInput("claim", self.claim.describe(), expected, "claim_curve(recipe) gives one")
        validate.instance("adversary", self.adversary, Adversary, "an adversary such as Gradient()")
        renamed_attributes(type(self.method), {"takes": "evidence_type"})
        if self.method is not None and not hasattr(self.method, "evidence_type"):
            raise InvalidInput("method", self.method, "a method such as ExactRank()", "method_named(name) gives one")
        kind = self.adversary.evidence_type
        least, remedy = kind.least_trials, f"trials are {kind.trials_are}"
        validate.whole("trials", self.planned_trials, least=least, most=MOST_TRIALS, remedy=remedy)
        if self.planned_method.evidence_type is not kind:
            able = (one for one in METHODS.values() if one.make is not None and not one.needs_threshold)
            fitting = [one.name for one in able if kind in one.evidence_type]
            expected = f"a method for {self.adversary.name} ({', '.join(fitting)})"
            given = getattr(self.method, "thresholds", self.planned_method).name
            raise InvalidInput("method", given, expected, "leave it out for the default")
        self._require_powers()
        validate.confidence(self.confidence)
        validate.seed("seed", self.seed)
        validate.delta(self.delta)
        ACCOUNTANTS.named(self.accountant)
        if self.claim.only_delta not in (None, self.delta):
            raise InvalidInput("delta", self.delta, f"the claim's own δ, {self.claim.only_delta:g}")
        audited = Neighbours(self.subject.unit, self.relation)
        require_same_neighbours("the claim", self.neighbours, f"the {self.subject.noun}", audited)
        if not self.adversary.zeroes:
            self.subject.require_relation(self.claim.relation)
        self.subject.require_claim(self.claim)
        self.promise.require(self.delta, self.relation, self.accountant)

    def _require_powers(self) -> None:
        """Nobody plays who needs more than the subject grants and offers: better to say so before any training."""
        granted = self.access & self.subject.grants
        if lacking := granted.lacks(self.adversary.needs):
            needed = f"needs no more than this training grants ({granted}); it also needs {', '.join(lacking)}"
        elif lacked := self.adversary.lacks(self.subject):
            words = " and ".join(one.words for one in lacked)
            needed = f"{self.subject.describe()} offers enough to; it needs {words}"
        else:
            return
        foreign = self.subject.safeguards.foreign  # whose adversaries are least privileged by themselves
        usual = {name: kind.least_privileged() if foreign else kind() for name, kind in ADVERSARIES.items()}
        able = [n for n, one in usual.items() if not granted.lacks(one.needs) and not one.lacks(self.subject)]
        remedy = f"these would work: {', '.join(able)}" if able else "no adversary here works with so little"
        raise InvalidInput("adversary", self.adversary.describe(), f"one that {needed}", remedy)

    @property
    def planned_trials(self) -> int:
        """Of each world."""
        return self.adversary.evidence_type.usual_trials if self.trials is None else self.trials

    @functools.cached_property
    def planned_method(self) -> Method:
        """The method that judges: as asked for, or the usual one for this kind of evidence."""
        kind = self.adversary.evidence_type
        name = kind.usual_method if self.method is None else self.method.name
        known = METHODS.own.get(name)
        if known is not None and known.needs_mechanism and kind in known.evidence_type:
            return known.method(Settings(mechanism=self._stated_steps()))  # the training says how steps compose
        if self.method is None:
            return default_method(kind, self.seed)
        if is_sequential(self.method) and hasattr(self.method, "in_order"):
            # It may stop the audit, which only the trials' own order allows.
            return replace(self.method, in_order=True)  # type: ignore[type-var]
        return self.method

    def _stated_steps(self) -> DpSgd:
        if self.promise.steps is None:
            expected = "a training that says its sample rate, noise and steps, which an accountant adds up"
            raise InvalidInput("subject", self.subject.describe(), expected, "use another adversary")
        return self.promise.steps

    @property
    def promise(self) -> Promise:
        """What the subject promises."""
        return self.subject.promise

    @property
    def neighbours(self) -> Neighbours:
        return self.claim.neighbours

    @property
    def relation(self) -> Relation:
        return self.claim.relation

    @property
    def worlds(self) -> tuple[int, ...]:
        return self.adversary.evidence_type.worlds

    @functools.cached_property
    def upper_bound(self) -> UpperBound | None:
        """What theory promises for the subject, at the plan's δ and for the claim's neighbours; none if it says too
        little of itself."""
        return self.promise.upper_bound(self.delta, self.neighbours, self.accountant)

    @functools.cached_property
    def claimed_epsilon(self) -> float:
        """ε of the claim at the plan's δ."""
        return self.claim.epsilon_at(self.delta)

    @property
    def first_look(self) -> int:
        return self.adversary.evidence_type.first_look

    # ------------------------------------------------------------------------------------- what it is made of
    def __repr__(self) -> str:
        return (
            f"Plan({self.subject.describe()}; {self.claim.describe()}; {self.adversary!r}; {self.planned_trials} "
            f"trials per world, {self.confidence:g} confidence, seed {self.seed})"
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data; two plans with the same dictionary give the same scores."""
        return dict(self._content)

    def __getstate__(self) -> dict[str, Any]:
        """What was said; all that follows from it, another process finds for itself, with its own version of the
        code."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @functools.cached_property
    def _content(self) -> dict[str, Any]:
        subject = self.subject.identity()
        return {
            "trial_version": TRIAL_VERSION,
            "claim": self.claim.to_dict(),
            "delta": self.delta,
            **subject,
            "data": subject["data"] | self.adversary.reads(self.subject.data),
            "adversary": _named(self.adversary),
            "evidence": self.adversary.evidence_type.__name__,
            "group_size": self.adversary.group_size,
            "trials": self.planned_trials,
            "confidence": self.confidence,
            "method": method_as_dict(self.planned_method),
            "seed": self.seed,
            "accountant": self.accountant,
        }

    def about(self) -> dict[str, Any]:
        return {"claimed_epsilon": self.claimed_epsilon}

    def code(self) -> list[Any]:
        kind = type(self.adversary)
        return [*([] if _is_ours(kind) else [kind]), *self.subject.code()]

    @property
    def safeguards(self) -> Isolation:
        return self.subject.safeguards

    # ------------------------------------------------------------------------------------- its trials (see Trials)
    def prepare(self) -> Preparation:
        """What the adversary makes before the first trial, with randomness of its own."""
        self.subject.load()
        with one_thread():
            made = self.adversary.prepare(self.subject, self.relation, seed_of(self.seed, Stream.PREPARING, 0))
        return Preparation(made)

    def game(self, prepared: Preparation) -> Game:
        return _crafted(self, prepared)

    def play(self, prepared: Preparation, trials: Sequence[Trial]) -> list[Floats]:
        game, kind = self.game(prepared), self.adversary.evidence_type
        sides = [kind.side(self.seed, trial, game.scores) for trial in trials]
        inserting = Seeds(self.seed, [(Stream.INSERTING, index) for _, index in trials])
        # Worlds must be independent: trial i of one is of another game than trial i of the other.
        drawing = Seeds(self.seed, [(Stream.DRAWING, 2 * index + world) for world, index in trials])
        return self.observe(game, trials, game.parties(sides, inserting, drawing), Seeds(self.seed, trials))

    def observe(
        self,
        game: Game,
        trials: Sequence[Trial],
        parties: Sequence[tuple[Insertion, Observer]],
        seeds: Sequence[np.random.SeedSequence],
    ) -> list[Floats]:
        """The scores of trainings with these insertions, observers and seeds."""
        observers = [observer for _, observer in parties]
        self.subject.run([insertion for insertion, _ in parties], seeds, observers)
        seen = {trial: observer.score() for trial, observer in zip(trials, observers, strict=True)}
        found = require_scores(seen, self.adversary.name, game.scores)
        return [found[trial] for trial in trials]

    def accepted(self, results: Mapping[Trial, Any], **remedy: str) -> dict[Trial, Floats]:
        length = self.adversary.scores_a_trial(self.subject)
        return require_scores(results, self.adversary.name, length, **remedy)

    def evidence(self, results: Results, count: int) -> Evidence:
        """What the first `count` trials of each world have shown."""
        needed = self.accepted({(world, i): results[world, i] for world in self.worlds for i in range(count)})
        kind, group_size = self.adversary.evidence_type, self.adversary.group_size
        seen: Evidence = self.adversary.arranged(
            self.subject, kind.collect(needed, count, self.seed, self.neighbours, group_size), count
        )
        return seen

    def bound_so_far(self, results: Results, count: int) -> LowerBound:
        """What the first `count` trials of each world certify; it counts only if the method may stop early."""
        seen = self.evidence(results, count)
        return self.planned_method.bound(seen, delta=self.delta, confidence=self.confidence)

    def so_far(self, results: Results, count: int) -> str:
        return f"ε ≥ {down(self.bound_so_far(results, count).epsilon, 3)}"

    def rehearsal(self) -> Rehearsal | None:
        """A control, where there are trials of two worlds."""
        from epsilometer.auditing.foreign import Control

        return Control(self) if self.adversary.evidence_type.independent else None

    def describe(self) -> str:
        return self.adversary.describe()

    def is_enough(self, results: Results, count: int) -> bool:
        method = self.planned_method
        if not is_sequential(method):
            return False
        return cast(Sequential, method).enough(self.evidence(results, count), self.claim, self.delta, self.confidence)


@functools.lru_cache(maxsize=2)
def _crafted(plan: Plan, prepared: Preparation) -> Game:
    plan.subject.load()
    with one_thread():
        game = plan.adversary.craft(plan.subject, plan.relation, prepared.arrays)
    played = Neighbours(plan.subject.unit if game.unit is None else game.unit, game.relation)
    require_same_neighbours("the claim", plan.neighbours, "the game", played)
    if game.group_size != plan.adversary.group_size:
        expected = f"the adversary's {plan.adversary.group_size}"
        raise InvalidInput("group_size of the game", game.group_size, expected, "override the adversary's group_size")
    return game


def _named(adversary: Adversary) -> dict[str, Any]:
    """Name and settings; a class of the user's own too, which may have kept the name of the one that it changes."""
    kind = type(adversary)
    own = {} if _is_ours(kind) else {"class": code_of(kind)}  # no setting has that name
    unused = {name for name in kind.fields_since if getattr(adversary, name) == getattr(kind, name)}
    settings = {name: value for name, value in asdict(adversary).items() if name not in unused}  # type: ignore[call-overload]
    return {"name": adversary.name, **own, **settings}


def _is_ours(kind: type[Adversary]) -> bool:
    """Whether `TRIAL_VERSION` speaks for its code, also where no spec can name it."""
    return kind.__module__.startswith("epsilometer.adversaries.")
