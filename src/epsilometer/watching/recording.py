"""What a watched process says: records in one file, a line each, only ever appended.

A process that is killed leaves a torn last line at worst, which nobody reads: a line counts once it has its end.
"""

from __future__ import annotations

import base64
import json
import math
import os
import platform
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from epsilometer.errors import MALFORMED
from epsilometer.noise_sample import GRIDS, LEVELS, Counts, NoiseSample
from epsilometer.watching.facts import Facts

SUFFIX = ".jsonl"
_FAR = 1e30  # clip norms from the middle: nothing is clearer


@dataclass(frozen=True)
class Started:
    """A Python process began, and the hook is in it."""

    kind: ClassVar[str] = "started"
    pid: int
    argv: list[str]
    python: str


@dataclass(frozen=True)
class Imported:
    """The library that makes trainings private was imported, and is being watched."""

    kind: ClassVar[str] = "imported"
    library: str
    version: str


@dataclass(frozen=True)
class MadePrivate:
    """A training began: what it is and states. `training` counts from 1 within its process. With `own_noise`, noise of
    the model's own parameters is seen."""

    kind: ClassVar[str] = "made-private"
    training: int
    optimizer: str
    noise_multiplier: float
    clip_norm: float
    canaries: int
    place: str
    settings: dict[str, Any]
    own_noise: bool = False


@dataclass(frozen=True)
class Step:
    """One real step: the noisy sum at each canary's coordinate in units of the clip norm, who was in, and the noise
    multiplier that was accounted for. In old recordings `noise` is its size at some coordinates of the model, in units
    of the clip norm and sorted."""

    kind: ClassVar[str] = "step"
    training: int
    scores: NDArray[np.float64]
    coins: NDArray[np.bool_]
    noise_multiplier: float
    clip_norm: float
    noise: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def packed(self) -> dict[str, Any]:
        """What is written otherwise than as it is."""
        return {
            "canaries": len(self.scores),
            "scores": _packed(self.scores),
            "noise": _packed(self.noise),
            "coins": _text(np.packbits(self.coins).tobytes()),
        }


@dataclass(frozen=True)
class Parameters:
    """The names of all parameters whose noise was seen so far; what is said of noise is in this order."""

    kind: ClassVar[str] = "parameters"
    training: int
    names: list[str]


@dataclass(frozen=True)
class StepNoise:
    """The noise of one real step as sums and counts, from which nobody can take it off, in units of what was accounted
    for: see `NoiseSample`. A step in which it was not seen has no sizes."""

    kind: ClassVar[str] = "noise"
    training: int
    noise_multiplier: float
    sizes: list[int] = field(default_factory=list)
    squares: list[float] = field(default_factory=list)
    counted: int = 0
    beyond: list[int] = field(default_factory=lambda: [0] * len(LEVELS))
    fine: int = 0
    on_grid: list[int] = field(default_factory=lambda: [0] * 2 * len(GRIDS))

    @classmethod
    def of(cls, training: int, noise_multiplier: float, names: list[str], seen: NoiseSample | None) -> StepNoise:
        """Of parameters with these names, which are those of the sample or more."""
        if seen is None:
            return cls(training, noise_multiplier)
        sizes, squares = (dict(zip(seen.names, each, strict=True)) for each in (seen.sizes, seen.squares))
        counts = seen.counts
        return cls(
            training,
            noise_multiplier,
            [int(sizes.get(name, 0)) for name in names],
            [float(f"{squares.get(name, 0.0):.9g}") for name in names],
            counts.counted,
            list(counts.beyond),
            counts.fine,
            list(counts.on_grid),
        )

    def sample(self, names: list[str]) -> NoiseSample | None:
        """The sample again; names that were lost have a number."""
        if not self.sizes:
            return None
        known = names[: len(self.sizes)] + [f"parameter {n + 1}" for n in range(len(names), len(self.sizes))]
        counts = Counts(self.counted, tuple(self.beyond), self.fine, tuple(self.on_grid))
        return NoiseSample(tuple(known), tuple(self.sizes), tuple(self.squares), counts)


@dataclass(frozen=True)
class Shared:
    """What one rank gave to a step that several processes take together, and what came back: the sum before and after
    noise, and the gradient of the step, at `sizes` coordinates of each parameter, then the batch, sealed. With
    `sharded`, the rank has a part of each parameter of its own; with `averaged`, what is reduced is divided by the
    number of ranks."""

    kind: ClassVar[str] = "shared"
    training: int
    step: int
    rank: int
    world: int
    group: str
    names: list[str]
    sizes: list[int]
    scale: float
    divisor: float
    sharded: bool
    averaged: bool
    knows_batch: bool
    once: str
    sealed: str


@dataclass(frozen=True)
class NotAudited:
    """From here on, or at all; training 0 is the whole process."""

    kind: ClassVar[str] = "not-audited"
    training: int
    reason: str


@dataclass(frozen=True)
class Told:
    """What is known of a training by now, beside its noise and canaries: see `Facts`."""

    kind: ClassVar[str] = "facts"
    training: int
    facts: Facts

    def packed(self) -> dict[str, Any]:
        """What is written otherwise than as it is."""
        return {"facts": self.facts.to_dict()}


