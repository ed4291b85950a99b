"""Spec files (TOML) of `epsilometer property`: what a person writes, checked key by key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic

from epsilometer import validate
from epsilometer.auditing.spec_sections import DataSection, Section
from epsilometer.auditing.spec_text import parse_toml, read_toml, validated
from epsilometer.collaborative.plan import PropertyPlan
from epsilometer.collaborative.properties import Marked, property_named, property_of_feature
from epsilometer.collaborative.property_inference import Collaboration
from epsilometer.collaborative.updates import Updates
from epsilometer.data import Progress
from epsilometer.errors import InvalidInput
from epsilometer.training import Network

USUAL = "ink"


class CollaborationSection(Section):
    """Two participants and their network; what an update is, and what its noise hides (see `Updates`)."""

    hidden: list[int] = pydantic.Field(default_factory=lambda: [16])
    rounds: int = 20
    batch: int = 32
    learning_rate: float = 0.5
    rehearsals: int = 4
    level: str = "none"
    noise_multiplier: float = 0.0
    clip_norm: float = 1.0

    def collaboration(self, features: int, classes: int) -> Collaboration:
        for width in self.hidden:
            validate.whole("hidden", width, least=1, most=100_000)
        if not self.hidden:
            raise InvalidInput("hidden", [], "at least one hidden layer, such as [16]")
        updates = Updates(self.level, self.noise_multiplier, self.clip_norm)
        settings = self.model_dump(include={"rounds", "batch", "learning_rate", "rehearsals"})
        return Collaboration(Network((features, *self.hidden, classes), "tanh"), updates, **settings)


class PropertySection(Section):
    """Which property: one by name, or a feature's being large; how many collaborations; how they are judged."""

    name: str | None = None
    feature: int | None = None
    threshold: float | None = None
    trials: int = 100
    control: bool = True
    delta: float = 1e-5
    confidence: float = 0.95
    seed: int = 0


class PropertySpec(Section):
    """A whole spec. Every key has a default; together they are a small network on the embedded digits."""

    data: DataSection = DataSection()
    collaboration: CollaborationSection = CollaborationSection()
    property: PropertySection = PropertySection()

    def study(self, data_dir: Path | None = None, progress: Progress | None = None) -> Study:
        """What is to be done, with everything that the spec left open decided."""
        try:
            return self._study(data_dir, progress)
        except InvalidInput as error:
            sections: list[tuple[str, Section]] = [
                ("property", self.property),
                ("collaboration", self.collaboration),
            ]
            known = {field: f"{name}.{field}" for name, section in sections for field in type(section).model_fields}
            raise error.renamed(known[error.argument]) if error.argument in known else error from None

    def _study(self, data_dir: Path | None, progress: Progress | None) -> Study:
        asked = self.property
        validate.delta(asked.delta)
        validate.confidence(asked.confidence)
        marked = self._marked(data_dir, progress)
        plan = PropertyPlan(
            marked=marked,
            collaboration=self.collaboration.collaboration(marked.data.x.shape[1], marked.data.classes),
            trials=asked.trials,
            control=asked.control,
            seed=asked.seed,
        )
        return Study(plan, asked.delta, asked.confidence)

    def _marked(self, data_dir: Path | None, progress: Progress | None) -> Marked:
        asked = self.property
        if asked.feature is not None and asked.name is not None:
            raise InvalidInput("property.name", asked.name, "nothing beside property.feature", "remove one of the two")
        if asked.feature is None and asked.threshold is not None:
            expected = "nothing without property.feature"
            raise InvalidInput("property.threshold", asked.threshold, expected, "say which feature")
        data = self.data.load(data_dir, progress)
        if asked.feature is not None:
            return property_of_feature(asked.feature, data, asked.threshold)
        return property_named(USUAL if asked.name is None else asked.name, data)


@dataclass(frozen=True)
class Study:
    """A plan, and how it is judged."""

    plan: PropertyPlan
    delta: float = 1e-5
    confidence: float = 0.95


def parse_property(text: str | bytes, source: str = "spec") -> PropertySpec:
    """A spec from TOML.

    >>> parse_property('[collaboration]\\nrounds = 12').collaboration.rounds
    12
    """
    return validated(PropertySpec, parse_toml(text, source))


def read_property(path: Path) -> PropertySpec:
    """A spec from a file."""
    return validated(PropertySpec, read_toml(path))


def property_from_dict(values: dict[str, Any]) -> PropertySpec:
    """A spec from nested dictionaries."""
    return validated(PropertySpec, values)
