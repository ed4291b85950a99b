"""Runs in lockstep of a training of which nothing is known but that an optimizer takes steps.

The script's time falls into two phases. While records are *selected*, every run draws what the reference draws, but for
normal numbers, which may be noise. Once they are (a loader has given its batch, a model sees it, a backward pass
begins), the run with other noise draws everything anew. Runs meet when the gradient is ready, or, where random numbers
are drawn within the step, after it; then all go on with the gradient, or weights, of the reference.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from epsilometer.watching.replay import draws, entropy, randomness, readers
from epsilometer.watching.replay.before import noise_before
from epsilometer.watching.replay.changes import changed_batch, names_of
from epsilometer.watching.replay.control import Gone
from epsilometer.watching.replay.draws import DRAWS, NORMAL, OTHER
from epsilometer.watching.replay.loop import Loop, Models, Step
from epsilometer.watching.replay.meeting import Meeting
from epsilometer.watching.replay.roles import (
    GRADIENT,
    HUGE,
    HUGE_LABEL,
    LABEL,
    NEGATED,
    NOISE,
    READ,
    REPLACED,
    ROTATING,
    WEIGHTS,
    WITHIN,
)
from epsilometer.watching.settings import Replaying

_ROTATION = (HUGE_LABEL, HUGE, REPLACED, LABEL)
_MOST = 64  # sources of batches that are told apart


class Outside(Meeting):
    """Of this process, from the first batch that a model sees on."""

    def __init__(self, replaying: Replaying, claim: Callable[[], bool]) -> None:
        self._replaying, self._claim, self._claimed = replaying, claim, False
        self.over = False
        self.role, self._process = replaying.role, os.getpid()
        self.models = Models()

    @property
    def active(self) -> bool:
        return self._claimed and super().active

    def begin_here(self) -> None:
        """The first batch is there: this process trains."""
        if self.over or self._claimed:
            return
        if not self._claim():
            self.over = True
            return
        super().__init__(self._replaying)
        self._claimed = True
        before = dict(DRAWS.numbers)
        self._write({"outside": True, "noise before": noise_before(), "drawn before": before[NORMAL] + before[OTHER]})
        if self.role == READ:
            self._write({"changed": "".join(readers.CHANGED)})
        self._loops = {}
        self._places = {}
        self._within = set()
        self._step: Step | None = None
        self._selecting, self._forwarded, self._depth = True, False, 0
        self._differentiated = False  # gradients were made in this step
        self._between = {}
        self._window = {NORMAL: 0, OTHER: 0}
        self._unseen = False
        self._sources: list[Any] = []
        self._source = -1
        self._records = None
        self._batch = set()
        self.met = 0  # steps at which runs have met
        self._states = randomness.digests()
        DRAWS.numbers.update(self._window)
        DRAWS.act = self._drawn

    # Random numbers

    def look(self) -> None:
        """At random numbers that no wrapped function has drawn, while records are selected."""
        if not self.active or self._apart or not self._selecting:
            return
        if DRAWS.kind != NORMAL:
            self._meet_late()
        before, now = self._states, randomness.digests()
        # Generators that are new, or have gone, say nothing.
        moved = any(state != before.get(name, state) for name, state in now.items())
        self._unseen = self._unseen or moved or not randomness.followed()
        self._states = now

    def settle(self) -> None:
        """What was drawn since the last look is no draw of the script's own."""
        if self.active and self._selecting and not self._apart:
            self._states = randomness.digests()

    def _drawn(self, kind: str, result: Any, draw: draws.Draw) -> Any:
        """What a run makes of a draw."""
        if not self.active:
            return result
        if self.role == NOISE and (kind == NORMAL or not self._selecting):
            return draws.again(draw, self._other)
        if self.role == NEGATED and kind == NORMAL and self._forwarded and not self._depth:
            return draws.negated(result, draw)
        return result

    def _fixed(self) -> None:
        """Nobody chooses records any more."""
        if not self._selecting:
            return
        self.look()
        self._window = {kind: self._window[kind] + DRAWS.numbers[kind] for kind in (NORMAL, OTHER)}
        self._selecting = DRAWS.looks = False
        self._draw_anew()

    def _draw_anew(self) -> None:
        if self.role == NOISE:
            randomness.seed_all(self._other)
            entropy.draw_anew(self._other)

    # What a script does

    def request(self) -> None:
        """A loader is asked for a batch, which is the same in every run."""
        self._meet_late()
        if self._lead:
            if not self._lead.alone():
                self._lead.request(self._chance())
        elif self.role == NOISE:
            assert self._follow
            try:
                self._go_to(self._follow.request())
            except Gone:
                return

    def exhausted(self) -> None:
        """The loader has no more of them."""

    def batch(self, batch: Any, source: Any = None) -> Any:
        """What a loader gives; with one record changed, if that is this run's part."""
        if not torch.is_grad_enabled():  # for a look at the model
            return batch
        names = names_of(batch)
        self._rows.append([] if names is None else names.tolist())
        many = sum(len(one) for one in self._rows)
        self.from_source(id(source), _length(source), range(many))
        if self.role == ROTATING and not self._kind:
            kind = self.next_kind()
            changed, self._kind = changed_batch(batch, kind, self._other)
            batch = changed if self._kind else batch
        if self._selecting:
            self._fixed()
        else:
            self._draw_anew()
        return batch

    def from_source(self, source: Any, records: int | None, rows: Sequence[int]) -> None:
        """The step takes these rows from there, of so many that there are."""
        if self._source < 0:
            if source not in self._sources and len(self._sources) < _MOST:
                self._sources.append(source)
            self._source = self._sources.index(source) if source in self._sources else _MOST
            self._records = records
        if self._source < _MOST and self._sources[self._source] == source:
            self._batch.update(rows)

    # Of records that are taken by index

    @property
    def depth(self) -> int:
        """Of modules that are being called."""
        return self._depth if self._claimed else 0

    @property
    def has_batch(self) -> bool:
        """Of a loader, in this step."""
        return bool(self._rows)

    @property
    def other(self) -> np.random.Generator:
        """Of this run alone."""
        return self._other

    def wants_change(self) -> bool:
        """Is this the time to change a record? Once there are gradients, what is taken may be one, or noise."""
        return self.role == ROTATING and not self._kind and not self._differentiated

    def changes(self, kind: str) -> None:
        self._kind = kind

    def next_kind(self) -> str:
        """What is done to the next record."""
        self._turn += 1
        return _ROTATION[(self._turn - 1) % len(_ROTATION)]

    def forward(self, coarse: bool) -> None:
        """A model sees records."""
        if self._selecting:
            self._meet_late()
        self._fixed()
        self._differentiated = self._differentiated or within_transform()

    def backward(self) -> None:
        """Gradients are made."""
        self.forward(coarse=False)
        self._forwarded = self._differentiated = True

    def entered(self) -> None:
        """Any module is called."""
        self._depth += 1

    def left(self) -> None:
        self._depth = max(self._depth - 1, 0)
        self._forwarded = True

    # Steps

    def refuse(self, why: str) -> None:
        """Nothing is compared from now on."""
        raise NotImplementedError(why)

    def meets_at(self, number: int, place: str) -> None:
        """Where runs meet in steps of this training."""
        self._places[number] = place

    def before_step(self, loop: Loop) -> None:
        """An optimizer's step begins, perhaps within another's."""
        step = self._step
        if step is None or (step.depth == 0 and step.place == WEIGHTS):
            self._meet_late()
            self._fixed()
            place = self._places.get(loop.number, WEIGHTS)
            step = self._step = Step(loop, place)
            loop.steps += 1
            self._steps[loop.number] = loop.steps
            if loop.number not in self._loops:
                self._loops[loop.number] = loop
                if self._lead:
                    self._write({"training": loop.number, "sizes": _sizes(loop)})
        where = WITHIN if step.depth else GRADIENT
        step.depth += 1
        step.digests[where] = randomness.name_of_states()
        step.gradients[where] = loop.gradients()
        if step.place == WEIGHTS:
            step.gradients[where] = {name: one.clone() for name, one in step.gradients[where].items()}
        elif step.place == where:
            self._meet(step)

    def after_step(self) -> None:
        step = self._step
        if step is None:
            return
        step.depth -= 1
        if step.depth:
            return
        step.digests[WEIGHTS] = randomness.name_of_states()
        self._note_place(step)
        if step.met:
            self._step = None
        self._selecting = DRAWS.looks = True
        self._states = randomness.digests()

    def _note_place(self, step: Step) -> None:
        """Where noise must be in by now: after the last random number of the step."""
        number, seen = step.loop.number, step.digests
        last = seen[WEIGHTS]
        # In a run that has met, generators are the reference's since; else they are where the step has left them.
        if step.met and seen[step.place] != last:
            self._within.add(number)
        if number in self._within:
            self._places[number] = WEIGHTS
        elif WITHIN in seen:
            self._places[number] = WITHIN if seen[WITHIN] == last else WEIGHTS
        else:
            self._places[number] = GRADIENT if seen[GRADIENT] == last else WEIGHTS

    def _meet_late(self) -> None:
        """After a step, where that was not done before."""
        if self._step is not None and not self._step.depth and not self._step.met:
            self._meet(self._step)
            self._step = None

    def _meet(self, step: Step) -> None:
        step.met = True
        entropy.let_the_clock_run()
        if self._lead:
            self._publish_step(step)
        else:
            self._compare_step(step)
        step.digests[step.place] = randomness.name_of_states()
        self._rows, self._kind, self._source, self._unseen = [], "", -1, False
        self._records, self._batch = None, set()
        self._window = {NORMAL: 0, OTHER: 0}
        DRAWS.numbers.update(self._window)
        self._forwarded = self._differentiated = False
        self._depth, self.met = 0, self.met + 1
        self._states = randomness.digests()

    def finish(self) -> None:
        """The script ends."""
        if self.active:
            self.guarded(self._meet_late)
            self.finish_loops()
            self._end("")


def within_transform() -> bool:
    """Of torch.func, such as `grad` or `vmap`."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None


def _sizes(loop: Loop) -> dict[str, int]:
    return {name: one.numel() for name, one in loop.weights().items()}
