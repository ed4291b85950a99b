"""What a process tells its runs in lockstep of a loop by hand: modules that are called, backward passes, steps."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from epsilometer.watching.ending import at_end
from epsilometer.watching.replay import draws, saves
from epsilometer.watching.replay.before import innocent, look_on
from epsilometer.watching.replay.indexed import Rows
from epsilometer.watching.replay.loaders import Loaders
from epsilometer.watching.replay.loop import Loop
from epsilometer.watching.replay.outside import Outside
from epsilometer.watching.replay.roles import GRADIENT
from epsilometer.watching.settings import Replaying


def follow(replaying: Replaying) -> Hooks:
    """From now on; the process that trains first is the one that is followed."""
    outside = Outside(replaying, functools.partial(_claim, replaying))
    draws.attach()
    Rows(outside).attach()
    Loaders(outside, every=True).attach()
    for owner, name in ((DataLoader, "__iter__"), (_BaseDataLoaderIter, "__next__")):
        setattr(owner, name, innocent(getattr(owner, name)))  # whoever calls it now is the script
    look_on(functools.partial(outside.guarded, outside.look), functools.partial(outside.guarded, outside.settle))
    saves.attach(outside)
    at_end(outside.finish)
    return Hooks(outside)


def _several() -> bool:
    """Is a step that of several processes?"""
    distributed = torch.distributed
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


def _claim(replaying: Replaying) -> bool:
    try:
        os.close(
            os.open(Path(replaying.meeting) / f"{replaying.run}.claim", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        )
    except FileExistsError:  # another process of the same run
        return False
    return True


class Hooks:
    """All around what the script does."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._loops: dict[int, Loop] = {}
        self._optimizers: dict[int, Any] = {}
        module = torch.nn.modules.module
        module.register_module_forward_pre_hook(self._forward)
        module.register_module_forward_hook(self._left, always_call=True)
        for name in ("backward", "grad"):
            setattr(torch.autograd, name, self._around(getattr(torch.autograd, name)))

    def _forward(self, module: Any, _: Any) -> None:
        outside = self._outside
        trains = module.training and torch.is_grad_enabled()
        if trains:
            outside.begin_here()
        outside.models.called(module)
        if trains:
            outside.guarded(outside.forward, False)
        outside.guarded(outside.entered)

    def _left(self, *_: Any) -> None:
        self._outside.guarded(self._outside.left)

    def _around(self, original: Any) -> Any:
        @functools.wraps(original)
        def call(*arguments: Any, **named: Any) -> Any:
            self._outside.begin_here()
            self._outside.guarded(self._outside.backward)
            return original(*arguments, **named)

        return call

    def before_step(self, optimizer: Any, number: int) -> None:
        outside = self._outside
        outside.begin_here()
        if _several():
            outside.guarded(outside.refuse, "several processes share its steps")
        if number not in self._loops:
            self._loops[number] = Loop(number, optimizer, outside.models)
        outside.guarded(outside.before_step, self._loops[number])

    def whole_step(self, line: Any, number: int) -> None:
        """Of a loop without an optimizer: there is nothing but the gradient."""
        outside = self._outside
        outside.begin_here()
        outside.guarded(outside.meets_at, number, GRADIENT)
        self.before_step(line, number)
        self.after_step()

    def after_step(self) -> None:
        self._outside.guarded(self._outside.after_step)
