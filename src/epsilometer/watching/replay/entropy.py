"""Chance that is the same in every run: what a script gets from the system where it sets no seed.

This begins with the interpreter, before numpy or torch draws anything, so it imports the standard library only.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

_LIBRARY = os.path.dirname(os.__file__)
_HANDED_ON = ("random", "secrets", "numpy")
# Workers shake hands as often as it happens; coins and canaries are no part of the script.
_APART = ("multiprocessing.", "epsilometer.watching.training", "epsilometer.watching.collect")
_DRAWS = ("random", "randint", "randrange", "getrandbits", "choice", "choices", "uniform")
_NAMING = ("rich", "tqdm", "uuid", "tempfile")  # they want names for things
_CALLS = 10_000  # of the clock before the first step; a loop that waits for it must come to its end


class Entropy:
    """A stream of bytes that begins with a number, in place of the system's."""

    def __init__(self, salt: str) -> None:
        self._key, self._blocks, self._forks = salt.encode(), 0, 0
        self.calls = 0  # but for those of packages while they are imported
        self._system = os.urandom

    def urandom(self, size: int) -> bytes:
        asker = _asker()
        if asker.startswith(_APART):
            return self._system(size)
        self.calls += asker.partition(".")[0] not in _NAMING and not importing()
        found = b""
        while len(found) < size:
            self._blocks += 1
            found += hashlib.sha256(self._key + self._blocks.to_bytes(8, "big")).digest()
        return found[:size]

    def state(self) -> list[Any]:
        """Where in which stream it is."""
        return [self._key.hex(), self._blocks]

    def go_to(self, state: list[Any]) -> None:
        """On from there."""
        self._key, self._blocks = bytes.fromhex(state[0]), int(state[1])

    def forked(self) -> None:
        """A copy of the process: other bytes than the original's, the same in every run."""
        self._key = hashlib.sha256(self._key + b"fork" + self._forks.to_bytes(8, "big")).digest()

    def forking(self) -> None:
        self._forks += 1


def _asker() -> str:
    """The module that wants chance, beyond those that hand it on."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in _HANDED_ON and name != __name__:
            return name
        frame = frame.f_back
    return ""


def importing() -> bool:
    """Is a package being imported, which is no part of the script?"""
    frame: Any = sys._getframe(1)
    module = ""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith("<frozen importlib"):
            return "site-packages" in module or module.startswith(_LIBRARY)
        module = code.co_filename if code.co_name == "<module>" else module
        frame = frame.f_back
    return False


class Clock:
    """Until the first private step it goes by the number of calls, for scripts that take the time as a seed."""

    def __init__(self, begun: float) -> None:
        self._begun, self._calls, self._shift = begun, 0, 0.0
        self._true = time.time
        self.free = False

    def time(self) -> float:
        if not self.free:
            self._calls += 1
            if self._calls < _CALLS:
                return self._begun + 1e-6 * self._calls
            self.release()
        return self._true() + self._shift

    def time_ns(self) -> int:
        return int(self.time() * 1e9)

    def release(self) -> None:
        """From now on it runs as clocks do."""
        if not self.free:
            self.free = True
            self._shift = self._begun + 1e-6 * self._calls - self._true()


ENTROPY: Entropy | None = None
CLOCK: Clock | None = None


def begin(directory: str) -> None:
    """Of the run whose settings lie there."""
    global ENTROPY, CLOCK  # noqa: PLW0603 (of the whole process, as what they replace)
    settings = json.loads((Path(directory) / "watch.json").read_text(encoding="utf-8"))["replaying"]
    ENTROPY = entropy = Entropy(settings["salt"])
    os.register_at_fork(before=entropy.forking, after_in_child=entropy.forked)
    os.urandom = entropy.urandom
    random._urandom = entropy.urandom  # type: ignore[attr-defined]
    _seed_without_the_system(entropy)
    _let_packages_draw_apart()
    CLOCK = clock = Clock(1_700_000_000 + int.from_bytes(entropy.urandom(3), "big"))
    time.time, time.time_ns = clock.time, clock.time_ns


def _seed_without_the_system(entropy: Entropy) -> None:
    """`random` asks the system in C where it is given no seed."""
    original = random.Random.seed

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        if a is None and not isinstance(self, random.SystemRandom):
            a = int.from_bytes(entropy.urandom(32), "big")
        original(self, a, version)

    random.Random.seed = seed  # type: ignore[method-assign]
    random.seed = random._inst.seed
    random.seed()


def _let_packages_draw_apart() -> None:
    """Some draw from Python's generator while they are imported, or for names of things on the screen: that is no draw
    of the script's."""
    others = random.Random(0)

    def parted(original: Any, apart: Any) -> Any:
        @functools.wraps(original)
        def draw(*arguments: Any, **named: Any) -> Any:
            name = str(sys._getframe(1).f_globals.get("__name__", ""))
            of_package = name.partition(".")[0] in _NAMING or importing()
            return (apart if of_package else original)(*arguments, **named)

        return draw

    for name in _DRAWS:
        setattr(random, name, parted(getattr(random, name), getattr(others, name)))


def urandom(size: int) -> bytes:
    """Of the common stream; of the system where there is none."""
    return ENTROPY.urandom(size) if ENTROPY is not None else os.urandom(size)


def used() -> int:
    """How often the system was asked for chance."""
    return ENTROPY.calls if ENTROPY is not None else 0


def let_the_clock_run() -> None:
    if CLOCK is not None:
        CLOCK.release()


def state() -> list[Any] | None:
    """Where the common stream is."""
    return ENTROPY.state() if ENTROPY is not None else None


def go_to(found: list[Any] | None) -> None:
    """On from there."""
    if ENTROPY is not None and found is not None:
        ENTROPY.go_to(found)


def draw_anew(rng: Any) -> None:
    """A stream of this run's own, by a generator of numpy."""
    if ENTROPY is not None:
        ENTROPY.go_to([rng.bytes(16).hex(), 0])
