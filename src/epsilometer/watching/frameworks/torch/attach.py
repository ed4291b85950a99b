"""Where a loop by hand is taken hold of: the step of every torch optimizer, by one hook for all."""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Mapping
from typing import Any

from epsilometer.watching.by_line import Line
from epsilometer.watching.frameworks.torch import accountants
from epsilometer.watching.frameworks.torch.privatizer import TorchLoop
from epsilometer.watching.training import Trainings, WatchedTraining

_MOST = 64  # optimizers that are told apart


def attach(torch: Any, trainings: Trainings) -> None:
    """Watch every optimizer of this process; with Opacus' engines, none. Accountants come in modules of their own."""
    if torch.__name__ != "torch":
        accountants.attach(torch)
        return
    HOOKS.append(Hooks(trainings))
    HOOKS[0].attach(torch)


HOOKS: list[Hooks] = []  # of this process


class Hooks:
    """Told of steps by all optimizers."""

    def __init__(self, trainings: Trainings) -> None:
        self._trainings = trainings
        self._loops: weakref.WeakKeyDictionary[Any, tuple[TorchLoop, WatchedTraining]] = weakref.WeakKeyDictionary()
        self._depth = 0
        self._lines: dict[str, tuple[Line, TorchLoop, WatchedTraining]] = {}
        self._outside: Any = None

    def attach(self, torch: Any) -> None:
        replaying = self._trainings.settings.replaying
        if replaying is not None:
            from epsilometer.watching.replay.outside_hooks import follow

            self._outside = follow(replaying)
        optimizers = importlib.import_module("torch.optim.optimizer")
        optimizers.register_optimizer_step_pre_hook(self._before)
        optimizers.register_optimizer_step_post_hook(self._after)
        for one in vars(torch.optim).values():  # a class that another one inherits from, too
            if isinstance(one, type) and issubclass(one, optimizers.Optimizer) and "step" in vars(one):
                _hook(one, optimizers.Optimizer)

    def _before(self, optimizer: Any, *_: Any) -> None:
        try:
            known = self._known(optimizer)
            self._depth += 1
            if known is not None and self._outside is not None:
                self._outside.before_step(optimizer, known[1].number)
        except Exception as error:
            self._trainings.failed("an optimizer's step", error)

    def _after(self, optimizer: Any, *_: Any) -> None:
        self._depth = max(self._depth - 1, 0)
        known = self._loops.get(optimizer)
        if self._depth == 0 and known is not None:
            known[0].steps += 1
            known[1].guarded(known[1].play)
            known[1].tell_now_and_then()
        if self._outside is not None:
            self._outside.after_step()

    def by_line(self, name: str, leaves: Mapping[str, Any]) -> dict[str, Any]:
        """A step of a loop without an optimizer: what it is to be taken with."""
        declared = self._trainings.settings.declared
        if declared is None:
            return {}
        try:
            if name not in self._lines:
                privatizer = TorchLoop(f"{name or 'a loop'}", declared, self._alone)
                self._lines[name] = Line(leaves), privatizer, self._trainings.begin(privatizer)
            line, privatizer, training = self._lines[name]
            privatizer.steps += 1
            training.guarded(training.play)
            if self._outside is None or list(leaves) != line.names:
                return {}
            line.put(leaves)
            self._outside.whole_step(line, training.number)
            return line.taken(leaves) if self._trainings.settings.follows else {}
        except Exception as error:
            self._trainings.failed("watch_step", error)
            return {}

    def _known(self, optimizer: Any) -> tuple[TorchLoop, WatchedTraining] | None:
        """The training of this optimizer, or of the one in whose step it takes its own."""
        declared = self._trainings.settings.declared
        if declared is None or self._lines or self._of_engine(optimizer):
            return None
        if optimizer not in self._loops:
            if self._depth or len(self._loops) >= _MOST:
                return next(iter(self._loops.values()), None) if self._depth else None
            privatizer = TorchLoop(type(optimizer).__name__, declared, self._alone)
            self._loops[optimizer] = privatizer, self._trainings.begin(privatizer)
        return self._loops[optimizer]

    def _alone(self) -> bool:
        """Is there one training, so that what an accountant was told is of it?"""
        return len(self._loops) + len(self._lines) == 1

    def _of_engine(self, optimizer: Any) -> bool:
        """Does a library that is watched by itself make anything private here?"""
        if type(optimizer).__module__.startswith("opacus"):
            return True
        return any(not isinstance(one.privatizer, TorchLoop) for one in self._trainings)


def _hook(owner: Any, base: Any) -> None:
    """As an object of this class would."""
    if not getattr(owner.step, "hooked", None):
        owner.step = base.profile_hook_step(owner.step)
        owner.step.hooked = True
