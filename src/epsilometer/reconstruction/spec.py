"""Spec files (TOML) of `epsilometer reconstruct`: what a person writes, checked key by key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic

from epsilometer import validate
from epsilometer.auditing.spec_sections import DataSection, Section
from epsilometer.auditing.spec_text import parse_toml, read_toml, validated
from epsilometer.data import Progress
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.reconstruction.attacks import Differencing, GradientInversion, RecordAttack
from epsilometer.reconstruction.plan import NOISES, ReconstructionPlan

RECORD_ATTACKS = {
    "sums": "a sum of records minus the same sum without one of them (differencing)",
    "layer": "the gradient of one record by softmax regression, one layer",
    "network": "the gradient of one record by a fully connected network",
}


class ReconstructionSection(Section):
    """Which attack on how many records, at which noise, and its own settings; how it is judged."""

    attack: str = "network"
    noises: list[float] = pydantic.Field(default_factory=lambda: list(NOISES))
    records: int = 20
    hidden: list[int] | None = None
    clip_norm: float | None = None
    in_sum: int | None = None
    releases: int | None = None
    delta: float = 1e-5
    confidence: float = 0.95
    seed: int = 0

    def record_attack(self) -> RecordAttack:
        if self.attack not in RECORD_ATTACKS:
            raise unknown_name("attack", self.attack, RECORD_ATTACKS)
        own: dict[str, tuple[tuple[str, ...], Callable[..., RecordAttack]]] = {
            "sums": (("in_sum", "releases"), Differencing),
            "layer": (("clip_norm",), lambda **settings: GradientInversion(hidden=(), **settings)),
            "network": (("hidden", "clip_norm"), _network),
        }
        names, make = own[self.attack]
        for name in ("hidden", "clip_norm", "in_sum", "releases"):
            value = getattr(self, name)
            if value is not None and name not in names:
                fits = " or ".join(one for one, (known, _) in own.items() if name in known)
                raise InvalidInput(name, value, f"nothing for {self.attack}", f"it is a setting of {fits}")
        return make(**self.model_dump(include=set(names), exclude_none=True))


class ReconstructionSpec(Section):
    """A whole spec. Every key has a default; together they rebuild embedded digits from gradients."""

    data: DataSection = DataSection()
    reconstruction: ReconstructionSection = ReconstructionSection()

    def study(self, data_dir: Path | None = None, progress: Progress | None = None) -> Study:
        """What is to be done, with everything that the spec left open decided."""
        asked = self.reconstruction
        try:
            validate.real("delta", asked.delta, above=0, below=1, remedy="a common choice is 1e-5")
            validate.confidence(asked.confidence)
            attack = asked.record_attack()
            data = self.data.load(data_dir, progress)
            plan = ReconstructionPlan(data, attack, tuple(asked.noises), asked.records, asked.seed)
        except InvalidInput as error:
            known = type(asked).model_fields
            raise error.renamed(f"reconstruction.{error.argument}") if error.argument in known else error from None
        return Study(plan, asked.delta, asked.confidence)


@dataclass(frozen=True)
class Study:
    """A plan, and how it is judged."""

    plan: ReconstructionPlan
    delta: float = 1e-5
    confidence: float = 0.95


def parse_reconstruction(text: str | bytes, source: str = "spec") -> ReconstructionSpec:
    """A spec from TOML.

    >>> parse_reconstruction('[reconstruction]\\nnoises = [0, 0.5]').reconstruction.noises
    [0.0, 0.5]
    """
    return validated(ReconstructionSpec, parse_toml(text, source))


def read_reconstruction(path: Path) -> ReconstructionSpec:
    """A spec from a file."""
    return validated(ReconstructionSpec, read_toml(path))


def reconstruction_from_dict(values: dict[str, Any]) -> ReconstructionSpec:
    """A spec from nested dictionaries."""
    return validated(ReconstructionSpec, values)


def _network(hidden: list[int] | None = None, **settings: Any) -> RecordAttack:
    if hidden == []:
        raise InvalidInput("hidden", [], "at least one hidden layer, such as [32]", "layer is the attack without any")
    return GradientInversion(**settings) if hidden is None else GradientInversion(tuple(hidden), **settings)
