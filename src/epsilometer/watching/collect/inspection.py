"""Looks on while a script trains, and says at the end what it has seen; the training is the same without it."""

from __future__ import annotations

import io
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, Generic, Protocol, TypeVar

import torch

from epsilometer.watching.facts import PARTS, Facts

_ALIVE: deque[Inspection[Any]] = deque()
_MOST_ALIVE = 8  # trainings of one process that are kept; a further one settles the oldest


class Seen(Protocol):
    """One training, as somebody sees it who follows its steps."""

    trouble: str  # why it cannot be followed any more

    def facts(self, apart: Callable[[], AbstractContextManager[None]]) -> Facts:
        """All that is known by now. Where crafted records go through the script's code, `apart` is around it."""

    def close(self) -> None:
        """Look away for good."""


S = TypeVar("S", bound=Seen)
T = TypeVar("T")


class Inspection(Generic[S]):
    """Told of what happens by whoever has taken hold of a training; takes no random number and touches no parameter.

    It raises nothing: what goes wrong in here is no business of the script, and is said in place of facts.
    """

    def __init__(self, look: Callable[[], S]) -> None:
        """`look` begins to follow the training."""
        self._training: S | None = None
        self._settled: Facts | None = None
        self.probing = False  # while crafted records go through the script's clipper: others should look away
        try:
            self._training = look()
            _ALIVE.append(self)
            if len(_ALIVE) > _MOST_ALIVE:
                _ALIVE.popleft()._settle()
        except Exception as error:
            self._settled = Facts(troubles=dict.fromkeys(PARTS, f"a training cannot be followed ({_what(error)})"))

    def tell(self, what: Callable[[S], None]) -> None:
        """Something has happened; crafted records of ours are nothing that happens."""
        seen = self._training
        if seen is None or seen.trouble or self.probing:
            return
        try:
            what(seen)
        except Exception as error:
            seen.trouble = _what(error)

    def ask(self, what: Callable[[S], T]) -> T | None:
        """Of a training that can be followed; what goes wrong in here counts as nothing."""
        seen = self._training
        if seen is None or seen.trouble or self.probing:
            return None
        with suppress(Exception):
            return what(seen)
        return None

    def facts(self, *, end: bool = False) -> Facts:
        """What is known by now; at the `end` it looks away."""
        if self._training is None:
            return self._settled or Facts()
        if end:
            self._training.close()
        return self._training.facts(self._apart)

    def _settle(self) -> None:
        """Tell now and let go of models and optimizers: a search over settings makes many of them."""
        self._settled = self.facts(end=True)
        self._training = None

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """No random number of the script is used up, and nobody takes crafted records for real ones."""
        self.probing = True
        try:
            with torch.random.fork_rng(), warnings.catch_warnings(), _silence():
                warnings.simplefilter("ignore")
                yield
        finally:
            self.probing = False


@contextmanager
def _silence() -> Iterator[None]:
    """A model that prints in its forward pass printed enough in the training."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield


def _what(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
