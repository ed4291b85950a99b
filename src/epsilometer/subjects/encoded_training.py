"""DP-SGD on encoded gradients with Student-t noise and denoising (after Nasr, Shokri & Houmansadr 2020).

A layer's gradient of a record is the outer product of its error and its input. Each of the two is projected on a few
directions that are drawn before the training and public, so the product of both is in a smaller space: the *code*. A
record's code is clipped to norm C, codes are added up, and one release of the Student-t mechanism is all that leaves
the data. What follows is post-processing and costs no privacy: a release that is longer than its noise usually is, is
shortened (denoising: heavy tails would throw a step far away), and decoded by the same directions.

The smaller space, the noise and the denoising are the paper's ideas, by its abstract; how they are done here is our
own, and so is the proof: that of `StudentDpSgd`, which holds for any codes of norm C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from epsilometer import validate
from epsilometer.accounting import ClaimPromise, StudentDpSgd
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms import Sensitivity, Student
from epsilometer.subjects.access import Access, Controls, Sees
from epsilometer.subjects.dp_sgd import Faults
from epsilometer.subjects.seat import Trained
from epsilometer.subjects.subject import Insertion, Observer, Subject
from epsilometer.training import Array, Labels, Network, TrainingDiverged

_VERSION = 1  # raised whenever the same settings would give other models


@dataclass(frozen=True)
class EncodedRecipe:
    """`records` is the public number of records of a training, by which sums are divided; `code` the most directions
    that a layer's input and its error keep; `freedom` is ν; `denoise` says whether long releases are shortened."""

    records: int
    hidden: tuple[int, ...] = (128,)
    activation: str = "tanh"
    sample_rate: float = 0.05
    steps: int = 600
    noise_multiplier: float = 1.0
    freedom: float = 5.0
    clip_norm: float = 1.0
    learning_rate: float = 2.0
    code: int = 100
    code_seed: int = 0
    denoise: bool = True

    def __post_init__(self) -> None:
        validate.whole("records", self.records, least=1, most=10**12)
        widths = tuple(validate.whole("hidden", one, least=1, most=10**5) for one in self.hidden)
        object.__setattr__(self, "hidden", widths)
        self.mechanism  # noqa: B018  checks sample rate, noise, steps and freedom
        validate.real("clip_norm", self.clip_norm, above=1e-12, below=1e12, closed="[]")
        validate.real("learning_rate", self.learning_rate, above=0, below=1e30)
        validate.whole("code", self.code, least=1, most=10**5)
        validate.seed("code_seed", self.code_seed)
        if self.activation not in ("relu", "tanh"):
            raise InvalidInput("activation", self.activation, "relu or tanh")

    @property
    def mechanism(self) -> StudentDpSgd:
        return StudentDpSgd(self.sample_rate, self.noise_multiplier, self.steps, self.freedom)


@dataclass(frozen=True, eq=False)
class EncodedTraining(Subject):
    """A fully connected network; a model sees the records of `data` that it is given. `faults` are made on purpose, and
    nobody who plays is told."""

    recipe: EncodedRecipe
    data: Dataset
    faults: Faults = field(default_factory=Faults)

    @property
    def network(self) -> Network:
        return Network((self.data.x.shape[1], *self.recipe.hidden, self.data.classes), self.recipe.activation)

    @property
    def grants(self) -> Access:
        return Access(Sees.FINAL_MODEL, [Controls.RECORDS, Controls.DATA])

    @property
    def promise(self) -> ClaimPromise:
        return ClaimPromise(self.recipe.mechanism.claim())

    def require_relation(self, relation: Relation) -> None:
        if relation is Relation.REPLACE:
            raise InvalidInput("relation", relation.value, "add-remove or zero-out, for which the proof is")

    def describe(self) -> str:
        widths = "-".join(str(width) for width in self.network.widths)
        noise, entries = self.recipe.mechanism.describe(), Encoding.of(self.recipe, self.network).entries
        return f"network {widths} on {self.data.name} ({len(self.data)} records), {noise}, codes of {entries} entries"

    def identity(self) -> dict[str, Any]:
        return {
            "data": {"name": self.data.name, "records": len(self.data), "sha256": self.data.fingerprint()},
            "recipe": {"kind": "encoded", "version": _VERSION, **asdict(self.recipe)},
            "engine": "numpy",
            "faults": asdict(self.faults),
        }

    def injected(self) -> list[str]:
        return self.faults.in_words()

    def run(
        self,
        insertions: Sequence[Insertion],
        seeds: Sequence[np.random.SeedSequence],
        observers: Sequence[Observer],
    ) -> None:
        for insertion, seed, observer in zip(insertions, seeds, observers, strict=True):
            observer.finish(self._trained(insertion.data, seed, self.faults.noise_scale))

    def rehearse(
        self, data: Dataset, seeds: Sequence[np.random.SeedSequence], *, noiseless: bool = False
    ) -> list[Trained]:
        return [self._trained(data, seed, 0.0 if noiseless else 1.0) for seed in seeds]

    def _trained(self, data: Dataset, seed: np.random.SeedSequence, noise: float) -> Trained:
        recipe, network, rng = self.recipe, self.network, np.random.default_rng(seed)
        encoding = Encoding.of(recipe, network)
        mechanism = encoding.mechanism(recipe)
        usual = mechanism.scale * np.sqrt(encoding.entries)
        added = replace(mechanism, scale=noise * mechanism.scale) if noise else None
        flat = network.initial(rng, 1.0).astype(np.float32)
        x = data.x.astype(np.float32)
        for _ in range(recipe.steps):
            batch = rng.random(len(data)) < recipe.sample_rate
            total = encoding.clipped_sum(network, flat, x[batch], data.y[batch], recipe.clip_norm)
            release = total if added is None else added.release(total, rng)
            if recipe.denoise:
                release = shortened(release, usual)
            gradient = encoding.decoded(network, release) / (recipe.sample_rate * recipe.records)
            flat -= (recipe.learning_rate * gradient).astype(np.float32)
        if not np.isfinite(flat).all():
            raise TrainingDiverged(f"learning_rate = {recipe.learning_rate:g}: the training diverged; lower it")
        return Trained(network, flat, np.zeros(0))


