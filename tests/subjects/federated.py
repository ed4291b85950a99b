"""Federated averaging with clipped clients and normal noise, in one file: a second training in noisy steps.

A client moves the model towards the mean of its points (one step of least squares). What it would add to the model is
clipped to norm C; clients are sampled by coins; the server adds noise of σC to the sum and moves by its mean.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilometer.accounting import DpSgd, StepsPromise
from epsilometer.subjects import Access, Controls, Insertion, NoisySteps, Observer, Sees, Subject


@dataclass(frozen=True)
class Clients:
    """The mean point of each client."""

    means: tuple[tuple[float, ...], ...]
    name: str = "clients"

    def __len__(self) -> int:
        return len(self.means)

    def fingerprint(self) -> str:
        return hashlib.sha256(repr(self.means).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Final:
    parameters: np.ndarray
    projections: np.ndarray


@dataclass(frozen=True, eq=False)
class FederatedAveraging(Subject, NoisySteps):
    data: Clients
    clip_norm: float = 0.5
    noise_multiplier: float = 1.0
    sample_rate: float = 1.0
    steps: int = 5
    server_rate: float = 0.5
    noise_scale: float = 1.0  # of what is really added: a broken copy has less than 1

    @property
    def width(self) -> int:  # type: ignore[override]
        return len(self.data.means[0])

    @property
    def grants(self) -> Access:
        return Access(Sees.EVERY_MODEL, [Controls.GRADIENTS, Controls.DATA])

    @property
    def promise(self) -> StepsPromise:
        return StepsPromise(DpSgd(self.sample_rate, self.noise_multiplier, self.steps))

    def describe(self) -> str:
        return f"federated averaging of {len(self.data)} clients, {self.promise.describe()}"

    def identity(self) -> dict[str, Any]:
        settings = [self.clip_norm, self.noise_multiplier, self.sample_rate, self.steps, self.server_rate]
        data = {"name": self.data.name, "records": len(self.data), "sha256": self.data.fingerprint()}
        return {"data": data, "subject": {"kind": "federated", "settings": settings, "noise_scale": self.noise_scale}}

    def run(
        self,
        insertions: Sequence[Insertion],
        seeds: Sequence[np.random.SeedSequence],
        observers: Sequence[Observer],
    ) -> None:
        for insertion, seed, observer in zip(insertions, seeds, observers, strict=True):
            self._trained(insertion, seed, observer, self.noise_scale)

    def rehearse(
        self, data: Clients, seeds: Sequence[np.random.SeedSequence], *, noiseless: bool = False
    ) -> list[Final]:
        scale = 0.0 if noiseless else 1.0
        return [self._trained(Insertion(data), seed, Silent(), scale) for seed in seeds]

    def expected_sum(self, data: Clients, parameters: np.ndarray) -> np.ndarray:
        return self.sample_rate * self._contributions(data, parameters).sum(axis=0)

    def natural_movement(self, data: Clients, seed: np.random.SeedSequence) -> np.ndarray:
        seen = Movement(self, data)
        self._trained(Insertion(data), seed, seen, 1.0)
        return seen.total / self.steps

    def _contributions(self, data: Clients, parameters: np.ndarray) -> np.ndarray:
        """Minus what each client would add to the model, clipped."""
        pull = parameters - np.array(data.means)
        norms = np.linalg.norm(pull, axis=1, keepdims=True)
        return pull * np.minimum(1.0, self.clip_norm / np.maximum(norms, 1e-30))

    def _trained(self, insertion: Insertion, seed: np.random.SeedSequence, observer: Observer, scale: float) -> Final:
        rng, model, seen = np.random.default_rng(seed), np.zeros(self.width), []
        for step in range(self.steps):
            if observer.stepwise:
                observer.before(step, model)
            drawn = rng.random(len(insertion.data)) < self.sample_rate
            total = self._contributions(insertion.data, model)[drawn].sum(axis=0)
            if insertion.gradient is not None and rng.random() < self.sample_rate:
                total = total + insertion.gradient
            if insertion.additions is not None:
                np.add.at(total, *insertion.additions(step))
            total = total + scale * self.noise_multiplier * self.clip_norm * rng.normal(size=self.width)
            model = model - self.server_rate * total / (self.sample_rate * len(self.data))
            seen += [] if observer.probe is None else [float(total @ observer.probe)]
            if observer.stepwise and observer.observe(step, total, model):
                break
        final = Final(model, np.array(seen))
        observer.finish(final)
        return final


class Silent(Observer):
    def score(self) -> float:
        return 0.0


class Movement(Silent):
    """How much clients put on each entry."""

    stepwise = True

    def __init__(self, training: FederatedAveraging, data: Clients) -> None:
        self._training, self._data, self.total = training, data, np.zeros(training.width)

    def before(self, step: int, parameters: np.ndarray) -> None:
        self.total += np.abs(self._training.expected_sum(self._data, parameters))
