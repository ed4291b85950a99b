"""Where results of trials are kept: a tiny interface, and its twin in memory.

One driver writes. Results are kept under (plan, world, index); a second result for the same key is ignored, because
trials are pure functions and the first is as good. `SqliteStore` keeps them on disk.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import EpsilometerError
from epsilometer.json_values import json_values
from epsilometer.runs.trials import Preparation, Results, Trial, Trials


class StoreError(EpsilometerError):
    """A store cannot be used at the moment; what it holds is safe."""


@dataclass(frozen=True)
class StoredRun:
    """What a store knows of a plan."""

    fingerprint: str
    plan: dict[str, Any]
    about: dict[str, Any]  # its kind, how many results the whole of it has, and what its trials say of themselves
    trials: int  # results that it holds
    begun: str  # date and time, UTC
    seconds: float  # that driving it has taken so far
    conclusion: dict[str, Any] | None  # none before the audit is finished

    @property
    def is_part(self) -> bool:
        """Whether it belongs to another run, as a control does."""
        return "part" in self.plan

    @property
    def total(self) -> int:
        """Results that the whole plan has."""
        return int(self.about["total"])

    @property
    def kind(self) -> str:
        """Of study."""
        return str(self.about["kind"])


class Store(Protocol):
    """Results of trials; see the module."""

    def begin(self, work: Trials) -> StoredRun:
        """Make the work known, if it is not yet; what is stored of it stays."""

    def runs(self) -> list[StoredRun]:
        """All plans, in the order in which they were begun."""

    def results(self, fingerprint: str) -> dict[Trial, Floats]:
        """All results of a plan."""

    def add(self, fingerprint: str, results: Results, seconds: float) -> None:
        """Keep results, all or none; `seconds` is the time since the last addition."""

    def preparation(self, fingerprint: str) -> Preparation | None:
        """What was prepared for it, if that was kept."""

    def keep(self, fingerprint: str, prepared: Preparation) -> None:
        """Keep what was prepared, before the first result."""

    def conclude(self, fingerprint: str, conclusion: Mapping[str, Any]) -> None:
        """Keep what the audit has found."""

    def close(self) -> None:
        """Nothing is written afterwards."""


class MemoryStore:
    """A store that ends with the process."""

    def __init__(self) -> None:
        self._runs: dict[str, StoredRun] = {}
        self._results: dict[str, dict[Trial, Floats]] = {}
        self._prepared: dict[str, Preparation] = {}

    def begin(self, work: Trials) -> StoredRun:
        key = work.fingerprint()
        if key not in self._runs:
            self._runs[key] = StoredRun(key, json.loads(work.canonical_json()), about(work), 0, now(), 0.0, None)
            self._results[key] = {}
        return self._runs[key]

    def runs(self) -> list[StoredRun]:
        return list(self._runs.values())

    def results(self, fingerprint: str) -> dict[Trial, Floats]:
        return dict(self._results[fingerprint])

    def add(self, fingerprint: str, results: Results, seconds: float) -> None:
        kept = self._results[fingerprint]
        for trial, scores in results.items():
            kept.setdefault(trial, np.array(scores, np.float64))
        self._update(fingerprint, trials=len(kept), seconds=self._runs[fingerprint].seconds + seconds)

    def preparation(self, fingerprint: str) -> Preparation | None:
        return self._prepared.get(fingerprint)

    def keep(self, fingerprint: str, prepared: Preparation) -> None:
        self._prepared.setdefault(fingerprint, prepared)

    def conclude(self, fingerprint: str, conclusion: Mapping[str, Any]) -> None:
        self._update(fingerprint, conclusion=dict(conclusion))

    def close(self) -> None:
        pass

    def _update(self, fingerprint: str, **changes: Any) -> None:
        run = self._runs[fingerprint]
        self._runs[fingerprint] = StoredRun(**{**vars(run), **changes})


def about(work: Trials) -> dict[str, Any]:
    """What a store notes of trials when they begin."""
    total = work.planned_trials * len(work.worlds)
    found: dict[str, Any] = json_values({"kind": work.kind, "total": total, **work.about()})
    return found


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
