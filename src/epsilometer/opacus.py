"""Opacus trainings, audited while they run: one line before `make_private`.

    engine = PrivacyEngine()
    audit = epsilometer.opacus.watch(engine)

`epsilometer watch -- python train.py` does the same for a script of which no line is changed.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from epsilometer import validate
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.watching.checks.names import NAMES
from epsilometer.watching.opacus.attach import Hooks
from epsilometer.watching.settings import EXTRA, MOST, PLACES, Settings

if TYPE_CHECKING:
    from epsilometer.auditing.verdict import Verdict
    from epsilometer.watching.monitor import Watched
    from epsilometer.watching.opacus.record_norms import RecordNorms

__all__ = ["Watch", "watch"]


class Watch:
    """What is known of the trainings of one engine, at any time."""

    def __init__(self, settings: Settings, confidence: float, delta: float | None, ignored: Collection[str]) -> None:
        from epsilometer.watching.monitor import Monitor

        self._monitor = Monitor(confidence, delta, ignored)
        self._hooks = Hooks(self._monitor, settings)
        self._process = os.getpid()

    @property
    def trainings(self) -> list[Watched]:
        """One for each call of `make_private`, in order, with what the checks find by now."""
        self._hooks.tell()
        return list(self._monitor)

    @property
    def verdict(self) -> Verdict:
        """On the training that was made private last."""
        trainings = self.trainings
        if not trainings:
            why = "; ".join(self._monitor.failures) or "nothing was made private so far"
            raise InvalidInput("engine", "watched", "a call of make_private before the verdict", why)
        return trainings[-1].verdict()

    def result(self) -> list[dict[str, Any]]:
        """All trainings as plain data."""
        return [one.to_dict() for one in self.trainings]

    def account_records(
        self, optimizer: Any, module: Any, x: Any, y: Any, criterion: Any, *, every: int = 1
    ) -> RecordNorms:
        """Individual accounting (Yu et al. 2023) of chosen records, from now on: what `make_private` returned, the
        records as the module takes them, and the loss. Its `epsilons(delta)` says at any time what each record has paid
        in this training; these values are private themselves. Looking every few steps only is cheaper, and a guess."""
        from epsilometer.watching.opacus.record_norms import RecordNorms

        norms = RecordNorms(module, x, y, criterion, every)
        self._hooks.account_records(optimizer, norms)
        return norms

    def __str__(self) -> str:
        failures = [f"epsilometer: not audited, because {why}" for why in self._monitor.failures]
        trainings = self.trainings
        if not trainings:
            return "\n".join(failures or ["epsilometer: nothing was made private"])
        lines = [f"epsilometer: training {n}: {one.headline()}" for n, one in enumerate(trainings, 1)]
        return "\n".join([*failures, *lines])

    def _at_exit(self) -> None:
        if os.getpid() != self._process:  # a forked copy has nothing to say
            return
        with suppress(Exception):
            self._hooks.finish()
            print(self, file=sys.stderr, flush=True)


def watch(
    engine: Any,
    *,
    canaries: int = 200,
    place: str = EXTRA,
    seed: int | None = None,
    confidence: float = 0.95,
    delta: float | None = None,
    ignore: Collection[str] = (),
    quiet: bool = False,
) -> Watch:
    """Audit what this `PrivacyEngine` makes private from now on. At the end of the process a line on stderr says the
    verdict, unless `quiet`; `.verdict` and `.result()` say it at any time. `delta` is that of the ε which is shown
    (without it the script's `target_delta`, else 1e-5); checks to `ignore` may fail, and are shown as ignored."""
    if not callable(getattr(engine, "make_private", None)):
        raise InvalidInput("engine", engine, "an opacus.PrivacyEngine", "watch it before make_private is called")
    validate.whole("canaries", canaries, least=1, most=MOST)
    validate.real("confidence", confidence, above=0, below=1)
    if delta is not None:
        validate.real("delta", delta, above=0, below=1)
    if seed is not None:
        validate.whole("seed", seed, least=0)
    for name in ignore:
        if name not in NAMES:
            raise unknown_name("ignore", name, NAMES)
    if place not in PLACES:
        raise unknown_name("place", place, PLACES)
    watched = Watch(Settings(canaries, place, seed), confidence, delta, tuple(ignore))
    watched._hooks.watch(engine)
    if not quiet:
        atexit.register(watched._at_exit)
    return watched
