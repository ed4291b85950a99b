"""One run of several: where the script is in its step, what its reference was there, and what is different.

The script's time falls into three phases. *Between* a sum of gradients and the next batch: here is noise, and what is
made of it. After the *batch* is asked for, until its sum is formed: here are data, augmentation and dropout. And what
comes *before* the first step.
"""

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from epsilometer.watching.replay import entropy, randomness, readers
from epsilometer.watching.replay.around import Around
from epsilometer.watching.replay.before import noise_before
from epsilometer.watching.replay.changes import changed_batch, names_of
from epsilometer.watching.replay.channel import Follow, Lead
from epsilometer.watching.replay.compared import Difference, differences, distance
from epsilometer.watching.replay.control import Gone
from epsilometer.watching.replay.data import TrainingData
from epsilometer.watching.replay.roles import (
    FIXED,
    HUGE,
    LABEL,
    LEFT_OUT,
    LINES,
    NOISE,
    OTHERS,
    READ,
    REPLACED,
    ROTATING,
)
from epsilometer.watching.settings import Replaying

_BEFORE, _BETWEEN, _BATCH = "before", "between", "batch"
_ROTATION = (HUGE, LEFT_OUT, REPLACED, LABEL)
_SAME, _LEAST = 1e-3, 1e-5  # what a record adds, in two runs: of itself, and of the clip norm
_ALL = 0.5  # of a batch: so many rows change only if records are mixed


class Trained(ABC):
    """One private training, as lockstep asks for it."""

    number: int

    @abstractmethod
    def sums(self) -> dict[str, torch.Tensor]:
        """Of clipped gradients, before noise."""

    @abstractmethod
    def gradients(self) -> dict[str, torch.Tensor]:
        """With noise, as the step is taken with them."""

    @abstractmethod
    def state(self) -> dict[str, torch.Tensor]:
        """All that lasts: weights, buffers, the optimizer's state; names begin with what it is, then a colon."""

    @abstractmethod
    def numbers(self) -> dict[str, float]:
        """Settings of the step, such as the learning rate; named in the same way."""

    @abstractmethod
    def set_numbers(self, numbers: dict[str, float]) -> None:
        """Put these in their place."""

    def released(self) -> dict[str, float]:
        """What else a step releases, with noise and accounted for."""
        return {}

    def set_released(self, numbers: dict[str, float]) -> None:
        """Put these in their place."""

    @abstractmethod
    def clip_norm(self) -> float: ...

    @abstractmethod
    def norms(self) -> list[float] | None:
        """Of every record's gradient before clipping, where they are there."""

    def records(self) -> int | None:
        """How many gradients were clipped last, if that is known."""
        return None