@dataclass(frozen=True)
class Ended:
    """The process came to its end, and so many steps were accounted for that nobody saw; the accountant's history of
    (noise multiplier, sample rate, steps), where it has one."""

    kind: ClassVar[str] = "ended"
    training: int
    unseen: int
    history: list[list[float]] = field(default_factory=list)


Record = Started | Imported | MadePrivate | Parameters | StepNoise | Shared | Step | NotAudited | Told | Ended
_KINDS: dict[str, type[Record]] = {
    one.kind: one
    for one in (Started, Imported, MadePrivate, Parameters, StepNoise, Shared, Step, NotAudited, Told, Ended)
}


class Sink(Protocol):
    """Where records go."""

    def take(self, record: Record) -> object: ...

    def here(self) -> Sink:
        """The one for trainings that begin in this process, which may be a forked copy."""


class Writer:
    """A sink that appends to a file; each record is one write, so a killed process tears its last line at most."""

    def __init__(self, path: str | Path) -> None:
        self._path, self._process = str(path), os.getpid()

    def here(self) -> Writer:
        """Of a forked copy a file of its own: two processes number their trainings alike."""
        process = os.getpid()
        if process == self._process:
            return self
        own = Writer(Path(self._path).with_name(f"{process}-{time.time_ns()}{SUFFIX}"))
        own.take(Started(process, [str(word) for word in sys.orig_argv], platform.python_version()))
        return own

    def take(self, record: Record) -> None:
        line = encode(record)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            while line:
                line = line[os.write(descriptor, line) :]
        finally:
            os.close(descriptor)


class Reader:
    """Follows a file that somebody appends to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0  # complete lines that are no records
        self._at = 0

    def new(self) -> Iterator[Record]:
        """What was appended since the last call, without a line that has no end yet."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # a pipe would keep us waiting
                raise OSError(f"{self.path} is no plain file")
            file.seek(self._at)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        for line in whole.splitlines():
            try:
                yield decode(line)
            except MALFORMED:
                self.damaged += 1


def encode(record: Record) -> bytes:
    """One line.

    >>> decode(encode(NotAudited(1, "why")))
    NotAudited(training=1, reason='why')
    """
    packed = record.packed() if hasattr(record, "packed") else {}
    plain = {one.name: getattr(record, one.name) for one in fields(record) if one.name not in packed}
    return json.dumps({"kind": record.kind, **plain, **packed}).encode() + b"\n"


def decode(line: bytes) -> Record:
    """The record of a line; ValueError, TypeError or KeyError if it is none, or one that makes no sense."""
    content = json.loads(line)
    kind = _KINDS[content.pop("kind")]
    if kind is Step:
        number = content.pop("canaries")
        content["scores"] = _numbers(content["scores"])
        content["noise"] = _numbers(content.get("noise", ""))
        bits = np.frombuffer(base64.b64decode(content["coins"], validate=True), np.uint8)
        content["coins"] = np.unpackbits(bits, count=number).astype(bool)
        if number < 1 or len(content["scores"]) != number or len(content["coins"]) != number:
            raise ValueError("a step of another length")
    if kind is Told:
        content["facts"] = Facts.from_dict(content["facts"])
    named = {one.name: content[one.name] for one in fields(kind) if one.name in content}
    wrong = [name for name, value in named.items() if not _MAKES_SENSE[name](value)]
    if wrong:
        raise ValueError(f"{kind.kind}: {', '.join(wrong)}")
    return kind(**named)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _real(value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    float(value)  # OverflowError, if it is too large
    return True


def _finite(value: Any) -> bool:
    return _real(value) and math.isfinite(value)


def _text_or_empty(value: Any) -> bool:
    return isinstance(value, str)


def _all(good: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(good(one) for one in value)


def _entry(value: Any) -> bool:
    """Of an accountant's history."""
    return isinstance(value, list) and len(value) == 3 and all(_finite(part) and part >= 0 for part in value)


# What is read back may have been written by anybody: a line that makes no sense counts as damaged, and no more.
_MAKES_SENSE: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("pid", "training", "canaries", "unseen", "counted", "fine", "step", "rank", "world"), _count),
    **dict.fromkeys(("sizes", "beyond", "on_grid"), _all(_count)),
    "squares": _all(_finite),
    "names": _all(_text_or_empty),
    **dict.fromkeys(
        ("python", "library", "version", "optimizer", "place", "reason", "group", "once", "sealed"), _text_or_empty
    ),
    **dict.fromkeys(("noise_multiplier", "clip_norm"), _real),
    "argv": _all(_text_or_empty),
    "settings": lambda value: isinstance(value, dict),
    **dict.fromkeys(("own_noise", "sharded", "averaged", "knows_batch"), lambda value: isinstance(value, bool)),
    **dict.fromkeys(("scale", "divisor"), _finite),
    "scores": lambda value: not np.isnan(value).any(),
    "noise": lambda value: bool(np.isfinite(value).all()),
    "coins": lambda _: True,
    "facts": lambda value: isinstance(value, Facts),
    "history": _all(_entry),
}


def _numbers(text: str) -> NDArray[np.float64]:
    return np.frombuffer(base64.b64decode(text, validate=True), "<f4").astype(np.float64)


def _packed(values: NDArray[np.float64]) -> str:
    return _text(np.asarray(np.clip(values, -_FAR, _FAR), "<f4").tobytes())


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
