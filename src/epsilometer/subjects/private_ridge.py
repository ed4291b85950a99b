"""Private ridge regression as a subject: a mechanism whose leak is known, so that an audit can be checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from epsilometer.accounting import DpSgd, StepsPromise
from epsilometer.arrays import Floats
from epsilometer.claims import Claim
from epsilometer.data import RegressionData
from epsilometer.mechanisms import PrivateRidge, proved_sensitivity
from epsilometer.neighbours import require_same_neighbours
from epsilometer.seeds import words_of
from epsilometer.subjects.access import Access, Controls, Sees
from epsilometer.subjects.capabilities import KnowsRidge
from epsilometer.subjects.dp_sgd import Faults
from epsilometer.subjects.subject import Insertion, Observer, Subject
from epsilometer.training import Array, normal_rows

BLOCK = 2**20  # numbers drawn at a time, so that memory does not grow with trials


class Coefficients(NamedTuple):
    """What is released: a coefficient a feature, with noise."""

    numbers: Floats

    def logits(self, x: Array) -> Array:
        """Its only output."""
        return (x @ self.numbers)[:, None]


@dataclass(frozen=True)
class RidgeTraining(Subject, KnowsRidge):
    """`PrivateRidge` on data; `faults` are made on purpose, and nobody who plays is told."""

    ridge: PrivateRidge
    data: RegressionData
    faults: Faults = field(default_factory=Faults)

    @property
    def grants(self) -> Access:
        return Access(Sees.RELEASE, [Controls.RECORDS])

    @property
    def promise(self) -> StepsPromise:
        """Gaussian noise on what one record moves by the sensitivity at most is DP-SGD's only step with all records.

        Not every sensitivity is one: see ridge.py.
        """
        noise = self.ridge.noise_std / self.ridge.sensitivity
        proved, caveat = proved_sensitivity(self.ridge.regularisation, len(self.data) + 1), ""
        if self.ridge.sensitivity < proved:
            caveat = f"its sensitivity {self.ridge.sensitivity:.4g} is not proved for {len(self.data) + 1} records"
        return StepsPromise(DpSgd(sample_rate=1.0, noise_multiplier=noise, steps=1), caveat=caveat)

    def require_claim(self, claim: Claim) -> None:
        require_same_neighbours("the claim", claim.neighbours, "private ridge regression", self.ridge.relation)

    def injected(self) -> list[str]:
        return self.faults.in_words()

    def describe(self) -> str:
        ridge = self.ridge
        noise = f"noise {ridge.noise_std:.4g} for a sensitivity of {ridge.sensitivity:.4g}"
        data = f"{self.data.name} ({len(self.data)} records)"
        return f"private ridge regression on {data}, λ = {ridge.regularisation:g}, {noise}"

    def identity(self) -> dict[str, Any]:
        return {
            "subject": {"kind": "private-ridge", **asdict(self.ridge)},
            "data": {"name": self.data.name, "records": len(self.data), "sha256": self.data.fingerprint()},
            "faults": asdict(self.faults),
        }

    def run(
        self,
        insertions: Sequence[Insertion],
        seeds: Sequence[np.random.SeedSequence],
        observers: Sequence[Observer],
    ) -> None:
        data = [insertion.data for insertion in insertions]
        for observer, released in zip(observers, self._released(data, seeds, self.faults.noise_scale), strict=True):
            observer.finish(Coefficients(released))

    def rehearse(
        self, data: RegressionData, seeds: Sequence[np.random.SeedSequence], *, noiseless: bool = False
    ) -> list[Coefficients]:
        scale = 0.0 if noiseless else 1.0
        return [Coefficients(released) for released in self._released([data] * len(seeds), seeds, scale)]

    def _released(
        self, data: Sequence[RegressionData], seeds: Sequence[np.random.SeedSequence], scale: float
    ) -> Iterator[Floats]:
        """One for each; an optimum is found once for all trials that have the same data, and noise drawn for many."""
        distinct = {id(one): one for one in data}
        places = {key: place for place, key in enumerate(distinct)}
        optima = np.stack([self.ridge.fit(one.x, one.y) for one in distinct.values()])
        which = np.array([places[id(one)] for one in data])
        block = max(1, BLOCK // optima.shape[1])
        for begin in range(0, len(data), block):
            part = slice(begin, begin + block)
            noise = normal_rows(words_of(seeds[part], 4), 0, optima.shape[1])
            yield from optima[which[part]] + scale * self.ridge.noise_std * noise
