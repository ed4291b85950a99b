"""Trainings of this process, watched from within: one object for all frameworks."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from epsilometer import validate
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.watching.judging import Judging
from epsilometer.watching.lines import in_brief, in_full
from epsilometer.watching.privatizer import Privatizer
from epsilometer.watching.settings import EXTRA, MOST, PLACES, Declared, Settings
from epsilometer.watching.training import Trainings, WatchedTraining

if TYPE_CHECKING:
    from epsilometer.verdict import Verdict
    from epsilometer.watching.judged import JudgedTraining


def validated(canaries: int, place: str, seed: int | None, *, argument: str = "canaries") -> Settings:
    """How to watch, if that makes sense."""
    validate.whole(argument, canaries, least=1, most=MOST)
    if seed is not None:
        validate.whole("seed", seed, least=0)
    if place not in PLACES:
        raise unknown_name("place", place, PLACES)
    return Settings(canaries, place, seed)


def declared(noise_multiplier: float | None, sample_rate: float | None, clip_norm: float | None) -> Declared | None:
    """What somebody says of a loop by hand, if that makes sense."""
    if noise_multiplier is None:
        for name, value in (("sample-rate", sample_rate), ("clip-norm", clip_norm)):
            if value is not None:
                raise InvalidInput(name, value, "--noise-multiplier beside it", "both say what a loop by hand accounts")
        return None
    validate.real("noise-multiplier", noise_multiplier, above=0)
    if sample_rate is not None:
        validate.real("sample-rate", sample_rate, above=0, below=1, closed="]")
    if clip_norm is not None:
        validate.real("clip-norm", clip_norm, above=0)
    return Declared(noise_multiplier, sample_rate, clip_norm)


class Watch:
    """What is known of some trainings of this process, at any time.

    At the end of the process two lines on stderr for each training say the verdict, unless `quiet`; `str` says all of
    it. `delta` is that of the ε which is shown (without it the script's `target_delta`, else 1e-5); checks to `ignore`
    may fail, and are shown as ignored; statements to `assume` need no test, since whoever watches vouches for them.
    """

    def __init__(
        self,
        *,
        canaries: int = 200,
        place: str = EXTRA,
        seed: int | None = None,
        confidence: float = 0.95,
        delta: float | None = None,
        ignore: Collection[str] = (),
        assume: Collection[str] = (),
        quiet: bool = False,
    ) -> None:
        settings, judging = validated(canaries, place, seed), Judging(confidence, delta, tuple(ignore), tuple(assume))
        from epsilometer.watching.monitor import Monitor

        self._monitor = Monitor(judging)
        self._process = os.getpid()
        self.hooks = Trainings(self._monitor, settings)
        if not quiet:
            atexit.register(self._at_exit)

    def begin(self, privatizer: Privatizer) -> WatchedTraining:
        """Watch one training of a loop of one's own, which this privatizer knows: `play()` of what is returned is
        called after each of its steps."""
        return self.hooks.begin(privatizer)

    @property
    def trainings(self) -> list[JudgedTraining]:
        """In order, each with its verdict and with what the checks find by now; steps under way are waited for."""
        self.hooks.tell()
        self._monitor.compose()
        return list(self._monitor)

    @property
    def verdict(self) -> Verdict:
        """On the training that began last."""
        trainings = self.trainings
        if not trainings:
            why = "; ".join(self._monitor.failures) or "nothing was made private so far"
            raise InvalidInput("verdict", None, "a training that is made private under watch before it", why)
        return trainings[-1].verdict()

    def result(self) -> list[dict[str, Any]]:
        """All trainings as plain data."""
        return [one.to_dict() for one in self.trainings]

    def finish(self) -> None:
        """No more steps will come: what the accountant has by now is what the trainings promise."""
        self.hooks.finish()

    def __str__(self) -> str:
        return self._said(in_full)

    def _said(self, of: Callable[[JudgedTraining], list[str]]) -> str:
        failures = [f"epsilometer: not audited, because {why}" for why in self._monitor.failures]
        trainings = self.trainings
        if not trainings:
            return "\n".join(failures or ["epsilometer: nothing was made private"])
        lines = []
        for number, one in enumerate(trainings, 1):
            name = f"epsilometer: training {number}"
            lines += [f"{name}: {line}" for line in of(one)]
        limits = [f"epsilometer: {line}" for line in self._monitor.limits()]
        return "\n".join([*failures, *lines, *limits])

    def _at_exit(self) -> None:
        if os.getpid() != self._process:  # a forked copy has nothing to say
            return
        with suppress(Exception):
            self.finish()
            print(self._said(in_brief), file=sys.stderr, flush=True)
