"""Runs in lockstep of a training of which nothing is known but that an optimizer takes steps.

The script's time falls into two phases. While records are *selected*, every run draws what the reference draws, but for
normal numbers, which may be noise. Once they are (a loader has given its batch, a model sees it, a backward pass
begins), the run with other noise draws everything anew. Runs meet when the gradient is ready, or, where random numbers
are drawn within the step, after it; then all go on with the gradient, or weights, of the reference.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from epsilometer.watching.replay import draws, entropy, randomness, readers
from epsilometer.watching.replay.before import noise_before
from epsilometer.watching.replay.changes import changed_batch, names_of
from epsilometer.watching.replay.compared import differences
from epsilometer.watching.replay.control import Gone
from epsilometer.watching.replay.draws import DRAWS, NORMAL, OTHER
from epsilometer.watching.replay.lockstep import Lockstep, numbers_unlike
from epsilometer.watching.replay.loop import GRADIENT, WEIGHTS, WITHIN, Loop, Models, Step
from epsilometer.watching.replay.roles import HUGE, HUGE_LABEL, LABEL, NEGATED, NOISE, READ, REPLACED, ROTATING
from epsilometer.watching.settings import Replaying

_ROTATION = (HUGE_LABEL, HUGE, REPLACED, LABEL)
_SAID = ("place", "drawn", "window", "unseen", "source", "linear", "within", "size", "records")  # of the reference
_MOST = 64  # sources of batches that are told apart


class Outside(Lockstep):
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
        self._loops: dict[int, Loop] = {}
        self._places: dict[int, str] = {}  # where runs meet next, by training
        self._within: set[int] = set()  # trainings that draw random numbers in their steps
        self._step: Step | None = None
        self._selecting, self._forwarded, self._depth = True, False, 0
        self._between: dict[int, torch.Tensor] = {}  # of the last step, by training
        self._window = {NORMAL: 0, OTHER: 0}  # random numbers that were drawn while records were selected
        self._unseen = False  # some were that nobody has counted
        self._sources: list[Any] = []
        self._source = -1  # of the step under way
        self._records: int | None = None  # that it has
        self._size = 0  # of the step's batch
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
        self.from_source(id(source), _length(source), 0 if names is None else len(names))
        self._rows.append([] if names is None else names.tolist())
        if self.role == ROTATING and not self._kind:
            kind = self.next_kind()
            changed, self._kind = changed_batch(batch, kind, self._other)
            batch = changed if self._kind else batch
        if self._selecting:
            self._fixed()
        else:
            self._draw_anew()
        return batch

    def from_source(self, source: Any, records: int | None, rows: int) -> None:
        """The step takes so many rows from there, of all that there are."""
        if self._source < 0:
            if source not in self._sources and len(self._sources) < _MOST:
                self._sources.append(source)
            self._source = self._sources.index(source) if source in self._sources else _MOST
            self._records = records
        if self._source < _MOST and self._sources[self._source] == source:
            self._size += rows

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
        """Is this the time to change a record? What is taken later in a step may be noise out of a table."""
        return self.role == ROTATING and not self._kind and self._selecting

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

    def backward(self) -> None:
        self.forward(coarse=False)
        self._forwarded = True

    def entered(self) -> None:
        """Any module is called."""
        self._depth += 1

    def left(self) -> None:
        self._depth = max(self._depth - 1, 0)
        self._forwarded = True

    # Steps

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
        self._records, self._size = None, 0
        self._window = {NORMAL: 0, OTHER: 0}
        DRAWS.numbers.update(self._window)
        self._forwarded, self._depth, self.met = False, 0, self.met + 1
        self._states = randomness.digests()

    def _tensors(self, step: Step) -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = {}
        for place, gradients in step.gradients.items():
            found |= {f"{place}/{name}": one for name, one in gradients.items()}
        return found | step.loop.state()

    def _said(self, step: Step) -> dict[str, Any]:
        loop = step.loop
        drawn = {place: digest != step.digests.get(WEIGHTS, digest) for place, digest in step.digests.items()}
        return {
            "training": loop.number, "step": loop.steps, "place": step.place, "drawn": drawn, "rows": self._rows,
            "numbers": loop.numbers(), "window": self._window, "unseen": self._unseen, "source": self._source,
            "linear": loop.linear, "within": loop.number in self._within, "size": self._size, "records": self._records,
        }  # fmt: skip

    def _publish_step(self, step: Step) -> None:
        assert self._lead
        if self._lead.alone():
            return
        said = {**self._said(step), "randomness": randomness.name_of_states(), **self._chance()}
        said["next"] = self._places.get(step.loop.number, WEIGHTS)
        self._lead.wait()
        self._lead.publish(self._tensors(step), said)

    def _compare_step(self, step: Step) -> None:
        assert self._follow
        line: dict[str, Any] = {"training": step.loop.number, "step": step.loop.steps}
        try:
            tensors, said = self._follow.step()
        except Gone:
            self._leave("its reference has ended")
        if "final" in said:
            self._write({**line, "more": True})
            self._leave("")
        if said["training"] != step.loop.number or said["place"] != step.place:
            self._write({**line, "parted": "another training takes the step"})
            self._leave("")
        own = self._tensors(step)
        parted = ""
        if self.role != NOISE and said["randomness"] != randomness.name_of_states():
            parted = "random streams"
        theirs = {name: one for name, one in tensors.items() if ": " in name.partition("/")[0]}
        unlike = differences(theirs, {name: one for name, one in own.items() if name in theirs or ": " in name})
        unlike += numbers_unlike(said["numbers"], step.loop.numbers())
        line |= {key: said[key] for key in _SAID}
        line |= {
            "kind": self._kind, "parted": parted,
            "reached": self._reached(said["rows"]), "differs": [one.packed() for one in unlike],
            "squares": _squares(tensors, own), "norm": _norm(tensors),
            "again": self._again(step, tensors, own, said["drawn"]),
        }  # fmt: skip
        self._write(line)
        for name, one in own.items():
            if (name in tensors and (step.place == WEIGHTS or not name.startswith((GRADIENT, WITHIN)))) or (
                name in tensors and name.startswith(f"{step.place}/")
            ):
                _put(one, tensors[name])
        step.loop.set_numbers(said["numbers"])
        self._go_to(said)
        self._follow.done()

    def _again(self, step: Step, theirs: dict[str, torch.Tensor], own: dict[str, torch.Tensor], drawn: Any) -> float:
        """The cosine of what lies between the two runs, and of the same in the step before: noise that is fresh has
        little."""
        if self.role not in (NOISE, NEGATED):
            return 0.0
        last = WITHIN if WITHIN in step.gradients else GRADIENT
        place = "weights: " if step.place == WEIGHTS and drawn.get(last) else f"{last}/"
        now = [(own[name] - one).flatten() for name, one in theirs.items() if name.startswith(place) and name in own]
        between = torch.cat(now) if now else torch.zeros(0)
        before, self._between[step.loop.number] = self._between.get(step.loop.number), between
        if before is None or before.shape != between.shape or not len(between):
            return 0.0
        return float(torch.nn.functional.cosine_similarity(before.double(), between.double(), dim=0))

    def _reached(self, theirs: list[list[int]]) -> int | None:
        """How many records are others; none if that is not known."""
        if self.role == ROTATING:
            return int(bool(self._kind))
        if [len(one) for one in theirs] != [len(one) for one in self._rows] or not theirs:
            return None
        return sum(
            a != b for one, other in zip(theirs, self._rows, strict=True) for a, b in zip(one, other, strict=True)
        )

    def _chance(self) -> dict[str, Any]:
        states = randomness.states() if randomness.followed() else {}
        return {"states": states, "entropy": entropy.state()}

    def _go_to(self, said: dict[str, Any]) -> None:
        """Draw on as the reference does."""
        randomness.restore(said.get("states", {}))
        entropy.go_to(said.get("entropy"))

    def finish(self) -> None:
        """The script ends: what is left?"""
        if not self.active:
            return
        self.guarded(self._meet_late)
        for loop in self._loops.values():
            self.guarded(self._finish_loop, loop)
        self._end("")

    def _finish_loop(self, loop: Loop) -> None:
        line: dict[str, Any] = {"training": loop.number, "end": loop.steps}
        if self._lead:
            self._write(line)
            if not self._lead.alone():
                self._lead.wait()
                self._lead.publish(loop.state(), {"training": loop.number, "final": loop.steps})
            return
        assert self._follow
        try:
            tensors, said = self._follow.step()
        except Gone:
            self._write({**line, "gone": True})
            return
        if said.get("final") is None or said["training"] != loop.number:
            self._write({**line, "fewer": True})
            self._end("")
            return
        found = differences(tensors, loop.state())
        self._write({**line, "differs": [one.packed() for one in found]})
        self._follow.done()


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None


def _sizes(loop: Loop) -> dict[str, int]:
    return {name: one.numel() for name, one in loop.weights().items()}


def _put(one: torch.Tensor, other: torch.Tensor) -> None:
    if one.shape == other.shape:
        with torch.no_grad():
            one.copy_(other)


def _squares(theirs: dict[str, torch.Tensor], own: dict[str, torch.Tensor]) -> dict[str, dict[str, float]]:
    """Of what is between two runs, by place and tensor."""
    found: dict[str, dict[str, float]] = {}
    for name, one in theirs.items():
        place, _, tensor = name.partition("/")
        if name.startswith("weights: "):
            place, tensor = WEIGHTS, name.removeprefix("weights: ")
        elif place not in (GRADIENT, WITHIN):
            continue
        other = own.get(name)
        square = float("inf")
        if other is not None and other.shape == one.shape:
            square = float((one.double() - other.detach().to(one.device).double()).square().sum())
        found.setdefault(place, {})[tensor] = square
    return found


def _norm(tensors: dict[str, torch.Tensor]) -> float:
    """Of the reference's gradient."""
    found = [one for name, one in tensors.items() if name.startswith((GRADIENT, WITHIN))]
    return max((float(one.double().norm()) for one in found), default=0.0)
