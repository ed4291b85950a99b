"""A plan: everything that decides an audit's result, frozen before the first trial."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from epsilometer import checks
from epsilometer.accounting import ACCOUNTANTS, LARGEST_EPSILON, UpperBound, account, calibrate, curve
from epsilometer.adversaries import ADVERSARIES, Access, Adversary
from epsilometer.audit.per_step import ComposedSteps
from epsilometer.audit.user_code import code_of
from epsilometer.bounds import METHODS, EProcess, Method, default_method, method_as_dict, method_named
from epsilometer.claims import Claim, CurveClaim, PointClaim, Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.evidence import CoinFlips, PerStep
from epsilometer.plain import plain
from epsilometer.training import ModuleNetwork, Recipe, engine_of, network_for

TRIAL_VERSION = 3  # raised whenever the same plan would give other scores
MOST_TRIALS = 10**6  # of a world: more trainings than anybody waits for, in as much memory as anybody has


@dataclass(frozen=True)
class Faults:
    """Faults injected on purpose into the audited training, to see whether the audit notices.

    `noise_scale` multiplies the noise that is really added, while claim and adversary still believe in the
    recipe's noise multiplier.
    """

    noise_scale: float = 1.0

    def __post_init__(self) -> None:
        checks.real("noise_scale", self.noise_scale, above=0, closed="[", remedy="1 injects no fault")


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Claim, data, recipe, adversary, number of trials a world, confidence, method, seed."""

    claim: Claim
    delta: float
    data: Dataset
    recipe: Recipe
    adversary: Adversary
    trials: int = None  # type: ignore[assignment]  # 500 of each world, or one run of many canaries
    confidence: float = 0.95
    method: Method = None  # type: ignore[assignment]  # the default for the adversary's kind of evidence
    seed: int = 0
    faults: Faults = field(default_factory=Faults)
    accountant: str = "pld"
    access: Access = field(default_factory=Access)  # decides no score, only who may play

    def __post_init__(self) -> None:
        if not isinstance(self.claim, Claim):
            raise InvalidInput("claim", self.claim, "a claim such as claim_curve(recipe) or PointClaim(epsilon, delta)")
        if not isinstance(self.adversary, Adversary):
            raise InvalidInput("adversary", self.adversary, "an adversary such as Gradient()")
        gives = self.adversary.gives
        by_coins, per_step = issubclass(gives, CoinFlips), gives is PerStep
        defaults = {
            "trials": (2 if per_step else 1) if by_coins else 500,
            "method": ComposedSteps(self.recipe.mechanism) if per_step else default_method(gives),
        }
        for name, default in defaults.items():
            stale = isinstance(default, ComposedSteps) and isinstance(getattr(self, name), ComposedSteps)
            if getattr(self, name) is None or stale:  # the recipe decides how steps are composed, and nothing else
                object.__setattr__(self, name, default)
        if not hasattr(self.method, "takes"):
            raise InvalidInput("method", self.method, "a method such as ExactRank()", "method_named(name) gives one")
        if isinstance(self.method, EProcess):  # it may stop the audit, which only the trials' own order allows
            object.__setattr__(self, "method", replace(self.method, in_order=True))
        least, what = (1, "trainings with all canaries") if by_coins else (2, "counted for each world")
        checks.whole("trials", self.trials, least=least, most=MOST_TRIALS, remedy=f"trials are {what}")
        if self.method.takes is not self.adversary.gives:
            fitting = [name for name in METHODS if name != "fixed" and method_named(name).takes is self.adversary.gives]
            expected = f"a method for {self.adversary.name} ({', '.join(fitting) or ComposedSteps.name})"
            given = getattr(self.method, "thresholds", self.method).name
            raise InvalidInput("method", given, expected, "leave it out for the default")
        self._require_powers()
        checks.confidence(self.confidence)
        checks.seed("seed", self.seed)
        checks.delta(self.delta)
        if self.recipe.records != len(self.data):
            raise InvalidInput("records", self.recipe.records, f"the {len(self.data)} records of {self.data.name}")
        if self.accountant not in ACCOUNTANTS:
            raise unknown_name("accountant", self.accountant, ACCOUNTANTS)
        if isinstance(self.claim, PointClaim) and self.claim.delta != self.delta:
            raise InvalidInput("delta", self.delta, f"the claim's own δ, {self.claim.delta:g}")
        if self.relation is Relation.ZERO_OUT and not self.recipe.is_accounted:
            raise InvalidInput(
                "sampling", self.recipe.sampling, "poisson or full with zero-out: a record that is left out would "
                "change other batches too", "claim add-remove or replace",
            )  # fmt: skip
        if isinstance(self.claim, CurveClaim) and not self.recipe.is_accounted:
            raise InvalidInput(
                "sampling", self.recipe.sampling, "poisson or full for a curve, which accountants prove for these only",
                "claim a point instead",
            )  # fmt: skip

    def _require_powers(self) -> None:
        """Nobody plays who needs more than the training grants: better to say so before any training."""
        lacking = self.access.lacks(self.adversary.needs)
        if lacking:
            able = [name for name, kind in ADVERSARIES.items() if not self.access.lacks(kind().needs)]
            raise InvalidInput(
                "adversary", self.adversary.describe(),
                f"one that needs no more than this training grants ({self.access}); it also needs {', '.join(lacking)}",
                f"these would work: {', '.join(able)}" if able else "no adversary here works with so little",
            )  # fmt: skip

    @property
    def relation(self) -> Relation:
        return self.claim.relation

    @property
    def upper_bound(self) -> UpperBound:
        """What theory promises for the recipe, at the plan's δ and under the claim's relation."""
        bound = account(self.recipe.mechanism, self.delta, self.claim.relation, self.accountant)
        if self.recipe.is_accounted:
            return bound
        return replace(bound, caveat=f"proved for Poisson sampling; this training's is {self.recipe.sampling}")

    @property
    def claimed_epsilon(self) -> float:
        """ε of the claim at the plan's δ."""
        return self.claim.epsilon_at(self.delta)

    def __repr__(self) -> str:
        return (
            f"Plan({self.claim.describe()}; {self.data!r}; {self.adversary!r}; {self.trials} trials a world, "
            f"{self.confidence:g} confidence, seed {self.seed})"
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data; two plans with the same dictionary give the same scores."""
        return {
            "trial_version": TRIAL_VERSION,
            "claim": self.claim.to_dict(),
            "delta": self.delta,
            "data": {"name": self.data.name, "records": len(self.data), "sha256": self.data.fingerprint()}
            | self.data.origin()
            | self.adversary.reads(self.data),
            "recipe": self.recipe.to_dict() | _module_of(self.recipe, self.data),
            "engine": engine_of(self.recipe),
            "adversary": _named(self.adversary),
            "evidence": self.adversary.gives.__name__,
            "group_size": self.adversary.group_size,
            "trials": self.trials,
            "confidence": self.confidence,
            "method": method_as_dict(self.method),
            "seed": self.seed,
            "faults": asdict(self.faults),
            "accountant": self.accountant,
        }

    def to_json(self) -> str:
        """The same as text, always in the same words: 1 and 1.0 are one number."""
        return json.dumps(_canonical(plain(self.to_dict())), sort_keys=True)

    def fingerprint(self) -> str:
        """A hash of the whole plan."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def _named(adversary: Adversary) -> dict[str, Any]:
    """Name and settings; a class of the user's own too, which may have kept the name of the one that it changes."""
    kind = type(adversary)
    own = {} if ADVERSARIES.get(adversary.name) is kind else {"class": code_of(kind)}  # no setting has that name
    return {"name": adversary.name, **own, **asdict(adversary)}  # type: ignore[call-overload]


def _module_of(recipe: Recipe, data: Dataset) -> dict[str, Any]:
    """What a torch module is and does, and the code of one of the user's own: outputs do not tell its gradients."""
    network = network_for(recipe, data)
    if not isinstance(network, ModuleNetwork):
        return {}
    ours = getattr(network.factory, "__module__", "").split(".")[0] == "epsilometer"
    return {"module_sha256": network.fingerprint()} | ({} if ours else {"module_code": code_of(network.factory)})


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def claim_curve(recipe: Recipe, relation: Relation | str = Relation.ADD_REMOVE) -> Claim:
    """The curve that a recipe promises: the default claim of an audit."""
    return curve(recipe.mechanism, Relation.of(relation))


def noise_for(
    epsilon: float, delta: float, sample_rate: float, steps: int, relation: Relation | str = Relation.ADD_REMOVE
) -> float:
    """The noise multiplier with which theory (PLD) promises (ε, δ), for an ε that an audit can speak of."""
    remedy = "no audit can tell more from no privacy at all, for which noise_multiplier = 0 stands"
    checks.real("epsilon", epsilon, above=0, below=LARGEST_EPSILON, closed="]", remedy=remedy)
    return calibrate(epsilon=epsilon, delta=delta, sample_rate=sample_rate, steps=steps, relation=Relation.of(relation))
