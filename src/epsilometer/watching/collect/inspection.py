"""Looks on while a script trains, and says at the end what it has seen; the training is the same without it."""

from __future__ import annotations

import io
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import torch

from epsilometer.watching.collect.seen import SeenTraining
from epsilometer.watching.facts import PARTS, Facts

_ALIVE: deque[Inspection] = deque()
_MOST_ALIVE = 8  # trainings of one process that are kept; a further one settles the oldest


class Inspection:
    """Told of what happens by whoever has patched Opacus; takes no random number and touches no parameter.

    It raises nothing: what goes wrong in here is no business of the script, and is said in place of facts.
    """

    def __init__(self) -> None:
        self._training: SeenTraining | None = None
        self._settled: Facts | None = None
        self.probing = False  # while crafted records go through the script's clipper: others should look away

    def made_private(self, engine: Any, module: Any, optimizer: Any, loader: Any, settings: Mapping[str, Any]) -> None:
        """`make_private` has returned these; `settings` are its keywords, the script's own module, … among them."""
        try:
            self._training = SeenTraining(engine, module, optimizer, loader, settings)
            _ALIVE.append(self)
            if len(_ALIVE) > _MOST_ALIVE:
                _ALIVE.popleft()._settle()
        except Exception as error:
            self._settled = Facts(troubles=dict.fromkeys(PARTS, f"a training cannot be followed ({_what(error)})"))

    def accumulated(self, optimizer: Any, records: int | None = None) -> None:
        """One physical batch was clipped and summed; `records` is for callers that have put rows of their own into it.

        Without this call, batches that are put together from several physical ones are not counted.
        """
        self._tell(optimizer, lambda seen: seen.accumulated(records))

    def noised(self, optimizer: Any) -> None:
        """Right after the script's own add_noise, before anything is divided."""
        self._tell(optimizer, SeenTraining.noised)

    def stepped(self, optimizer: Any) -> None:
        """After the accountant's hook."""
        self._tell(optimizer, SeenTraining.stepped)

    def taken_off(self, parameter: Any, index: Any, values: Any) -> None:
        """Canaries of ours, in units of sums, are out of this gradient again."""
        if self._training is not None:
            self._training.kept.taken_off(parameter, index, values)

    def facts(self, *, end: bool = False) -> Facts:
        """What is known by now; at the `end` it looks away."""
        if self._settled is not None or self._training is None:
            return self._settled or Facts()
        if end:
            self._training.close()
        return self._training.facts(self._apart)

    def _settle(self) -> None:
        """Tell now and let go of models and optimizers: a search over settings makes many of them."""
        self._settled = self.facts(end=True)
        self._training = None

    def _tell(self, optimizer: Any, what: Callable[[SeenTraining], None]) -> None:
        seen = self._training
        if seen is None or seen.optimizer is not optimizer or seen.trouble or self.probing:
            return
        try:
            what(seen)
        except Exception as error:
            seen.trouble = _what(error)

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
