"""What is released of a record, and how it is rebuilt from that: one small object an attack, randomness passed in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.data import Dataset
from epsilometer.reconstruction.differencing import difference, noisy_sum
from epsilometer.reconstruction.inversion import invert_gradient, released_gradient
from epsilometer.training import Network

Prepared = Mapping[str, NDArray[Any]]
Release = Callable[[Floats], Floats]


class RecordAttack(Protocol):
    """A release with normal noise of σ times a unit, and an estimate of one record from it."""

    unbiased: ClassVar[bool]  # whether the mean of its estimates is the record

    @property
    def name(self) -> str: ...

    def require(self, data: Dataset) -> None:
        """An error if it cannot be played on these data."""

    def prepare(self, data: Dataset, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """What all trials share."""

    def noise_unit(self, data: Dataset) -> float:
        """The deviation of noise with a multiplier of 1."""

    def sensitivity(self, data: Dataset) -> float:
        """How far a release moves at most if the record that is rebuilt is replaced."""

    @property
    def in_parts(self) -> int:
        """In how many parts of a release, each with noise of its own, a record may be: what is promised to all counts
        them."""

    @property
    def releases(self) -> int:
        """How often the record is in what is released, each time with noise of its own."""

    def released(self, prepared: Prepared, data: Dataset, row: int) -> Release:
        """What is released of a record in place of that one, before the noise."""

    def rebuild(
        self, prepared: Prepared, data: Dataset, row: int, noise_multiplier: float, rng: np.random.Generator
    ) -> Floats:
        """One release, and what is made of it."""

    def describe(self) -> str: ...

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Differencing:
    """A sum of records minus the same sum without one of them; both are released `releases` times, with noise.

    The unit of noise is how far apart two records can be: a sum moves by no more if one is replaced.
    """

    name: ClassVar[str] = "sums"
    unbiased: ClassVar[bool] = True
    in_parts: ClassVar[int] = 2  # whoever is not the one that is left out is in both sums
    in_sum: int = 100
    releases: int = 1

    def __post_init__(self) -> None:
        validate.whole("in_sum", self.in_sum, least=2, most=10**6, remedy="records in the larger sum")
        validate.whole("releases", self.releases, least=1, most=10_000)

    def require(self, data: Dataset) -> None:
        validate.whole("in_sum", self.in_sum, least=2, most=len(data), remedy=f"{data.name} has {len(data)} records")

    def prepare(self, data: Dataset, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        return {}

    def noise_unit(self, data: Dataset) -> float:
        return self.sensitivity(data)

    def sensitivity(self, data: Dataset) -> float:
        low, high = value_range(data)
        return (high - low) * math.sqrt(data.x.shape[1])

    def released(self, prepared: Prepared, data: Dataset, row: int) -> Release:
        """What the larger sum says of the record: the record. The smaller one knows nothing of it."""
        return lambda x: x

    def rebuild(
        self, prepared: Prepared, data: Dataset, row: int, noise_multiplier: float, rng: np.random.Generator
    ) -> Floats:
        others = np.delete(np.arange(len(data)), row)
        company = data.x[rng.choice(others, self.in_sum - 1, replace=False)]
        noise_std = noise_multiplier * self.noise_unit(data)
        both = np.vstack([company, data.x[row]])
        pairs = [(noisy_sum(both, noise_std, rng), noisy_sum(company, noise_std, rng)) for _ in range(self.releases)]
        larger, smaller = zip(*pairs, strict=True)
        return difference(np.array(larger), np.array(smaller))

    def describe(self) -> str:
        times = f", each released {self.releases} times" if self.releases > 1 else ""
        return f"a sum of {self.in_sum} records minus that of the others{times}"

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "in_sum": self.in_sum, "releases": self.releases}


@dataclass(frozen=True)
class GradientInversion:
    """The gradient of one record by a network at its initial weights, clipped to C, with noise of σ·C: DP-SGD's step
    with a batch of one. The first layer's gradient by its weights over that by its biases is the record.

    Without `hidden` layers it is that of one layer: softmax regression.
    """

    unbiased: ClassVar[bool] = False  # biases have noise as well, which draws the ratio to 0
    releases: ClassVar[int] = 1
    in_parts: ClassVar[int] = 1
    hidden: tuple[int, ...] = (32,)
    clip_norm: float = 1.0

    def __post_init__(self) -> None:
        for width in self.hidden:
            validate.whole("hidden", width, least=1, most=100_000)
        validate.real("clip_norm", self.clip_norm, above=0, below=math.inf)

    @property
    def name(self) -> str:
        return "network" if self.hidden else "layer"

    def require(self, data: Dataset) -> None:
        """Any data can be learned from."""

    def network(self, data: Dataset) -> Network:
        return Network((data.x.shape[1], *self.hidden, data.classes), "tanh")

    def prepare(self, data: Dataset, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        return {"parameters": self.network(data).initial(rng, 1.0).astype(np.float64)}

    def noise_unit(self, data: Dataset) -> float:
        return self.clip_norm

    def sensitivity(self, data: Dataset) -> float:
        return 2.0 * self.clip_norm

    def released(self, prepared: Prepared, data: Dataset, row: int) -> Release:
        network, label = self.network(data), int(data.y[row])
        return lambda x: released_gradient(network, prepared["parameters"], x, label, clip_norm=self.clip_norm)

    def rebuild(
        self, prepared: Prepared, data: Dataset, row: int, noise_multiplier: float, rng: np.random.Generator
    ) -> Floats:
        network = self.network(data)
        seen = released_gradient(
            network, prepared["parameters"], data.x[row], int(data.y[row]),
            clip_norm=self.clip_norm, noise_multiplier=noise_multiplier, rng=rng,
        )  # fmt: skip
        return invert_gradient(network, seen)

    def describe(self) -> str:
        of = f"a network with {' and '.join(map(str, self.hidden))} hidden units" if self.hidden else "one layer"
        return f"the gradient of one record by {of}, clipped to {self.clip_norm:g}"

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "hidden": list(self.hidden), "clip_norm": self.clip_norm}


def value_range(data: Dataset) -> tuple[float, float]:
    """The least and the largest value of any feature: records are taken to be anywhere in that box."""
    return float(data.x.min()), float(data.x.max())
