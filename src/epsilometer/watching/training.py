"""Trainings under watch, of whatever framework: coins, records, and a guard around all that is ours.

Nothing that goes wrong in here may reach the script: it is recorded, and the training goes on unwatched.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeGuard

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.watching.ending import at_end
from epsilometer.watching.facts import PARTS, Facts
from epsilometer.watching.privatizer import Coins, Ledger, Privatizer
from epsilometer.watching.recording import (
    Ended,
    MadePrivate,
    NotAudited,
    Parameters,
    Shared,
    Sink,
    Step,
    StepNoise,
    Told,
)
from epsilometer.watching.settings import Settings

_PAUSE, _SHARE = 5.0, 0.02  # seconds between two tellings, and the share of time that they may take


class WatchedTraining:
    """One training: tosses the coins of its canaries, and says what came of every step."""

    def __init__(self, number: int, privatizer: Privatizer, settings: Settings, sink: Sink) -> None:
        self.number, self.privatizer, self.settings = number, privatizer, settings
        self.seen, self.lost = 0, False
        self._sink, self._process, self._finished = sink, os.getpid(), False
        self._coins: Coins | None = None  # of the step under way
        self._tell_at = time.monotonic() + _PAUSE
        self._names: list[str] = []  # of parameters whose noise was seen
        self._blind = not privatizer.shows_noise
        self._canaries = settings.canaries if privatizer.plays else 0
        self.draw = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(number,)))

    def begin(self) -> None:
        """Say what is watched."""
        stated, one = self.privatizer.stated(), self.privatizer
        self._sink.take(
            MadePrivate(
                self.number,
                stated.name,
                stated.noise_multiplier,
                stated.clip_norm,
                self._canaries,
                one.place,
                stated.settings,
                one.shows_noise,
            )
        )
        reason = one.why_not()
        if reason:
            self.lose(reason)

    def play(self) -> None:
        """After a step of the script's own: its noise is looked at, and canaries go the same way."""
        self.look()
        self.guarded(self._play)

    def look(self) -> None:
        """At the noise of the step that was just taken, also where canaries are lost."""
        if self._blind or os.getpid() != self._process:
            return
        try:
            sigma = self.privatizer.stated().noise_multiplier
            seen = self.privatizer.noise(sigma)
            new = [] if seen is None else [name for name in seen.names if name not in self._names]
            if new:
                self._names = [*self._names, *new]
                self._sink.take(Parameters(self.number, self._names))
            self._sink.take(StepNoise.of(self.number, sigma, self._names, seen))
        except Exception:  # what is not seen counts for nothing
            self._blind = True

    def share(self, shared: Shared) -> None:
        """What this process gave to a step that several take."""
        if os.getpid() == self._process and not self._finished:
            self._sink.take(shared)

    def toss(self, canaries: int | None = None) -> Coins:
        """Who is in, in the step under way."""
        self._coins = self.draw.random(self._canaries if canaries is None else canaries) < 0.5
        return self._coins

    def take(self, scores: Floats) -> None:
        """What came of the step whose coins were tossed: what `insert` gives."""
        if self.elsewhere() or self._coins is None:
            return
        coins, self._coins = self._coins, None
        if len(scores) != len(coins):
            raise ValueError(f"{len(scores)} scores of {len(coins)} canaries")
        self.seen += 1
        stated = self.privatizer.stated()
        known = np.nan_to_num(scores, nan=0.5)  # where nothing can be read, nothing is known
        self._sink.take(Step(self.number, known, coins, stated.noise_multiplier, stated.clip_norm))

    def guarded(self, act: Callable[..., None], *arguments: Any) -> None:
        """Do it, unless this training is lost; it is, if that fails."""
        if self.lost:
            return
        try:
            act(*arguments)
        except Exception as error:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Something of ours went wrong."""
        self.lose(f"the canaries failed ({type(error).__name__}: {str(error)[:300]})")

    def lose(self, reason: str) -> None:
        """No canaries from now on."""
        if not self.lost:
            self.lost = True
            with suppress(Exception):  # a full disk, say
                self._sink.take(NotAudited(self.number, reason))

    def tell(self, *, end: bool = False) -> None:
        """What is known of it by now, for the checks."""
        if not self._finished and os.getpid() == self._process:
            try:
                facts = self.privatizer.facts(end=end)
            except Exception as error:
                facts = Facts(troubles=dict.fromkeys(PARTS, f"could not be told ({type(error).__name__}: {error})"))
            self._sink.take(Told(self.number, facts))

    def tell_now_and_then(self, *, at_once: bool = False) -> None:
        """So that a process which is killed has told what was known a moment before, at a small share of its time."""
        now = time.monotonic()
        if at_once or now >= self._tell_at:
            self.tell()
            after = time.monotonic()
            self._tell_at = after + max(_PAUSE, (after - now) / _SHARE)

    def wait(self) -> None:
        """For steps that are under way elsewhere."""
        with suppress(Exception):
            self.privatizer.wait()

    def accounted(self) -> Ledger | None:
        """What the script's accountant was told; an accountant that cannot be read tells nothing."""
        with suppress(Exception):
            return self.privatizer.accounted()
        return None

    def finish(self, unseen: int = 0) -> None:
        """No more steps will come; so many were accounted for that nobody saw."""
        if not self._finished and os.getpid() == self._process:
            self.tell(end=True)
            self._finished = True
            ledger = self.accounted()
            self._sink.take(Ended(self.number, unseen, ledger.history if ledger else []))

    def _play(self) -> None:
        if self.elsewhere():
            return
        if not self._canaries:  # checks only
            self.seen += 1
            return
        reason = self.privatizer.why_not()
        if reason:
            self.lose(reason)
        else:
            coins = self.toss()
            self.take(self.privatizer.insert(coins, self.draw))

    def elsewhere(self) -> bool:
        """Is this a forked copy of the process in which the training began? Then it is lost."""
        if os.getpid() == self._process:
            return False
        self.lose("the process was forked after the training began, and steps are taken in the copy")
        return True


