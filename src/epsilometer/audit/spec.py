"""Spec files (TOML): what a person writes, checked key by key, turned into a plan."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict

from epsilometer.accounting import ACCOUNTANTS
from epsilometer.adversaries import ADVERSARIES, Adversary
from epsilometer.audit.plan import Faults, Plan, claim_curve, noise_for
from epsilometer.bounds import strategy_named
from epsilometer.claims import Claim, PointClaim, Relation
from epsilometer.data import load
from epsilometer.errors import EpsilometerError, InvalidInput, unknown_name
from epsilometer.training import Recipe


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ClaimSection(_Section):
    """What the training promises. Of `epsilon` and `training.noise_multiplier` at least one may be left out."""

    epsilon: float | None = None
    delta: float = 1e-5
    relation: str = "add-remove"
    form: Literal["curve", "point"] | None = None


class DataSection(_Section):
    name: str = "digits"


class ModelSection(_Section):
    name: str = "logistic"
    hidden: list[int] = [32]
    activation: str = "relu"
    loss: str = "cross-entropy"
    initialisation: str = "fixed"
    init_scale: float = 1.0
    init_seed: int = 0
    precision: str = "float32"


class TrainingSection(_Section):
    sample_rate: float = 0.1
    steps: int = 100
    learning_rate: float = 2.0
    clip_norm: float = 1.0
    noise_multiplier: float | None = None
    sampling: str = "poisson"
    clipping: str = "flat"
    optimizer: str = "sgd"
    momentum: float = 0.9
    weight_decay: float = 0.0
    schedule: str = "constant"


class AdversarySection(_Section):
    """`coordinates` is for `gradient`, `copies` for `clipbkd`."""

    name: str = "gradient"
    coordinates: int | None = None
    copies: int | None = None


class AuditSection(_Section):
    trials: int = 500
    confidence: float = 0.95
    seed: int = 0
    thresholds: str = "union-bound"
    threshold: float | None = None
    accountant: str = "pld"


class FaultsSection(_Section):
    """Faults to inject on purpose; see `Faults`."""

    noise_scale: float = 1.0


class Spec(_Section):
    """A whole spec. Every key has a default; together they are the embedded default audit."""

    claim: ClaimSection = ClaimSection()
    data: DataSection = DataSection()
    model: ModelSection = ModelSection()
    training: TrainingSection = TrainingSection()
    adversary: AdversarySection = AdversarySection()
    audit: AuditSection = AuditSection()
    faults: FaultsSection = FaultsSection()

    def plan(self) -> Plan:
        """The plan that this spec describes, with everything that it left open decided."""
        data = load(self.data.name)
        relation = Relation.of(self.claim.relation)
        epsilon, noise = self.claim.epsilon, self.training.noise_multiplier
        form = self.claim.form or ("point" if epsilon is not None and noise is not None else "curve")
        if form == "curve" and epsilon is not None and noise is not None:
            raise InvalidInput(
                "claim.form", "curve", "one of claim.epsilon and training.noise_multiplier, not both",
                "a curve follows from the noise: leave epsilon out, or claim a point",
            )  # fmt: skip
        if epsilon is None and noise is None:
            epsilon = 4.0
        if self.audit.accountant not in ACCOUNTANTS:
            raise unknown_name("audit.accountant", self.audit.accountant, ACCOUNTANTS)
        if noise is None:
            assert epsilon is not None
            noise = noise_for(epsilon, self.claim.delta, self.training.sample_rate, self.training.steps, relation)
        model = self.model.model_dump()
        training = self.training.model_dump(exclude={"noise_multiplier"})
        model |= {"model": model.pop("name"), "hidden": tuple(model["hidden"])}
        recipe = Recipe(records=len(data), noise_multiplier=noise, **model, **training)
        claim: Claim = claim_curve(recipe, relation)
        if form == "point":
            if epsilon is None:
                raise InvalidInput("claim.epsilon", None, "the ε of a point claim", "add epsilon to [claim]")
            claim = PointClaim(epsilon, self.claim.delta, relation)
        return Plan(
            claim=claim,
            delta=self.claim.delta,
            data=data,
            recipe=recipe,
            adversary=self._adversary(),
            trials=self.audit.trials,
            confidence=self.audit.confidence,
            thresholds=strategy_named(self.audit.thresholds, self.audit.threshold, self.audit.seed),
            seed=self.audit.seed,
            faults=Faults(self.faults.noise_scale),
            accountant=self.audit.accountant,
        )

    def _adversary(self) -> Adversary:
        section = self.adversary
        if section.name not in ADVERSARIES:
            raise unknown_name("adversary.name", section.name, ADVERSARIES)
        chosen = ADVERSARIES[section.name]
        given = section.model_dump(exclude={"name"}, exclude_none=True)
        known = set(getattr(chosen, "__dataclass_fields__", {}))
        for key in given:
            if key not in known:
                owner = f"a setting of {section.name}" + (f" ({', '.join(sorted(known))})" if known else "")
                raise InvalidInput(f"adversary.{key}", given[key], owner, "remove it or choose another adversary")
        return chosen(**given)


def parse_spec(text: str | bytes, source: str = "spec") -> Spec:
    """A spec from TOML; every mistake is an `InvalidInput` that names the key.

    >>> parse_spec('[training]\\nlearning_rte = 1.0')
    Traceback (most recent call last):
    ...
    epsilometer.errors.InvalidInput: training.learning_rte = 1.0: expected ... did you mean 'learning_rate'?
    """
    try:
        decoded = text.decode() if isinstance(text, bytes) else text
        return spec_from_dict(tomllib.loads(decoded))
    except UnicodeDecodeError:
        raise InvalidInput(source, "bytes that are not UTF-8", "a TOML file", "save it as UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(source, str(error), "a TOML file") from None


def read_spec(path: Path) -> Spec:
    """A spec from a file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput("SPEC", str(path), f"a readable file ({error.strerror})") from None
    return parse_spec(content, path.name)


def spec_from_dict(values: dict[str, Any]) -> Spec:
    """A spec from nested dictionaries."""
    try:
        return Spec.model_validate(values)
    except pydantic.ValidationError as error:
        raise _explain(error.errors()[0]) from None


def _explain(error: Any) -> EpsilometerError:
    """pydantic's first complaint as one of our lines."""
    path = [str(part) for part in error["loc"]]
    key = ".".join(path)
    if error["type"] == "extra_forbidden":
        section: Any = Spec
        for part in path[:-1]:
            section = section.model_fields[part].annotation
        unknown = unknown_name(key, path[-1], section.model_fields)
        return InvalidInput(key, error["input"], unknown.expected, unknown.remedy)
    if error["type"] == "literal_error":
        valid = [name.strip("'\" ") for name in error["ctx"]["expected"].replace(" or ", ",").split(",")]
        return unknown_name(key, error["input"], valid)
    kinds = {
        "float_type": "a number",
        "int_type": "a whole number",
        "string_type": "a text in quotes",
        "list_type": "a list in brackets",
        "model_type": "a section of keys",
        "model_attributes_type": "a section of keys",
    }
    return InvalidInput(key, error["input"], kinds.get(error["type"], error["msg"]))
