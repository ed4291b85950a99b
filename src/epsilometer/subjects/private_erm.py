"""Private empirical risk minimisation as a subject: what it leaks on a given pair is known, or nearly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from epsilometer.accounting import ClaimPromise, DpSgd, Promise, StepsPromise
from epsilometer.arrays import Floats
from epsilometer.claims import Claim
from epsilometer.data import RegressionData
from epsilometer.mechanisms.erm import SOUND, Flaws, PrivateErm
from epsilometer.neighbours import require_same_neighbours
from epsilometer.seeds import Words, words_of
from epsilometer.subjects.access import Access, Controls, Sees
from epsilometer.subjects.capabilities import KnowsErm
from epsilometer.subjects.private_ridge import Coefficients
from epsilometer.subjects.subject import Insertion, Observer, Subject
from epsilometer.training import normal_rows

BLOCK = 2**18  # numbers drawn at a time, so that memory does not grow with trials


@dataclass(frozen=True, eq=False)
class _SeededDraws:
    """Each release draws from its own key: the same numbers alone and in any group."""

    keys: Words

    @property
    def count(self) -> int:
        return len(self.keys)

    def normals(self, step: int, numbers: int) -> Floats:
        return normal_rows(self.keys, step, numbers)


@dataclass(frozen=True)
class ErmTraining(Subject, KnowsErm):
    """A private ERM on data; `flaws` are made on purpose, and nobody who plays is told."""

    erm: PrivateErm
    data: RegressionData
    flaws: Flaws = field(default_factory=Flaws)

    def __post_init__(self) -> None:
        self.erm.problem.bounded(self.data.x, self.data.y)  # refuses labels that are none

    @property
    def grants(self) -> Access:
        return Access(Sees.RELEASE, [Controls.RECORDS])

    @property
    def promise(self) -> Promise:
        """Normal noise on what one record moves by the sensitivity: DP-SGD's only step with all records."""
        noise = self.erm.noise_multiplier(len(self.data))
        if noise is None:
            return ClaimPromise(self.erm.claim)
        return StepsPromise(DpSgd(sample_rate=1.0, noise_multiplier=noise, steps=1))

    def require_claim(self, claim: Claim) -> None:
        require_same_neighbours("the claim", claim.neighbours, "private ERM", self.erm.relation)

    def injected(self) -> list[str]:
        return self.flaws.in_words()

    def describe(self) -> str:
        data = f"{self.data.name} ({len(self.data)} records)"
        problem = f"{self.erm.problem.loss.name}, λ = {self.erm.problem.regularisation:g}"
        return f"{self.erm.describe(len(self.data))}, on {data}, {problem}"

    def identity(self) -> dict[str, Any]:
        problem = self.erm.problem
        loss = {"name": problem.loss.name, **asdict(problem.loss)}  # type: ignore[call-overload]
        norms = {name: getattr(problem, name) for name in ("regularisation", "data_norm", "intercept")}
        # JSON has no infinity.
        norms["target_norm"] = problem.target_norm if np.isfinite(problem.target_norm) else "inf"
        return {
            "subject": {"kind": "private-erm", "by": self.erm.name, "loss": loss, **norms, **self.erm.settings()},
            "data": {"name": self.data.name, "records": len(self.data), "sha256": self.data.fingerprint()},
            "faults": asdict(self.flaws),
        }

    def run(
        self,
        insertions: Sequence[Insertion],
        seeds: Sequence[np.random.SeedSequence],
        observers: Sequence[Observer],
    ) -> None:
        models = self._released([insertion.data for insertion in insertions], seeds, self.flaws)
        for observer, released in zip(observers, models, strict=True):
            observer.finish(Coefficients(released))

    def rehearse(
        self, data: RegressionData, seeds: Sequence[np.random.SeedSequence], *, noiseless: bool = False
    ) -> list[Coefficients]:
        flaws = Flaws(noise_scale=0.0) if noiseless else SOUND
        return [Coefficients(released) for released in self._released([data] * len(seeds), seeds, flaws)]

    def _released(
        self, data: Sequence[RegressionData], seeds: Sequence[np.random.SeedSequence], flaws: Flaws
    ) -> Floats:
        """One for each; all that have the same data are trained together."""
        features = data[0].x.shape[1] + bool(self.erm.problem.intercept)
        models, keys = np.empty((len(data), features)), words_of(seeds, 4)
        places: dict[int, list[int]] = {}
        for place, one in enumerate(data):
            places.setdefault(id(one), []).append(place)
        block = max(1, BLOCK // (features + 1))
        for same in places.values():
            for begin in range(0, len(same), block):
                part = same[begin : begin + block]
                records = data[part[0]]
                models[part] = self.erm.releases(records.x, records.y, _SeededDraws(keys[part]), flaws)
        return models
