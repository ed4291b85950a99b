"""One call of `make_private`: the optimizer that it returned, as a watched training asks for it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.noise_sample import NoiseSample
from epsilometer.watching.collect.batches import GaveLast
from epsilometer.watching.collect.canaries import places
from epsilometer.watching.collect.inspection import Inspection
from epsilometer.watching.facts import Facts
from epsilometer.watching.frameworks.opacus import model
from epsilometer.watching.frameworks.opacus.accountants import history_of, last_accounted, steps_accounted
from epsilometer.watching.frameworks.opacus.by_hand import NoEngine
from epsilometer.watching.frameworks.opacus.extra import scores_of_a_step, times_that_arrive
from epsilometer.watching.frameworks.opacus.record_norms import RecordNorms
from epsilometer.watching.frameworks.opacus.seen import SeenOpacus
from epsilometer.watching.frameworks.opacus.sharing import shared_by
from epsilometer.watching.frameworks.opacus.support import is_ghost, is_sharded, skips, why_not
from epsilometer.watching.privatizer import Coins, Ledger, Privatizer, Stated
from epsilometer.watching.settings import MODEL, Settings
from epsilometer.watching.training import WatchedTraining


class OpacusPrivatizer(Privatizer):
    """Goes around the optimizer's methods, and plays canaries in every real step."""

    shows_noise = True
    training: WatchedTraining  # which asks this one

    def __init__(
        self, engine: Any, module: Any, optimizer: Any, loader: Any, given: Mapping[str, Any], settings: Settings
    ) -> None:
        self.place, self._settings = settings.place, settings
        self._engine, self._before_all = engine, steps_accounted(engine.accountant) or 0
        self._find_optimizer, self._find_module = weakref.ref(optimizer), weakref.ref(module)  # the script's, to let go
        self._said = {name: value for name, value in given.items() if isinstance(value, bool | int | float | str)}
        look = (lambda: None) if settings.follows else lambda: SeenOpacus(engine, module, optimizer, loader, given)
        self._inspection: Inspection[Any] = Inspection(look)
        self.replayed: Any = None  # of a run beside others
        self._inside = self._noising = self._clipping = self._playing = False
        self._last = last_accounted(engine.accountant)  # before the step under way
        self._inserted: model.Inserted | None = None
        self._told = False  # that a script goes over another loader
        self._coins: Coins = np.zeros(0, dtype=np.bool_)
        self._clarity = model.Clarity()
        self._times: float | None = None  # by how much canaries are larger than the clip norm
        self.records: RecordNorms | None = None

    @property
    def _accountant(self) -> Any:
        return self._engine.accountant

    @property
    def _optimizer(self) -> Any:
        return self._find_optimizer()

    @property
    def _module(self) -> Any:
        return self._find_module()

    def began_late(self, loader: GaveLast) -> None:
        """The first batch was drawn before anybody knew of this training."""
        self._inspection.tell(lambda seen: seen.drawn_batches.began_late(loader))

    # What a watched training asks

    def stated(self) -> Stated:
        optimizer, last = self._optimizer, last_accounted(self._accountant)
        sigma = float(last[1][0] if last and last != self._last else optimizer.noise_multiplier)
        return Stated(type(optimizer).__name__, sigma, float(optimizer.max_grad_norm), self._said)

    def why_not(self) -> str:
        optimizer = self._optimizer
        reason = why_not(optimizer, self._module, self.place)
        if not reason and self.place == MODEL and hasattr(optimizer, "max_grad_norms"):
            return "clipping by layer leaves a canary at one coordinate a part of the norm only; use an extra parameter"
        return reason

    def insert(self, coins: Coins, draw: np.random.Generator) -> Floats:
        self._playing = True
        try:
            times = self._arriving(draw)
            return scores_of_a_step(self._optimizer, self._module, coins, times, draw)
        finally:
            self._playing = False

    def noise(self, noise_multiplier: float) -> NoiseSample | None:
        return self._inspection.ask(lambda seen: seen.noise_of_step(noise_multiplier))

    def accounted(self) -> Ledger | None:
        engine = self._engine
        if engine.accountant is None:
            return None
        history = [[float(part) for part in entry] for entry in history_of(engine.accountant) or ()]
        before = engine.before if isinstance(engine, NoEngine) else self._before_all
        return Ledger(engine.accountant, history, before)

    def facts(self, *, end: bool) -> Facts:
        self._share()
        return self._inspection.facts(end=end)

    # Around the optimizer's methods

    def pre_step(self, optimizer: Any, original: Callable[[], Any]) -> Any:
        """The script's own step, and after it, if it was a real one, the canaries' part."""
        if self._inside or self._inspection.probing:
            return original()
        self._inside = True
        try:
            with self.replayed.apart() if self.replayed else nullcontext():
                self.training.tell_now_and_then(at_once=self._is_known())  # the step before has come to its end
            self._share()
            self.training.guarded(self._note_accounted)
            norms = self.records.before_step() if self.records else None
            took = original()
            if took:
                if self.replayed:
                    self.replayed.stepped()
                if self.records:
                    self.records.after_step(norms, optimizer, last_accounted(self._accountant))
                if optimizer.params:  # else nothing is trained, and Opacus does nothing
                    self._play(optimizer)
                sigma = self.stated().noise_multiplier
                self._inspection.tell(lambda seen: seen.accounted_as(sigma))
                self._inspection.tell(SeenOpacus.step_ended)
            return took
        finally:
            self._inserted = None
            self._inside = False

    def add_noise(self, optimizer: Any, original: Callable[[], Any]) -> Any:
        """The script's own noise; the inspection looks at it."""
        if self._noising or self._playing or self._inspection.probing:
            return original()
        self._noising = True
        if self.replayed:
            self.replayed.summed()
        try:
            result = original()
        finally:
            self._noising = False
        if self.replayed:
            self.replayed.noised()
        self._inspection.tell(SeenOpacus.noise_added)
        return result

    def clip(self, optimizer: Any, original: Callable[[], Any]) -> Any:
        """The script's own clipping or taking up; canaries of the model go in after it, if the step will be real."""
        if not self._inside or self._clipping or self._playing or self._inspection.probing:
            return original()
        self._clipping = True
        try:
            result = original()
            self._inspection.tell(SeenOpacus.accumulated)
            if self.place == MODEL and self._settings.canaries:
                self.training.guarded(self._insert_rows, optimizer, original)
            return result
        finally:
            self._clipping = False

    def multiply(self, module: Any, original: Callable[[], Any]) -> Any:
        """Ghost clipping of the module, in the script's own backward pass."""
        factors = original()
        if not (self._inside or self._playing or is_sharded(self._optimizer)):
            self._inspection.tell(lambda seen: seen.multiplied(factors))
        return factors

    def _share(self) -> None:
        """What was given to steps that several processes take, to whoever adds it up."""
        found = self._inspection.ask(SeenOpacus.given)
        if found is None:
            return
        ranks, given = found
        for one in given:
            with suppress(Exception):  # what is not told is not known
                self.training.share(shared_by(one, ranks, self.training.number, self._optimizer))

    def _is_known(self) -> bool:
        """Has the first step shown that the loader of `make_private` is not the one that is used? Once."""
        wrong = not self._told and bool(self._inspection.ask(lambda seen: seen.drawn_batches.never_iterated))
        self._told = self._told or wrong
        return wrong

    def _arriving(self, draw: np.random.Generator) -> float:
        """Asked once, before the first canaries."""
        if self._times is None:
            self._times = times_that_arrive(self._optimizer, self._module, draw)
        return self._times

    def _note_accounted(self) -> None:
        self._last = last_accounted(self._accountant)

    def _play(self, optimizer: Any) -> None:
        if self.place == MODEL and self._settings.canaries:
            self.training.look()
            self.training.guarded(self._read_rows, optimizer)
        else:
            self.training.play()

    def _insert_rows(self, optimizer: Any, clip: Callable[[], Any]) -> None:
        if skips(optimizer) or self.training.elsewhere():
            return
        if not optimizer.params or self.why_not():
            return
        times = self._arriving(self.training.draw)
        spots = places(optimizer.params, self._settings.canaries, self.training.draw)
        self._coins = self.training.toss(sum(len(one.canaries) for one in spots))
        if is_ghost(optimizer):
            self._inserted = model.insert_clipped(optimizer, self._module, spots, self._coins, times)
        else:
            self._inserted = model.insert_rows(optimizer, clip, spots, self._coins, times)

    def _read_rows(self, optimizer: Any) -> None:
        """Canaries in the model's own coordinates have been through the step itself, and leave it in any case."""
        inserted = self._inserted
        if inserted is None:
            return self.training.lose(self.why_not() or "the optimizer's clipping was replaced after make_private")
        scores = np.nan_to_num(model.read_and_remove(optimizer, inserted), nan=0.5)
        self._inspection.tell(partial(_taken_off, inserted=inserted))
        sigma = self.stated().noise_multiplier
        return self.training.take(self._clarity.stretched(scores, self._coins, inserted, sigma))


def _taken_off(seen: SeenOpacus, inserted: model.Inserted) -> None:
    for spot, added in inserted.parts():
        seen.kept.taken_off(spot.parameter, spot.index, added)
