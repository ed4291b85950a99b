"""What this process has of a replay: one lockstep, if it is the first of its run in which something is made private."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from epsilometer.watching.ending import at_end
from epsilometer.watching.replay import saves
from epsilometer.watching.replay.before import look_on
from epsilometer.watching.replay.loaders import Loaders, before_forward
from epsilometer.watching.replay.lockstep import Lockstep
from epsilometer.watching.settings import Replaying

_PRESENT: list[tuple[Lockstep, Loaders]] = []


def present(replaying: Replaying) -> tuple[Lockstep, Loaders] | None:
    """Made when it is first asked for."""
    if not _PRESENT:
        try:
            claim = Path(replaying.meeting) / f"{replaying.run}.claim"
            os.close(os.open(claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:  # another process of the same run
            return None
        lockstep = Lockstep(replaying)
        look_on(partial(lockstep.guarded, lockstep.look), partial(lockstep.guarded, lockstep.settle))
        loaders = Loaders(lockstep)
        loaders.attach()
        saves.attach(lockstep)
        at_end(lockstep.finish)
        _PRESENT.append((lockstep, loaders))
    return _PRESENT[0]


def watch_forward(module: Any) -> None:
    """By functions of this module, so that a model can still be written to a file."""
    module.register_forward_pre_hook(_before)
    module.register_forward_hook(_after)


def _before(module: Any, _: Any) -> None:
    for lockstep, _loaders in _PRESENT:
        before_forward(lockstep, module)


def _after(*_: Any) -> None:
    for lockstep, _loaders in _PRESENT:
        lockstep.guarded(lockstep.settle)
