"""One training by a watched transformation, from one new state to the next, seen from the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Floats
from epsilometer.watching.facts import Facts, Keys, Leaves, Rows, Steps
from epsilometer.watching.frameworks.jax.randomness import apart
from epsilometer.watching.privatizer import Coins, Privatizer, Stated

Array = NDArray[Any]
_SAME = 1e-3  # of the noise: what differs by less is the same


class JaxPrivatizer(Privatizer):
    """Keeps the canaries' part of the state, and what can be said of keys and noise without statistics."""

    def __init__(self, stated: Stated, rows: set[int], keys: list[Any]) -> None:
        """`rows` are numbers of records, of all trainings: what is compiled sees a shape once."""
        self._stated, self._rows = stated, rows
        self.first_keys = keys  # of the new state
        self.kept: list[Array] | None = None  # the canaries' part of the state; none: nothing yet
        self.once_more: Callable[[Coins, Any], tuple[Any, Any, list[Any], list[Any]]] | None = None
        self._steps = 0
        self._sources: set[bytes] = set()
        self._same_key = self._same_noise = self._same_leaf = 0
        self._last = np.zeros(0)
        self.remade = 0
        self.leaves: list[str] | None = None  # names of those that are looked at for noise
        self._silent: list[str] = []

    def stated(self) -> Stated:
        return self._stated

    def insert(self, coins: Coins, draw: np.random.Generator) -> Floats:
        """Of a step that is not compiled: `once_more` calls the script's function."""
        assert self.once_more is not None
        with apart(draw):
            return self.look(coins, *self.once_more(coins, salt(draw)))

    def look(self, coins: Coins, scores: Any, twin: Any, source: list[Any], own: list[Any]) -> Floats:
        """What came of a step, compiled or not: the scores, after a look at their noise."""
        self.kept = [np.asarray(one) for one in own]
        values = np.asarray(scores, np.float64)
        noise, other = values - coins, np.asarray(twin, np.float64)
        self._same_leaf += _same(noise, other)
        self._same_noise += _same(noise, self._last)
        self._last = noise
        key = b"".join(np.asarray(one).tobytes() for one in source)
        if key:
            self._same_key += key in self._sources
            self._sources.add(key)
        self._steps += 1
        return values

    def look_at_leaves(self, names: list[str], silent: Any) -> None:
        """Once, in the first step: which of them have no noise."""
        if self.leaves is None:
            self.leaves = names
            self._silent = [name for name, none in zip(names, np.asarray(silent), strict=True) if none]

    def facts(self, *, end: bool) -> Facts:
        keys = [np.asarray(one) for one in self.first_keys]
        rows = Rows(sorted(self._rows)) if self._rows else None
        return Facts(
            steps=Steps(self._steps, self._steps),
            keys=Keys(
                any(not key.any() for key in keys) if keys else None,
                self._same_key,
                self._same_noise,
                self._same_leaf,
                self.remade,
            ),
            leaves=Leaves(len(self.leaves), self._silent) if self.leaves else None,
            rows=rows,
            troubles={
                **({} if rows else {"rows": "sums come in, not records"}),
                **({} if self.leaves else {"leaves": "its leaves could not be looked at"}),
            },
        )

    def wait(self) -> None:
        import jax

        jax.effects_barrier()  # type: ignore[no-untyped-call]


def salt(draw: np.random.Generator) -> np.uint32:
    """A number to mix into random keys."""
    return np.uint32(draw.integers(2**32))


def _same(noise: Array, other: Array) -> bool:
    if noise.shape != other.shape or not noise.size:
        return False
    return bool(np.abs(noise - other).max() <= _SAME * np.abs(noise).max())
