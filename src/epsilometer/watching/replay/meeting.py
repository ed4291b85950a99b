"""Runs of a loop by hand where they meet in a step: what the reference publishes, and what others find different."""

from __future__ import annotations

import sys
from typing import Any

import torch

from epsilometer.watching.replay import entropy, randomness
from epsilometer.watching.replay.compared import differences
from epsilometer.watching.replay.control import Gone
from epsilometer.watching.replay.lockstep import Lockstep, numbers_unlike
from epsilometer.watching.replay.loop import Loop, Step
from epsilometer.watching.replay.roles import GRADIENT, NEGATED, NOISE, ROTATING, WEIGHTS, WITHIN

# Of the reference, in lines of all runs.
_SAID = ("place", "drawn", "window", "unseen", "source", "linear", "within", "size", "records", "loader", "members")


class Meeting(Lockstep):
    """What is known of the step under way, and what is done with it."""

    _loops: dict[int, Loop]
    _places: dict[int, str]  # where runs meet next, by training
    _within: set[int]  # trainings that draw random numbers in their steps
    _between: dict[int, torch.Tensor]  # of two runs in the last step, by training
    _window: dict[str, int]  # random numbers that were drawn while records were selected
    _unseen: bool  # some were that nobody has counted
    _source: int  # of the step's records
    _records: int | None  # that it has
    _batch: set[int]  # those of it that the step takes

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
            "numbers": loop.numbers(), "window": self._window, "source": self._source, "records": self._records,
            "members": [name for row in self._rows for name in row] or sorted(self._batch),
            "size": len(self._batch), "loader": bool(self._rows), "linear": loop.linear,
            "within": loop.number in self._within,
            "unseen": self._unseen or (loop.by_line and "jax" in sys.modules),  # what is compiled draws as it did
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

    def finish_loops(self) -> None:
        """The script ends: what is left?"""
        for loop in self._loops.values():
            self.guarded(self._finish_loop, loop)

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