@dataclass(frozen=True, eq=False)
class Encoding:
    """Of each layer, the directions (orthonormal rows) on which inputs and errors are projected; none keeps all."""

    inputs: tuple[Array | None, ...]
    errors: tuple[Array | None, ...]
    shapes: tuple[tuple[int, int], ...]  # of each layer's code

    @classmethod
    def of(cls, recipe: EncodedRecipe, network: Network) -> Encoding:
        """Drawn from the recipe's own seed, which has nothing to do with data or noise."""
        rng = np.random.default_rng(recipe.code_seed)
        widths = [(a + 1, b) for a, b in zip(network.widths[:-1], network.widths[1:], strict=True)]
        inputs = tuple(_directions(rng, inputs, recipe.code) for inputs, _ in widths)
        errors = tuple(_directions(rng, errors, recipe.code) for _, errors in widths)
        return cls(inputs, errors, tuple((min(b, recipe.code), min(a, recipe.code)) for a, b in widths))

    @property
    def entries(self) -> int:
        return sum(rows * columns for rows, columns in self.shapes)

    def mechanism(self, recipe: EncodedRecipe) -> Student:
        """All that leaves the data in a step."""
        scale, norm = recipe.noise_multiplier * recipe.clip_norm, Sensitivity(recipe.clip_norm, "l2")
        return Student(scale, recipe.freedom, self.entries, norm)

    def clipped_sum(self, network: Network, flat: Array, x: Array, y: Labels, clip_norm: float) -> Array:
        """The sum of records' codes, each clipped to the norm; codes of single records are never formed."""
        total = np.zeros(self.entries)
        if not len(x):
            return total
        values, errors = network.record_parts(flat, x, y)
        wide = [np.column_stack([value, np.ones(len(x), value.dtype)]) for value in values[:-1]]
        inputs = [_projected(part, directions) for part, directions in zip(wide, self.inputs, strict=True)]
        outputs = [_projected(part, directions) for part, directions in zip(errors, self.errors, strict=True)]
        squares = sum((a * a).sum(axis=1) * (b * b).sum(axis=1) for a, b in zip(inputs, outputs, strict=True))
        scales = np.minimum(1.0, clip_norm / np.maximum(np.sqrt(squares), 1e-30))
        parts = [((b * scales[:, None]).T @ a).ravel() for a, b in zip(inputs, outputs, strict=True)]
        return np.concatenate(parts).astype(np.float64)

    def decoded(self, network: Network, code: Array) -> Array:
        """The gradient that has this code and nothing outside the directions, as the network's flat vector."""
        gradient, at = np.zeros(network.parameters), 0
        for (weights, biases), (rows, columns), a, b in zip(
            network.layers(gradient), self.shapes, self.inputs, self.errors, strict=True
        ):
            part = code[at : at + rows * columns].reshape(rows, columns)
            at += rows * columns
            whole = part if a is None else part @ a
            whole = whole if b is None else b.T @ whole
            weights[:], biases[:] = whole[:, :-1], whole[:, -1]
        return gradient


def _directions(rng: np.random.Generator, width: int, most: int) -> Array | None:
    if width <= most:
        return None
    return np.ascontiguousarray(np.linalg.qr(rng.standard_normal((width, most)))[0].T.astype(np.float32))


def _projected(rows: Array, directions: Array | None) -> Array:
    return rows if directions is None else rows @ directions.T


def shortened(release: Array, usual: float) -> Array:
    """The release, no longer than its noise usually is."""
    length = float(np.linalg.norm(release))
    return release if length <= usual else release * (usual / length)
