"""How far a run is, for whoever watches it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from epsilometer.errors import EpsilometerError
from epsilometer.runs.tally import Tally

_EVERY = 2.0  # seconds between two looks at what is shown, and
_SHARE = 0.02  # of the time may go into them
_FEWEST = 10  # trials of each world before the first
_WINDOW, _SETTLED = 15.0, 1.0  # seconds over which the rate is taken, at most (if groups are not rarer) and at least
_LONGEST = 0.5  # share of that time that the wait for one group may have


@dataclass(frozen=True)
class Snapshot:
    """Trials done of all, how many a second in this session, and what they show so far."""

    done: int
    total: int
    rate: float | None  # of late; none before it can be known: the first groups include compiling
    found: str  # what is shown so far: it counts only if the trials may stop early
    found_at: int = 0  # after how many trials that was
    adversary: str = ""  # whose trials they are
    judging: bool = False  # all trials are there, and what they show is being worked out
    starting: str = ""  # what is done before the first group is finished; nothing can be said of the time left then
    seconds_left: float | None = None  # at that rate


Progress = Callable[[Snapshot], None]


class Reporter:
    """Tells `progress` about a tally, with what it shows every now and then."""

    def __init__(self, progress: Progress | None, tally: Tally) -> None:
        self._progress, self._tally = progress, tally
        self._whose = "" if progress is None else tally.work.describe()
        self._past: deque[tuple[float, int]] = deque()  # when, and how many were done
        self._last_look = time.perf_counter()
        self._cost = 0.0
        self._found, self._found_at = "", 0

    def starting(self, foreign: bool) -> None:
        """No trial of this session is finished: with the first ones come compiling, workers that start, foreign code
        that is looked at."""
        if self._progress is not None:
            self._say(starting="starting" if foreign else "compiling")

    def judging(self) -> None:
        """Trials are done; with many of them, judging takes a while."""
        if self._progress is not None:
            self._say(judging=True)

    def tell(self) -> None:
        if self._progress is None:
            return
        tally, now = self._tally, time.perf_counter()
        if now - self._last_look > max(_EVERY, self._cost / _SHARE) and tally.complete >= _FEWEST:
            with suppress(EpsilometerError):  # it is there to be looked at; a run does not end for it
                self._found = tally.work.so_far(tally.results, tally.complete)
            self._last_look = time.perf_counter()
            self._cost = self._last_look - now
            self._found_at = tally.done
        self._past.append((now, tally.done))
        self._say(rate=self._rate(), found=self._found, found_at=self._found_at)

    def _say(self, rate: float | None = None, found: str = "", **state: Any) -> None:
        assert self._progress is not None
        done, total = self._tally.done, self._tally.total
        left = (total - done) / rate if rate else None
        self._progress(Snapshot(done, total, rate, found, adversary=self._whose, seconds_left=left, **state))

    def _rate(self) -> float | None:
        """Trials a second over the longest time of late in which no wait for a group stands out.

        Whoever plays compiles first: this process, then every worker that starts. A few trials after such a wait are
        no rate; an audit of seconds was said to take two days.
        """
        past = self._past
        now, done = past[-1]
        longest, first = 0.0, None
        for place in range(len(past) - 2, -1, -1):
            longest = max(longest, past[place + 1][0] - past[place][0])
            span = now - past[place][0]
            if span > _SETTLED and longest <= _LONGEST * span:
                first = place
        for _ in range(first or 0):
            past.popleft()  # what came before that does not come back
        while len(past) > 2 and now - past[1][0] > max(_WINDOW, 3 * longest):
            past.popleft()
        return None if first is None else (done - past[0][1]) / (now - past[0][0])
