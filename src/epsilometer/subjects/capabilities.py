"""What a subject may offer to those who attack it, asked for by type: `subject.offers(NoisySteps)`.

An adversary says which capabilities it requires, and a plan refuses it where the subject lacks one. So any training in
noisy steps, whoever wrote it, is attacked by all adversaries that need no more than noisy steps. A subject offers a
capability by inheriting it, or by giving an object of that type (`Subject.offers`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.data import RegressionData
from epsilometer.mechanisms import Mechanism, PrivateRidge
from epsilometer.mechanisms.erm import PrivateErm
from epsilometer.subjects.access import Sees, ThreatModel
from epsilometer.training import Array, Labels, ModuleNetwork, Network, Recipe


class Capability(ABC):
    """`words` say what a subject without it lacks."""

    words: ClassVar[str]

    @classmethod
    def of(cls, subject: Any) -> Self | None:
        """The capability of a subject that says nothing else: itself, if it inherits it."""
        return subject if isinstance(subject, cls) else None


class NoisySteps(Capability):
    """Steps: contributions, clipped to norm C, are sampled at a rate q and added up; normal noise of σC is added to
    the sum, and the model moves against it (what a client would add to a model is taken for minus its contribution).

    Such a training seats what is inserted in its steps (`Insertion.gradient` is one more contribution, `additions` are
    added to the sum) and shows them (`Observer.probe`, `before`, `observe`); its final model is a `WhiteModel`.
    """

    words: ClassVar[str] = "steps that add noise to a sum of clipped contributions"
    clip_norm: float
    noise_multiplier: float
    sample_rate: float
    steps: int
    width: int  # entries of a contribution, and of the model
    sampling: str = "poisson"

    @property
    def by_coins(self) -> bool:
        """Whether every contribution is in a step by a coin of its own (or always), as accountants assume."""
        return self.sampling in ("poisson", "full")

    @abstractmethod
    def expected_sum(self, data: Any, parameters: Array) -> Array:
        """What the data are expected to contribute to a step at this model."""

    @abstractmethod
    def natural_movement(self, data: Any, seed: np.random.SeedSequence) -> Floats:
        """How much the data put on each entry in a step, on average over a training (absolute values)."""


class KnowsNetwork(Capability):
    """What a model of the training says of records, and their gradients there, for any of its parameters."""

    words: ClassVar[str] = "a network whose outputs and gradients are known at every model"

    @abstractmethod
    def logits(self, parameters: Array, x: Array) -> Array: ...

    @abstractmethod
    def clipped_sum(self, parameters: Array, x: Array, y: Labels) -> Array:
        """The sum of the records' gradients, each clipped as the training clips."""

    @abstractmethod
    def clipped_products(self, parameters: Array, x: Array, y: Labels, along: Array) -> Floats:
        """⟨clipped gradient, along⟩ of each record."""


class KnowsRecipe(Capability):
    """All of the own engine: the recipe by which it trains, and its network."""

    words: ClassVar[str] = "a recipe of the own engine"
    recipe: Recipe
    network: Network | ModuleNetwork


@dataclass(frozen=True)
class Predicts(Capability):
    """Models that tell classes of records apart, and may be asked for predictions."""

    words: ClassVar[str] = "models that predict classes of records"
    classes: int

    @classmethod
    def of(cls, subject: Any) -> Self | None:
        classes = getattr(subject.data, "classes", None)
        silent = subject.grants.lacks(ThreatModel(Sees.PREDICTIONS, ()))
        return None if classes is None or silent else cls(classes)


@dataclass(frozen=True)
class HasRecords(Capability):
    """Data of records, each of which can be left out."""

    words: ClassVar[str] = "records of which one can be left out"
    count: int

    @classmethod
    def of(cls, subject: Any) -> Self | None:
        return cls(len(subject.data)) if hasattr(subject.data, "without") else None


class DrawsReleases(Capability):
    """A mechanism, whose releases of any value can be drawn, as many as one likes."""

    words: ClassVar[str] = "releases of any value, as many as one asks for"
    released: Mechanism
    data: Any  # `Values`
    block: int

    @abstractmethod
    def releases(self, value: Any, seed: np.random.SeedSequence, count: int) -> Floats:
        """So many, a row each."""


class KnowsRidge(Capability):
    words: ClassVar[str] = "private ridge regression"
    ridge: PrivateRidge
    data: RegressionData


class KnowsErm(Capability):
    words: ClassVar[str] = "private empirical risk minimisation"
    erm: PrivateErm
    data: RegressionData
