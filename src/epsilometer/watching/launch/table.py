"""What the hook is told by whoever starts a command: which modules to wait for, and who takes hold of each.

It is written beside the settings, before the command starts, so that frameworks which installed packages bring work
in scripts whose environment has neither these packages nor Epsilometer.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

from epsilometer.watching.framework import FRAMEWORKS
from epsilometer.watching.replay.readers import READERS
from epsilometer.watching.replay.roles import READ
from epsilometer.watching.settings import Settings

FILE = "hooks.json"
# Of runs in lockstep: chance is taken hold of before anything else.
_AT_ONCE = {"attach": "epsilometer.watching.replay.entropy:begin"}
_NUMPY = {"attach": "epsilometer.watching.replay.noting:attach", "silent": True}
_DRAWS = {"attach": "epsilometer.watching.replay.draws:attach_numpy", "silent": True}
_READERS = {"attach": "epsilometer.watching.replay.readers:follow", "silent": True}
_CHANGING = {"attach": "epsilometer.watching.replay.readers:attach", "silent": True}
_TORCH = {"attach": "epsilometer.watching.replay.randomness:attach", "silent": True}
_COMPILER = {"attach": "epsilometer.watching.replay.randomness:compile_the_same", "silent": True}


def write_table(directory: Path, settings: Settings) -> None:
    """By module: who attaches, and where the package is in which that is. What cannot be used is left out."""
    table: dict[str, Any] = {}
    for framework in FRAMEWORKS.values():
        if not (settings.canaries or framework.checks_alone) or (framework.declared and settings.declared is None):
            continue
        entry = {"attach": framework.attach, **_found(re.split("[.:]", framework.attach)[0])}
        for module in framework.modules:
            table.setdefault(module, []).append(entry)
    if settings.replaying is not None:
        table[""] = [_AT_ONCE]
        table["numpy"] = [_NUMPY] if settings.declared is None else [_NUMPY, _DRAWS]
        if settings.declared is not None:
            table["jax.random"] = [{"attach": "epsilometer.watching.replay.draws:attach_jax", "silent": True}]
        table["torch"] = [_TORCH, *table.get("torch", [])]
        table["torch._inductor.config"] = [_COMPILER]
        for module in READERS:
            table.setdefault(module, []).append(_CHANGING if settings.replaying.role == READ else _READERS)
    (directory / FILE).write_text(json.dumps(table), encoding="utf-8")


def _found(package: str) -> dict[str, Any]:
    """Where this process has it."""
    if package == "epsilometer":  # the hook knows where that is
        return {}
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return {}
    if spec is None or spec.origin is None:
        return {}
    places = spec.submodule_search_locations
    return {"origin": spec.origin, "places": None if places is None else list(places)}
