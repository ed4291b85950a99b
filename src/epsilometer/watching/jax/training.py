"""One watched transformation, seen from the host: coins, records, and checks that need no statistics.

Nothing that goes wrong in here may reach the script: it is recorded, and the training goes on unwatched.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.watching.facts import Facts, Keys, Rows, Steps
from epsilometer.watching.jax.stated import Stated
from epsilometer.watching.recording import Ended, MadePrivate, NotAudited, Sink, Step, Told
from epsilometer.watching.settings import EXTRA, Settings

Array = NDArray[Any]
_SAME = 1e-3  # of the noise: what differs by less is the same


class Training:
    """Tosses coins before a step and takes its scores after it, in the order of steps."""

    steps: int
    _coins: Array | None  # of the step under way
    _kept: list[Array] | None  # the canaries' part of the state
    _finished: bool

    def __init__(
        self, stated: Stated, settings: Settings, sink: Sink, clipped: bool, number: Callable[[], int]
    ) -> None:
        """A number is asked for when a training begins, with its first state or step."""
        self.stated, self.settings, self._sink, self._clipped, self._next = stated, settings, sink, clipped, number
        self.draw = np.random.default_rng(settings.seed)
        self.number, self.lost, self._process = 0, False, os.getpid()
        self.steps, self._finished, self._again = 0, True, True
        self._rows: set[int] = set()  # of all trainings: what is compiled sees a shape once
        self._first_keys: list[Array] | None = None

    def restart(self) -> None:
        """The script made a new state: what comes is another training."""
        if not self.number:
            self.begin()
        elif self.steps:
            self._again = True

    def toss(self) -> tuple[Array, np.uint32, list[Array] | None]:
        """Who is in, a number to mix into keys, and what the canaries kept of their state (none: nothing yet)."""
        if self._again:
            self.finish()
            self.begin()
        coins = self._coins = self.draw.random(self.settings.canaries) < 0.5
        return coins, np.uint32(self.draw.integers(2**32)), self._kept

    def take(self, scores: Any, twin: Any, source: list[Any], own: list[Any]) -> None:
        """What came of it."""
        if self.lost or self._coins is None:
            return None
        if os.getpid() != self._process:
            return self.lose("the process was forked, and steps are taken in the copy")
        try:
            coins, self._coins = self._coins, None
            self._kept = [np.asarray(one) for one in own]
            values = np.asarray(scores, np.float64)
            self._look(
                values - coins, np.asarray(twin, np.float64), b"".join(np.asarray(one).tobytes() for one in source)
            )
            self.steps += 1
            known = np.nan_to_num(values, nan=0.5)  # where nothing can be read, nothing is known
            stated = self.stated
            self._sink.take(Step(self.number, known, coins, stated.noise_multiplier, stated.clip_norm))
        except Exception as error:
            self.lose(f"the canaries failed ({type(error).__name__}: {str(error)[:300]})")
        return None

    def lose(self, reason: str) -> None:
        """No canaries from now on."""
        if not self.lost:
            self.lost = True
            with suppress(Exception):  # a full disk, say
                self._sink.take(NotAudited(self.number, reason))

    def saw(self, rows: int | None, keys: list[Any] | None) -> None:
        """From the script's own calls: how many records a step has, and which keys a new state has."""
        if rows is not None:
            self._rows.add(rows)
        if keys is not None:
            self._first_keys = [np.asarray(one) for one in keys]

    def finish(self) -> None:
        """The process ends, or another training begins."""
        if not self._finished and os.getpid() == self._process:
            self.tell()
            self._finished = True
            self._sink.take(Ended(self.number, 0))

    def tell(self) -> None:
        """What is known by now, for the checks."""
        if not self._finished and os.getpid() == self._process:
            self._sink.take(Told(self.number, self._facts()))

    def begin(self) -> None:
        """Say what is watched."""
        self._sink, self._process = self._sink.here(), os.getpid()
        self.number = self._next()
        if self.settings.seed is not None:
            self.draw = np.random.default_rng((self.settings.seed, self.number))
        self.steps, self._finished, self._again = 0, False, False
        self._coins = self._kept = None
        self._sources: set[bytes] = set()
        self._same_key = self._same_noise = self._same_leaf = 0
        self._last = np.zeros(0)
        stated, settings = self.stated, self.settings
        said = {"stated": stated.source, "clipping": "its own" if self._clipped else "of what comes in"}
        self._sink.take(
            MadePrivate(
                self.number, stated.name, stated.noise_multiplier, stated.clip_norm, settings.canaries, EXTRA, said
            )
        )

    def _look(self, noise: Array, twin: Array, source: bytes) -> None:
        self._same_leaf += _same(noise, twin)
        self._same_noise += _same(noise, self._last)
        self._last = noise
        if source:
            self._same_key += source in self._sources
            self._sources.add(source)

    def _facts(self) -> Facts:
        first = any(not key.any() for key in self._first_keys) if self._first_keys else None
        rows = Rows(sorted(self._rows)) if self._rows else None
        return Facts(
            steps=Steps(self.steps, self.steps),
            keys=Keys(first, self._same_key, self._same_noise, self._same_leaf),
            rows=rows,
            troubles={} if rows else {"rows": "sums come in, not records"},
        )


def _same(noise: Array, other: Array) -> bool:
    if noise.shape != other.shape or not noise.size:
        return False
    return bool(np.abs(noise - other).max() <= _SAME * np.abs(noise).max())
