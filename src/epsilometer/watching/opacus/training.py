"""One training under watch, from `make_private` to the end of its process.

Nothing that goes wrong in here may reach the script: it is recorded, and the training goes on unwatched.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.watching.collect.inspection import Inspection
from epsilometer.watching.opacus import model
from epsilometer.watching.opacus.extra import scores_of_a_step
from epsilometer.watching.opacus.record_norms import RecordNorms
from epsilometer.watching.opacus.support import is_ghost, why_not
from epsilometer.watching.recording import Ended, MadePrivate, NotAudited, Sink, Step, Told
from epsilometer.watching.settings import MODEL, Settings


class Training:
    """Plays canaries in every real step of one optimizer, and says what came of it."""

    def __init__(
        self, number: int, engine: Any, module: Any, optimizer: Any, settings: Settings, sink: Sink,
        inspector: Inspection | None,
    ) -> None:  # fmt: skip
        self.number, self.seen, self.lost = number, 0, False
        self.accountant = engine.accountant
        self._already = _steps_in(self.accountant)
        self._module = weakref.ref(module)
        self._settings, self._sink, self._inspector = settings, sink, inspector
        self._process = os.getpid()
        self._inside = self._noising = self._clipping = self._playing = False
        self._inserted: model.Inserted | None = None
        self.records: RecordNorms | None = None
        self._coins = np.zeros(0, dtype=np.bool_)
        self._clarity = model.Clarity()
        entropy = np.random.SeedSequence(settings.seed, spawn_key=(number,))
        self._draw, self._draw_places = np.random.default_rng(entropy), np.random.default_rng(entropy.spawn(1)[0])

    def begin(self, engine: Any, loader: Any, optimizer: Any, given: dict[str, Any]) -> None:
        """Say what is watched."""
        made = MadePrivate(
            self.number,
            type(optimizer).__name__,
            float(optimizer.noise_multiplier),
            float(optimizer.max_grad_norm),
            self._settings.canaries,
            self._settings.place,
            {name: value for name, value in given.items() if isinstance(value, bool | int | float | str)},
            own_noise=True,
        )
        self._sink.take(made)
        reason = why_not(optimizer, self._module(), self._settings.place)
        if not reason and self._settings.place == MODEL and hasattr(optimizer, "max_grad_norms"):
            reason = (
                "clipping by layer leaves a canary at one coordinate a part of the norm only; use an extra parameter"
            )
        if reason:
            self.lose(reason)
        if self._inspector:
            self._inspector.made_private(engine, self._module(), optimizer, loader, given)

    def pre_step(self, optimizer: Any, original: Callable[[], Any]) -> Any:
        """The script's own step, and after it, if it was a real one, the canaries' part."""
        if self._inside or self._probed:
            return original()
        self._inside = True
        try:
            before: list[Any] = []
            self._guarded(lambda: before.append(_last_in(self.accountant)))
            norms = self._norms()
            took = original()
            if took:
                self._keep(norms, optimizer)
                self._guarded(self._play, optimizer, before)
                if self._inspector:
                    self._inspector.stepped(optimizer)
            return took
        finally:
            self._inserted = None
            self._inside = False

    def _norms(self) -> NDArray[np.float64] | None:
        """Of the records that are accounted for, at the model before the step."""
        if self.records is None or self.records.failed:
            return None
        try:
            return self.records.look()
        except Exception as error:
            self.records.fail(f"their gradients failed ({type(error).__name__}: {str(error)[:300]})")
            return None

    def _keep(self, norms: NDArray[np.float64] | None, optimizer: Any) -> None:
        if self.records is None or self.records.failed:
            return
        stated = _last_in(self.accountant)
        if stated is None or hasattr(optimizer, "max_grad_norms"):
            self.records.fail("nothing is accounted for" if stated is None else "clipping by layer is not supported")
            return
        sigma, rate = float(stated[1][0]), float(stated[1][1])
        self.records.keep(norms, float(optimizer.max_grad_norm), sigma, rate)

    def add_noise(self, optimizer: Any, original: Callable[[], Any]) -> Any:
        """The script's own noise; the inspector looks at it."""
        if self._noising or self._playing or self._probed:
            return original()
        self._noising = True
        try:
            result = original()
        finally:
            self._noising = False
        if self._inspector:
            self._inspector.noised(optimizer)
        return result

    def clip(self, optimizer: Any, original: Callable[[], Any]) -> Any:
        """The script's own clipping or taking up; canaries of the model go in after it, if the step will be real."""
        if not self._inside or self._clipping or self._playing or self._probed:
            return original()
        self._clipping = True
        try:
            result = original()
            if self._inspector:
                self._inspector.accumulated(optimizer)
            if self._settings.place == MODEL:
                self._guarded(self._insert, optimizer, original)
            return result
        finally:
            self._clipping = False

    def finish(self, unseen: int) -> None:
        """The process ends."""
        self.tell(end=True)
        history = getattr(self.accountant, "history", None) or ()
        self._sink.take(Ended(self.number, unseen, [[float(part) for part in entry] for entry in history]))

    def tell(self, *, end: bool = False) -> None:
        """What is known of it by now, for the checks."""
        if self._inspector:
            self._sink.take(Told(self.number, self._inspector.facts(end=end)))

    def accounted(self) -> int:
        """Steps in the accountant since this training began."""
        return _steps_in(self.accountant) - self._already

    def lose(self, reason: str) -> None:
        """No canaries from now on."""
        if not self.lost:
            self.lost = True
            with suppress(Exception):  # a full disk, say
                self._sink.take(NotAudited(self.number, reason))

    @property
    def _probed(self) -> bool:
        """Does a check send crafted records through the optimizer? They are no steps."""
        return bool(getattr(self._inspector, "probing", False))

    def _play(self, optimizer: Any, before: list[Any]) -> None:
        if not optimizer.params:  # nothing is trained, and Opacus does nothing
            return None
        if os.getpid() != self._process:
            return self.lose("the process was forked after make_private, and steps are taken in the copy")
        if not self._settings.canaries:
            self.seen += 1
            return None
        reason = why_not(optimizer, self._module(), self._settings.place)
        if reason:
            return self.lose(reason)
        self.seen += 1
        stated = _last_in(self.accountant)
        sigma = float(stated[1][0] if stated and [stated] != before else optimizer.noise_multiplier)
        clip_norm = float(optimizer.max_grad_norm)
        own = np.zeros(0)
        if self._settings.place == MODEL:
            if self._inserted is None:
                return self.lose("the optimizer's clipping was replaced after make_private")
            coins = self._coins
            scores = np.nan_to_num(model.read_and_remove(optimizer, self._inserted), nan=0.5)
            if self._inspector:
                for spot, added in self._inserted.parts():
                    self._inspector.taken_off(spot.parameter, spot.index, added)
            scores = self._clarity.stretched(scores, coins, self._inserted, sigma)
        else:
            coins = self._draw.random(self._settings.canaries) < 0.5
            own = model.own_noise(optimizer, self._settings.canaries, self._draw_places)
            self._playing = True
            try:
                scores = scores_of_a_step(optimizer, self._module(), coins, self._draw)
            finally:
                self._playing = False
        scores = np.nan_to_num(scores, nan=0.5)  # where nothing can be read, nothing is known
        self._sink.take(Step(self.number, scores, coins, sigma, clip_norm, own))
        return None

    def _insert(self, optimizer: Any, clip: Callable[[], Any]) -> None:
        if optimizer._check_skip_next_step(pop_next=False):
            return
        if (
            os.getpid() != self._process
            or not optimizer.params
            or why_not(optimizer, self._module(), self._settings.place)
        ):
            return
        spots = model.places(optimizer, self._settings.canaries, self._draw)
        self._coins = self._draw.random(sum(len(one.canaries) for one in spots)) < 0.5
        if is_ghost(optimizer):
            self._inserted = model.insert_clipped(optimizer, self._module(), spots, self._coins)
        else:
            self._inserted = model.insert_rows(optimizer, clip, spots, self._coins)

    def _guarded(self, act: Callable[..., None], *arguments: Any) -> None:
        if self.lost:
            return
        try:
            act(*arguments)
        except Exception as error:
            self.lose(f"the canaries failed ({type(error).__name__}: {str(error)[:300]})")


def _last_in(accountant: Any) -> tuple[int, Any] | None:
    """Enough of an accountant's history to see whether a step was added, and with which noise multiplier."""
    history = getattr(accountant, "history", None)
    return (len(history), history[-1]) if history else None


def _steps_in(accountant: Any) -> int:
    return sum(int(entry[2]) for entry in getattr(accountant, "history", None) or ())