class Trainings:
    """All trainings of one process, and where their records go."""

    def __init__(self, sink: Sink, settings: Settings) -> None:
        self.settings = settings
        self._sink, self._all, self._process = sink, list[WatchedTraining](), os.getpid()
        self._finished = False

    def begin(self, privatizer: Privatizer) -> WatchedTraining:
        """One more, made private by this; it is lost at once if it cannot say what it states. A forked copy of the
        process begins to count anew."""
        if os.getpid() != self._process:
            self._process, self._sink, self._all, self._finished = os.getpid(), self._sink.here(), [], False
            at_end(self.finish)
        training = WatchedTraining(len(self._all) + 1, privatizer, self.settings, self._sink)
        self._all.append(training)
        try:
            training.begin()
        except Exception as error:
            training.lost = True
            self.failed("a training that begins", error)
        return training

    def not_audited(self, reason: str) -> None:
        """Something that is no training here."""
        with suppress(Exception):  # a full disk, say
            self._sink.take(NotAudited(0, reason))

    def failed(self, what: str, error: Exception) -> None:
        """One of our hooks, where no training had begun."""
        self.not_audited(f"the hook of {what} failed ({type(error).__name__}: {str(error)[:300]})")

    def tell(self) -> None:
        """What is known by now of every training that goes on."""
        if not self._finished and os.getpid() == self._process:
            for training in self._all:
                training.wait()
                training.tell()

    def finish(self) -> None:
        """The process ends: say how many steps were accounted for that nobody has seen."""
        if self._finished or os.getpid() != self._process:  # a forked copy has nothing to say
            return
        for training in self._all:
            training.wait()
        self._finished = True
        ledgers = [training.accounted() for training in self._all]
        for training, ledger in zip(self._all, ledgers, strict=True):
            unseen = 0
            if ledger is not None:
                pairs = zip(self._all, ledgers, strict=True)
                same = [(its.steps, one.seen) for one, its in pairs if _shared(its, ledger)]
                unseen = max(steps for steps, _ in same) - sum(seen for _, seen in same)
            training.finish(max(0, unseen))

    def __iter__(self) -> Iterator[WatchedTraining]:
        return iter(self._all)


def _shared(one: Ledger | None, other: Ledger) -> TypeGuard[Ledger]:
    return one is not None and one.accountant is other.accountant
