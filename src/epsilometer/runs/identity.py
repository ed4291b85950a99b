"""By what trials are known: the hash of all that decides their results."""

from __future__ import annotations

import functools
import hashlib
import json
from typing import Any

from epsilometer.isolation import Isolation
from epsilometer.json_values import json_values
from epsilometer.runs.trials import Preparation, Results


class Fingerprinted:
    """Trials are known by the hash of all that decides their results."""

    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    def canonical_json(self) -> str:
        return canonical(json_values(self.to_dict()))

    @functools.cached_property
    def _fingerprint(self) -> str:
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()

    def fingerprint(self) -> str:
        return self._fingerprint

    def __getstate__(self) -> dict[str, Any]:
        """Another process finds its own: it may have another version of the code."""
        return {name: value for name, value in vars(self).items() if name != "_fingerprint"}


class OwnTrials(Fingerprinted):
    """Trials of our own code: all of them are played, and nothing has to be distrusted."""

    def about(self) -> dict[str, Any]:
        return {}

    def prepare(self) -> Preparation:
        return Preparation({})

    def is_enough(self, results: Results, count: int) -> bool:
        return False

    def so_far(self, results: Results, count: int) -> str:
        return ""

    def rehearsal(self) -> None:
        return None

    @property
    def safeguards(self) -> Isolation:
        return Isolation()

    def code(self) -> list[Any]:
        return []


def canonical(values: Any) -> str:
    """Plain data as text, always in the same words: 1 and 1.0 are one number."""
    return json.dumps(_canonical(values), sort_keys=True)


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