class Lockstep:
    """Of this process."""

    def __init__(self, replaying: Replaying) -> None:
        self.role, self.number, self._process = replaying.role, replaying.number, os.getpid()
        self.draw = np.random.default_rng(int.from_bytes(replaying.salt.encode(), "big"))  # the same in every run
        self._other = np.random.default_rng([replaying.run, int.from_bytes(replaying.salt.encode(), "big")])
        meeting = Path(replaying.meeting)
        self._lead = Lead(meeting, replaying.runs) if replaying.run == 0 else None
        self._follow = None if self._lead else Follow(meeting, replaying.run)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._lines = os.open(meeting / f"{replaying.run}.{LINES}", flags, 0o600)
        self._write({"pid": os.getpid()})
        self._trainings: list[Trained] = []
        self.around = Around()
        self._phase, self._expected = _BEFORE, randomness.name_of_states()
        self._drew = self._early = False  # the script, by itself: between steps at any time; in this batch
        self._after_batch = ""
        self._forwarded = False  # a model has seen the batch
        self._coarse = False  # it calculates in half precision
        self._quiet = True  # no random number between batch and sum, in any step so far
        self._rows: list[list[int]] = []  # of batches since the last sum: records by name
        self._kind, self._turn = "", 0  # what was changed in this step
        self._steps: dict[int, int] = {}
        self._sums: dict[str, torch.Tensor] = {}
        self._at_sum: dict[str, Any] = {}
        self._requested = False  # by a loader, ever
        self.over = False
        self._apart = False  # something of ours goes on

    @property
    def active(self) -> bool:
        return not self.over and os.getpid() == self._process

    def guarded(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """A replay that fails ends, and the training goes on; a run that is there for the replay ends too."""
        if not self.active:
            return None
        try:
            return act(*arguments)
        except Exception as error:
            why = f"the replay failed ({type(error).__name__}: {str(error)[:300]})"
            if self._follow:
                self._leave(why)
            self._end(why)
            return None

    def begin(self, training: Trained, data: TrainingData) -> None:
        """A training was made private, on this data."""
        number = training.number
        if not self._trainings:
            self._write({"noise before": noise_before()})
        self._trainings.append(training)
        self._steps[number] = 0
        if self._lead:
            self._write({"training": number, "marks": data.marks()})
        if self.role == READ:
            self._write({"training": number, "changed": "".join(readers.CHANGED), "marks": data.marks()})
        if self.role == FIXED:
            self._write({"training": number, "changed": data.change(self.draw, self.number)})
        if self.role == OTHERS:
            self._write({"training": number, "changed": data.change_all(self.draw)})
        self.look()

    def saved(self, number: int, arrays: dict[str, str]) -> None:
        """The script has written these arrays, of which there are digests."""
        self._write({"save": number, "arrays": arrays})

    # Where the script is

    def look(self) -> None:
        """At random numbers that the script has drawn by itself since the last look."""
        if self._apart:
            return
        now = randomness.name_of_states()
        if not randomness.followed():
            self._drew = True
        if now != self._expected:
            if self._phase == _BETWEEN or (self._phase == _BATCH and self._forwarded):
                self._drew = True  # what was lost on the batch may be released with this
            elif self._phase == _BATCH:
                self._early = True
        self._expected = now

    def settle(self) -> None:
        """What was drawn since the last look is no draw of the script's own."""
        if self._apart:
            return
        self._expected = randomness.name_of_states()

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is drawn meanwhile is put back, and no draw of the script's."""
        self._apart = True
        try:
            yield
        finally:
            self._apart = False

    def request(self) -> None:
        """A training's loader is asked for a batch."""
        self._requested = True
        self._ask()

    def exhausted(self) -> None:
        """The loader has no more of them: what comes now may be noise again."""
        self.settle()
        if self._phase == _BATCH and not self._rows and any(self._steps.values()):
            self._phase = _BETWEEN
            if self.role == NOISE:
                randomness.seed_all(self._other)
                self.settle()

    def forward(self, coarse: bool) -> None:
        """A model begins to train on a batch; where there is no loader, this is when the step begins."""
        if self._apart:
            return
        self._coarse = self._coarse or coarse
        if not self._requested:
            self._ask()
        self._forwarded = True

    def batch(self, batch: Any, source: Any = None) -> Any:
        """What the loader of this data set gives; with one record changed, if that is this run's part."""
        names = names_of(batch)
        if self.role == ROTATING and not self._kind and names is not None:
            kind = _ROTATION[self._turn % len(_ROTATION)]
            self._turn += 1
            if kind == LEFT_OUT and (self._coarse or not self._quiet):  # all would be rounded otherwise; streams part
                kind = REPLACED
            changed, self._kind = changed_batch(batch, kind, self._other)
            batch = changed if self._kind else batch
        self._rows.append([] if names is None else names.tolist())
        self._after_batch = randomness.name_of_states()
        return batch

    def summed(self, training: Trained) -> None:
        """The sum of a step is formed, and noise comes next."""
        self.look()
        self._quiet = self._quiet and self._after_batch == self._expected
        self._at_sum = {
            "training": training.number,
            "randomness": self._expected,
            "rows": self._rows,
            "drew": self._drew,
            "early": self._early,
            "quiet": self._quiet,
            "clip": training.clip_norm(),
            "numbers": training.numbers(),
            "norms": training.norms(),
            "records": training.records(),
        }
        sums = training.sums()
        self._sums = {name: one.detach().clone() for name, one in sums.items()}
        self._rows = []
        if self.role == NOISE:
            randomness.seed_all(self._other)

    def stepped(self, training: Trained) -> None:
        """Noise is added: every run goes on with the gradient of the reference."""
        entropy.let_the_clock_run()
        self._steps[training.number] += 1
        if self._lead:
            self._publish(training)
        else:
            self._compare(training)
        self._at_sum, self._sums, self._kind, self._early = {}, {}, "", False
        self._phase = _BETWEEN
        self.settle()

    def release(self, value: torch.Tensor) -> torch.Tensor:
        """Something that the script has made with noise, and accounts for: every run goes on with the reference's. The
        random numbers since the last look went into it."""
        self.settle()
        if self._lead:
            if not self._lead.alone():
                self._lead.wait()
                self._lead.publish({"released": value}, {"release": True})
            return value
        assert self._follow
        try:
            tensors, said = self._follow.step()
        except Gone:
            self._leave("its reference has ended")
        if "release" not in said or tensors["released"].shape != value.shape:
            self._leave("its releases part from the reference's")
        released = tensors["released"].clone()
        self._follow.done()
        return released

    def finish(self) -> None:
        """The script ends: what is left?"""
        if not self.active:
            return
        for training in self._trainings:
            self.guarded(self._finish, training)
        self._end("")

    def _ask(self) -> None:
        if self._phase != _BETWEEN:
            self._phase, self._forwarded = _BATCH, False
            return
        self._phase, self._forwarded = _BATCH, False
        if self._lead:
            self._lead.request({"states": randomness.states()} if randomness.followed() else {})
        elif self.role == NOISE:
            assert self._follow
            with suppress(Gone):
                randomness.restore(self._follow.request().get("states", {}))
            self.settle()

    # The reference

    def _publish(self, training: Trained) -> None:
        assert self._lead
        if self._lead.alone():
            return
        self._lead.wait()
        tensors = {f"sum:{name}": one for name, one in self._sums.items()}
        tensors |= {f"gradient:{name}": one for name, one in training.gradients().items()}
        tensors |= training.state()
        self._lead.publish(tensors, {**self._at_sum, "released": training.released()})

    def _finish(self, training: Trained) -> None:
        steps = self._steps[training.number]
        if self._lead:
            self._write({"training": training.number, "end": steps})
            self._lead.wait()
            left = training.state() | self.around.state()
            self._lead.publish(left, {"training": training.number, "final": steps, "drew": self._drew})
            return
        assert self._follow
        line: dict[str, Any] = {"training": training.number, "end": steps}
        try:
            tensors, said = self._follow.step()
        except Gone:
            self._write({**line, "gone": True})
            return
        if said.get("final") is None or said["training"] != training.number:
            self._write({**line, "fewer": True})
            self._end("")
            return
        found = differences(tensors, training.state() | self.around.state())
        self._write({**line, "differs": [one.packed() for one in found], "drew": self._drew or said["drew"]})
        self._follow.done()

    # The others

    def _compare(self, training: Trained) -> None:
        assert self._follow
        step = self._steps[training.number]
        line: dict[str, Any] = {"training": training.number, "step": step}
        try:
            tensors, said = self._follow.step()
        except Gone:
            self._leave("its reference has ended")
        if "release" in said:
            self._leave("its releases part from the reference's")
        if "final" in said:
            self._write({**line, "more": True})
            self._leave("")
        parted, reached = self._parted(training, said)
        if parted:
            line["skips"] = self._skips(said)
        size = sum(len(one) for one in said["rows"])
        line |= {"kind": self._kind, "reached": reached, "size": size, "parted": parted}
        line["drew"] = self._drew or said["drew"]
        if parted:
            self._write(line)
            self._leave("")
        sums = {name.partition(":")[2]: one for name, one in tensors.items() if name.startswith("sum:")}
        delta, where = distance(sums, self._sums)
        found = numbers_unlike(said["numbers"], self._at_sum["numbers"])
        own = training.state()
        found += differences({name: one for name, one in tensors.items() if _lasting(name)}, own)
        line |= {"batches": len(said["rows"]), "chose": self._chose(said), "mixes": self._mixes(said)}
        mixed = _share(said["norms"], self._at_sum["norms"]) if self._early or said["early"] else 0.0
        line |= {"delta": delta / said["clip"], "tensor": where, "mixed": mixed > _ALL}
        self._write({**line, "differs": [one.packed() for one in found]})
        self._quiet = said["quiet"] and self._quiet
        self._force(training, tensors, said, own, found)
        return self._follow.done()

    def _force(
        self, training: Trained, tensors: dict[str, torch.Tensor], said: Any, own: dict[str, torch.Tensor], found: Any
    ) -> None:
        """Go on from where the reference is, so that every step is an experiment of its own."""
        with torch.no_grad():
            for name, gradient in training.gradients().items():
                gradient.copy_(tensors[f"gradient:{name}"])
            for name in {one.name for one in found} & set(own) & set(tensors):
                if own[name].shape == tensors[name].shape:
                    own[name].copy_(tensors[name])
        training.set_numbers(said["numbers"])
        training.set_released(said["released"])

    def _parted(self, training: Trained, said: Any) -> tuple[str, int | None]:
        """Why this step is no comparison, if it is none; how many of its records are other ones."""
        if said["training"] != training.number:
            return "another training takes the step", None
        if said["randomness"] != self._at_sum["randomness"]:
            return "random streams", None
        theirs, own = said["rows"], self._at_sum["rows"]
        if [len(one) for one in theirs] != [len(one) for one in own]:
            return "batches of another size", None
        pairs = [(a, b) for one, other in zip(theirs, own, strict=True) for a, b in zip(one, other, strict=True)]
        reached = sum(a != b for a, b in pairs)
        if self.role in (NOISE, ROTATING):  # as they were before the change
            return ("other batches", None) if reached else ("", int(bool(self._kind)))
        return "", reached if pairs else None

    def _skips(self, said: Any) -> bool:
        """Did either run take no step on batches on which the other did, though nothing was drawn that may be noise?"""
        theirs, own = said["rows"], self._at_sum["rows"]
        if len(theirs) == len(own) or not theirs or not own or said["early"] or self._early:
            return False
        pairs = list(zip(theirs, own, strict=False))
        if [len(one) for one, _ in pairs] != [len(other) for _, other in pairs]:
            return False
        most = max(len(one) for one, _ in pairs) if self.role in (OTHERS, READ) else 1
        return all(sum(a != b for a, b in zip(one, other, strict=True)) <= most for one, other in pairs)

    def _mixes(self, said: Any) -> int:
        """How many other records add something else, with one record of the batch changed."""
        theirs, own, clip = said["norms"], self._at_sum["norms"], said["clip"]
        comparable = self.role == NOISE or (self.role == ROTATING and self._kind and self._kind != LEFT_OUT)
        if not comparable or self._early or said["early"] or theirs is None or own is None or len(said["rows"]) != 1:
            return 0
        if not len(theirs) == len(own) == len(said["rows"][-1]):  # not one gradient a record
            return 0
        one, other = (np.minimum(np.array(norms), clip) for norms in (theirs, own))
        unlike = np.abs(one - other) > _SAME * np.maximum(one, other) + _LEAST * clip
        return max(int(unlike.sum()) - (self.role == ROTATING), 0)

    def _chose(self, said: Any) -> bool:
        """Were gradients clipped of another number of records, though both runs have drawn the same batches?"""
        theirs, own = said["records"], self._at_sum["records"]
        return self._kind != LEFT_OUT and None not in (theirs, own) and theirs != own

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._lines, json.dumps(line).encode() + b"\n")

    def _end(self, why: str) -> None:
        """No more of it."""
        self.over = True
        with suppress(OSError):
            self._write({"over": why})
        (self._lead or self._follow).end()  # type: ignore[union-attr]

    def _leave(self, why: str) -> NoReturn:
        """A run that is there for the replay has nothing else to do."""
        self._end(why)
        os._exit(0)


def numbers_unlike(theirs: dict[str, float], own: dict[str, float]) -> list[Difference]:
    found = []
    for name in sorted(theirs.keys() | own.keys()):
        one, other = theirs.get(name, math.inf), own.get(name, math.inf)
        if one != other and not (math.isnan(one) and math.isnan(other)):
            size = abs(one - other) / max(abs(one), abs(other), 1e-30)
            found.append(Difference(name, size if math.isfinite(size) else 1.0))
    return found


def _lasting(name: str) -> bool:
    return not name.startswith(("sum:", "gradient:"))


def _share(theirs: list[float] | None, own: list[float] | None) -> float:
    """Of records whose gradient is another one."""
    if theirs is None or own is None or len(theirs) != len(own):
        return 1.0
    one, other = np.array(theirs), np.array(own)
    return float((np.abs(one - other) > 1e-4 * np.maximum(one, other)).mean()) if len(one) else 0.0
