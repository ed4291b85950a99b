"""The sections of a spec: which keys each has, their types and defaults."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

from epsilometer import validate
from epsilometer.data import Dataset, Progress, load, own_data
from epsilometer.errors import InvalidInput
from epsilometer.neighbours import RECORD, Neighbours
from epsilometer.subjects import Controls, Entry, Sees, Subject
from epsilometer.training import is_module, register


class Section(BaseModel):
    """Keys of a spec: no others, and of no other type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @classmethod
    def keys_of(cls, section: str, given: Any = None) -> Mapping[str, Any]:
        """The keys that a section of this spec may have; of several kinds, the one that is `given`, or all."""
        return getattr(cls.model_fields[section].annotation, "model_fields", {})


class ClaimSection(Section):
    """What the training promises. Of `epsilon` and `training.noise_multiplier` at least one may be left out."""

    epsilon: float | None = None
    delta: float = 1e-5
    relation: str = "add-remove"
    unit: str = RECORD  # of the promise; in a training of one's own, also what a row of the data is
    form: Literal["curve", "point"] | None = None

    @property
    def neighbours(self) -> Neighbours:
        """Of which the claim speaks."""
        return Neighbours(self.unit, self.relation)  # type: ignore[arg-type]  # it reads names


class DataSection(Section):
    """A data set by name; or a file of the user's own: .npz, .csv or .parquet."""

    name: str = "digits"
    path: str | None = None
    classes: list[str | int] | None = None
    per_class: int | None = None
    held_out: int | None = None
    clusters: int | None = None

    def load(self, data_dir: Path | None = None, progress: Progress | None = None) -> Dataset:
        """The data; `data_dir` is where files may lie, and `progress` is told about downloads.

        With records that are to be held out, which come behind the others of their class.
        """
        per_class, held_out = self.per_class, self.held_out
        if held_out is not None:
            validate.whole("data.held_out", held_out, least=1, most=10**9)
            per_class = None if per_class is None else validate.whole("data.per_class", per_class, least=1) + held_out
        data = self._named(per_class, data_dir, progress) if self.path is None else self._own(self.path, per_class)
        return data if held_out is None else data.holding_out(held_out)

    def _named(self, per_class: int | None, data_dir: Path | None, progress: Progress | None) -> Dataset:
        chosen = {"name": self.name, "classes": self.classes, "per_class": per_class, "clusters": self.clusters}
        return load(**chosen, directory=data_dir, progress=progress)  # type: ignore[arg-type]

    def _own(self, path: str, per_class: int | None) -> Dataset:
        if "name" in self.model_fields_set and self.name != DataSection().name:
            raise InvalidInput("data.path", path, "nothing beside data.name", "remove one of the two")
        if self.clusters is not None:
            raise InvalidInput("data.clusters", self.clusters, "nothing beside data.path", "remove one of the two")
        try:
            found = own_data(path)
        except InvalidInput as error:
            raise error.renamed("data.path") if error.argument == "data" else error from None
        return found.subset(self.classes, per_class)


class ModelSection(Section):
    """The model by name; or `mymodule:Net`, a torch module made from (features, classes)."""

    name: str = "logistic"
    hidden: list[int] = [32]
    activation: str = "relu"
    loss: str = "cross-entropy"
    initialisation: str = "fixed"
    init_scale: float = 1.0
    init_seed: int = 0
    precision: str = "float32"

    def settings(self) -> dict[str, Any]:
        """As a recipe has them; a module of the user's own is made known."""
        given = self.model_dump()
        return given | {"model": _known(given.pop("name")), "hidden": tuple(given["hidden"])}


class TrainingSection(Section):
    sample_rate: float = 0.1
    steps: int = 100
    learning_rate: float = 2.0
    clip_norm: float | Literal["median"] = 1.0
    noise_multiplier: float | None = None
    budget: float | None = None
    sampling: str = "poisson"
    clipping: str = "flat"
    optimizer: str = "sgd"
    momentum: float = 0.9
    weight_decay: float = 0.0
    schedule: str = "constant"
    final_learning_rate: float = 0.0
    decay_steps: int | None = None

    @pydantic.field_validator("clip_norm", mode="plain")
    @classmethod
    def _number_or_median(cls, value: Any) -> Any:
        if value == "median":
            return value
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**1023:
            return float(value)
        raise PydanticCustomError("clip_norm", 'a number, or "median"')


class AdversarySection(BaseModel):
    """The adversary's name, and whatever settings it has; the usual one for the subject, if there is no name."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    name: str | None = None


class AuditSection(Section):
    trials: int | None = None
    confidence: float = 0.95
    seed: int = 0
    bound: str | None = None
    threshold: float | None = None
    target: float | None = None
    accountant: str = "pld"


class AccessSection(Section):
    """What the training grants to those who attack it: everything, if nothing is said."""

    sees: str = Sees.EVERY_MODEL.value
    controls: list[str] = [power.value for power in Controls]


class FaultsSection(Section):
    """Faults to inject on purpose; see `Faults`."""

    noise_scale: float = 1.0


class SubjectSection(Section):
    """What is audited, by the name of its kind; each kind has keys of its own (see `kinds`)."""

    name: str | None = None

    def training(self, data: Dataset) -> Subject | None:
        """The subject on other records, for studies that train it on their own; none stands for our own DP-SGD."""
        raise InvalidInput("subject.name", self.name, "nothing here: models must tell classes apart")


def _known(model: str) -> str:
    """The model's name; if it is `module:name`, the class or function is made known under it first."""
    if ":" not in model or is_module(model):
        return model
    factory = Entry.of(model, "model").load("model")
    try:
        inspect.signature(factory).bind(1, 2)
    except TypeError:
        expected = "something that makes a torch module from (features, classes)"
        raise InvalidInput("model", model, expected, "give it these two parameters") from None
    register(model, factory)
    return model
