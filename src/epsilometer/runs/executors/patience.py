"""How long trials may take: a training that hangs is not waited for without end."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterator
from contextlib import contextmanager

from epsilometer.isolation import Isolation
from epsilometer.runs.groups import Played

_FIRST_LIMIT, _LEAST_LIMIT, _TIMES = 3600.0, 60.0, 30.0  # seconds, and times the slowest trial so far


class Patience:
    """As the user says, or much longer than any trial so far took."""

    def __init__(self, safeguards: Isolation) -> None:
        self._seconds = safeguards.seconds
        self._slowest = 0.0  # seconds that a trial took

    def learn(self, played: Played) -> None:
        self._slowest = max(self._slowest, played.seconds / len(played.trials))

    def limit(self, trials: int) -> float:
        """Seconds for so many in one go."""
        if self._seconds is not None:
            return self._seconds * trials
        return max(_LEAST_LIMIT, _TIMES * self._slowest * trials) if self._slowest else _FIRST_LIMIT


def exceeded(limit: float) -> str:
    """Why trials were given up."""
    return f"it took more than {limit:.3g} s; `time_limit` of the subject allows for more"


@contextmanager
def ending_this_process_after(seconds: float) -> Iterator[None]:
    """End the whole process if this takes longer, whatever it is doing: nothing of Python is needed for it."""
    with open(os.devnull, "w") as nowhere:
        faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
