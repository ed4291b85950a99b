"""Looks on while a script trains, and says at the end what it thinks of it; the training is the same without it."""

from __future__ import annotations

import io
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any

import torch

from epsilometer.watching.checks.check import Check, Finding, Status, not_applicable
from epsilometer.watching.checks.names import ALL, REFUTING
from epsilometer.watching.checks.seen import SeenTraining

if TYPE_CHECKING:
    from epsilometer.watching.checks.repetition import NoiseDigest


_ALIVE: deque[Inspection] = deque()
_MOST_ALIVE = 8  # trainings of one process that are kept; a further one settles the oldest


class Inspection:
    """Told of what happens by whoever has patched Opacus; takes no random number and touches no parameter.

    It raises nothing: what goes wrong in here is no business of the script, and ends as `not applicable`.
    """

    def __init__(self) -> None:
        self._trainings: list[SeenTraining] = []
        self._settled: tuple[list[Check], list[NoiseDigest]] | None = None
        self._failures: list[Check] = []
        self.probing = False  # while crafted records go through the script's clipper: others should look away

    def made_private(self, engine: Any, module: Any, optimizer: Any, loader: Any, settings: Mapping[str, Any]) -> None:
        """`make_private` has returned these; `settings` are its keywords, the script's own module, … among them."""
        try:
            self._trainings.append(SeenTraining(engine, module, optimizer, loader, settings))
            _ALIVE.append(self)
            if len(_ALIVE) > _MOST_ALIVE:
                _ALIVE.popleft()._settle()
        except Exception as error:
            self._failures.append(Check(ALL, Status.NOT_APPLICABLE, f"a training cannot be followed ({_what(error)})"))

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

    def finished(self) -> list[Check]:
        """The answers of all checks, for each `make_private` in turn."""
        for seen in self._trainings:
            seen.close()
        return self.so_far()

    def so_far(self) -> list[Check]:
        """The same while the training goes on: what they say of it up to now."""
        if self._settled is not None:
            return self._failures + self._settled[0]
        return self._failures + [check for number in range(len(self._trainings)) for check in self._answers(number)]

    def digests(self) -> list[NoiseDigest]:
        """The first noise of each training, to compare with that of another run."""
        from epsilometer.watching.checks.repetition import NoiseDigest

        return self._settled[1] if self._settled else [NoiseDigest.of(seen) for seen in self._trainings]

    def _settle(self) -> None:
        """Answer now and let go of models and optimizers: a search over settings makes many of them."""
        failures, self._failures = self._failures, []
        self._settled = (self.finished(), self.digests())
        self._failures = failures
        self._trainings.clear()

    def _tell(self, optimizer: Any, what: Callable[[SeenTraining], None]) -> None:
        seen = next((one for one in reversed(self._trainings) if one.optimizer is optimizer), None)
        if seen is None or seen.trouble or self.probing:
            return
        try:
            what(seen)
        except Exception as error:
            seen.trouble = _what(error)

    def _answers(self, number: int) -> Iterator[Check]:
        from epsilometer.watching.checks.catalogue import CHECKS
        from epsilometer.watching.opacus.support import another_mechanism

        seen = self._trainings[number]
        another = bool(another_mechanism(seen.optimizer))
        several = f"make_private {number + 1} of {len(self._trainings)}: " if len(self._trainings) > 1 else ""
        for name, answer in CHECKS.items():
            finding = self._answer(answer, seen)
            refutes = finding.status is Status.FAILED and name in REFUTING and not (finding.meant or another)
            yield Check(name, finding.status, several + finding.reason, refutes)

    def _answer(self, answer: Callable[[SeenTraining], Finding], seen: SeenTraining) -> Finding:
        if seen.trouble:
            return not_applicable(f"the training could not be followed ({seen.trouble})")
        try:
            with self._apart():
                return answer(seen)
        except Exception as error:
            return not_applicable(f"could not be tried ({_what(error)})")

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
