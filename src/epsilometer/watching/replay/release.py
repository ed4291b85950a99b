"""A value that a script releases with noise of its own: in runs beside others, that of the reference."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

from epsilometer.watching.replay.before import forgive
from epsilometer.watching.replay.process import present
from epsilometer.watching.settings import Settings

_WATCH = "EPSILOMETER_WATCH"  # see `launch.environment`


def same_in_every_run(value: Any) -> Any:
    """The reference's, of the same type; the value itself where there is no replay."""
    directory = os.environ.get(_WATCH)
    replaying = Settings.read(Path(directory)).replaying if directory else None
    found = present(replaying) if replaying is not None else None
    if found is None:
        return value
    tensor = torch.as_tensor(value).detach()
    forgive()
    released = found[0].guarded(found[0].release, tensor)
    if released is None or released is tensor:
        return value
    if isinstance(value, torch.Tensor):
        return released.to(value.device)
    if isinstance(value, np.ndarray):
        return released.numpy()
    return type(value)(released.item())
